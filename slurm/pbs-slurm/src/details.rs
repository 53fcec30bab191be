// SPDX-License-Identifier: GPL-2.0
//! Parts of a job that only `scontrol show job` prints.
//!
//! Each question is a process, and users decide how many jobs there are and how often they change
//! them. So few are asked in a look, of each user in turn, and what was known before is valid until
//! it is known anew.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::steer::{Fault, JobSeen, Key};

/// Jobs that are asked at once at most.
const AT_ONCE: usize = 10;
/// Time after which no other is asked at once.
const TIME: Duration = Duration::from_secs(2);
/// Questions without an answer after which a job is reported.
const MOST_FAILED: u32 = 5;
/// Reports of jobs whose questions fail, at most.
const MOST_REPORTED: usize = 20;
/// Time after which it is asked again, in case that the hint of a change was lost.
const AGE: Duration = Duration::from_secs(300);

/// Parts of a job that columns do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Details {
    /// Greatest number of elements of its array that run at the same time; 0: no limit.
    pub(crate) throttle: u64,
    /// Whether its user gave a greatest number of nodes.
    pub(crate) is_limited: bool,
    /// Whether its memory is that of each node, or else of each core; `None`: it can't be read.
    pub(crate) is_memory_of_node: Option<bool>,
}

/// Jobs that have such parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    /// The array with that number.
    Array(u32),
    /// A job by itself.
    Job(Key),
}

impl Of {
    fn number(self) -> u32 {
        match self {
            Self::Array(number) => number,
            Self::Job(key) => key.job,
        }
    }
}

#[derive(Debug)]
struct Known {
    /// The outer `None`: there was no answer yet; the inner: what was printed can't be read.
    details: Option<Option<Details>>,
    asked: Instant,
    is_stale: bool,
    /// Number of questions since the last answer, with the last reason and the name of the job.
    failed: u32,
    why: String,
    name: String,
}

/// Details that are known.
#[derive(Debug, Default)]
pub(crate) struct Book {
    known: HashMap<Of, Known>,
    wanted: HashSet<Of>,
}

impl Book {
    /// Takes a hint that a user has changed the job with that number.
    pub(crate) fn altered(&mut self, number: u32) {
        let of_number = self.known.iter_mut().filter(|(of, _)| of.number() == number);
        let mut is_known = false;
        for (_, known) in of_number {
            (known.is_stale, is_known) = (true, true);
        }
        if !is_known {
            // It may be an element of an array, by a number of its own.
            self.all_altered();
        }
    }

    /// Takes that hints were lost.
    pub(crate) fn all_altered(&mut self) {
        for known in self.known.values_mut() {
            known.is_stale = true;
        }
    }

    /// Asks for the details of jobs, each job standing for what it has them with, as far as they
    /// must be asked and that can be done at once.
    pub(crate) fn look_up<'a>(
        &mut self,
        wanted: impl Iterator<Item = (Of, &'a JobSeen)>,
        now: Instant,
        ask: &mut dyn FnMut(Key) -> Result<Option<Details>, Fault>,
    ) {
        let mut due = Vec::new();
        for (of, job) in wanted {
            let is_first = self.wanted.insert(of);
            let known = self.known.get(&of);
            let is_due = known.is_none_or(|it| it.is_stale || now.duration_since(it.asked) >= AGE);
            if is_first && is_due {
                due.push((known.map(|it| it.asked), of, job));
            }
        }
        // Those that were never asked come first, then those that were not for long.
        due.sort_by_key(|&(asked, _, job)| (asked, job.key));
        let mut of_user: HashMap<&str, usize> = HashMap::new();
        let mut turns: Vec<(usize, Of, Key)> = due
            .into_iter()
            .map(|(_, of, job)| {
                let turn = of_user.entry(&job.user).or_default();
                *turn += 1;
                (*turn, of, job.key)
            })
            .collect();
        turns.sort_by_key(|&(turn, ..)| turn);
        let begun = Instant::now();
        for (_, of, key) in turns.into_iter().take(AT_ONCE) {
            if begun.elapsed() > TIME {
                break;
            }
            let unknown = Known {
                details: None,
                asked: now,
                is_stale: true,
                failed: 0,
                why: String::new(),
                name: key.name(),
            };
            let known = self.known.entry(of).or_insert(unknown);
            known.asked = now;
            match ask(key) {
                Ok(details) => {
                    // What was once read is not forgotten for an answer that can't be.
                    let before = known.details.flatten();
                    known.details = Some(details.or(before));
                    (known.is_stale, known.failed) = (false, 0);
                }
                Err(fault) => {
                    known.failed = known.failed.saturating_add(1);
                    known.why = fault.to_string();
                }
            }
        }
    }

    /// Messages about jobs whose questions fail again and again.
    pub(crate) fn failing(&self) -> Vec<String> {
        let often = self.known.values().filter(|known| known.failed >= MOST_FAILED);
        let mut all: Vec<String> = often
            .map(|known| {
                let part = match known.details {
                    Some(_) => "is planned by what was known of it before",
                    None => "is not planned until there is an answer",
                };
                format!("job {} {part}: scontrol show job: {}", known.name, known.why)
            })
            .collect();
        all.sort_unstable();
        let more = all.len().saturating_sub(MOST_REPORTED);
        all.truncate(MOST_REPORTED);
        if more > 0 {
            all.push("other jobs, too, have no answer of scontrol show job".into());
        }
        all
    }

    /// Details of jobs. The outer `None`: they are not known yet; the inner: they can't be read.
    pub(crate) fn get(&self, of: Of) -> Option<Option<Details>> {
        self.known.get(&of).and_then(|known| known.details)
    }

    /// Forgets all that was not wanted since the last call.
    pub(crate) fn forget(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        self.known.retain(|of, _| wanted.contains(of));
    }
}

/// Reads the first job in what `scontrol show job` has printed.
pub(crate) fn details_of(text: &str) -> Option<Details> {
    // A text of a user is never the first word of a line: these have no line ends.
    let nodes = text.lines().find_map(|line| line.trim_start().strip_prefix("NumNodes="))?;
    let nodes = nodes.split(' ').next()?;
    let cpus = text.lines().find(|line| line.trim_start().starts_with("MinCPUsNode="));
    let mut of_cpus = cpus.unwrap_or_default().trim_start().split(' ');
    let is_memory_of_node = of_cpus.find_map(|word| match word.split_once('=')?.0 {
        "MinMemoryNode" => Some(true),
        "MinMemoryCPU" => Some(false),
        _ => None,
    });
    let first = text.lines().next()?;
    // Its name comes last in its line.
    let words = first.split(" JobName=").next()?.split(' ');
    let throttle = words.into_iter().find_map(|word| word.strip_prefix("ArrayTaskThrottle="));
    Some(Details {
        throttle: throttle.map_or(Some(0), |of| of.parse().ok())?,
        is_limited: nodes.contains('-'),
        is_memory_of_node,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steer::Simulated;

    const NONE: Details =
        Details { throttle: 2, is_limited: false, is_memory_of_node: Some(false) };

    fn jobs(user: &str, numbers: std::ops::Range<u32>) -> Vec<JobSeen> {
        let mut slurm = Simulated::new(&[], 0, 1_764_000_000);
        let keys: Vec<Key> = numbers.map(|number| slurm.submit(number, 1, 1, 60, 0)).collect();
        let jobs = keys.into_iter().filter_map(|key| slurm.job(key).cloned());
        jobs.map(|job| JobSeen { user: user.into(), ..job }).collect()
    }

    fn look(book: &mut Book, jobs: &[JobSeen], now: Instant) -> Vec<u32> {
        let mut asked = Vec::new();
        let wanted = jobs.iter().map(|job| (Of::Job(job.key), job));
        book.look_up(wanted, now, &mut |key| {
            asked.push(key.job);
            Ok(Some(NONE))
        });
        book.forget();
        asked
    }

    #[test]
    fn a_user_with_many_jobs_keeps_nobody_waiting() {
        let mut all = jobs("anna", 0..2000);
        all.extend(jobs("bert", 3000..3001));
        let (mut book, now) = (Book::default(), Instant::now());
        let asked = look(&mut book, &all, now);
        assert!(asked.len() == AT_ONCE && asked.contains(&3000), "{asked:?}");
        // All have their turn, however often a user changes jobs of his.
        for _ in 0..230 {
            book.all_altered();
            look(&mut book, &all, now);
        }
        assert_eq!(book.known.len(), all.len());
        // Those that are gone are forgotten.
        look(&mut book, &all[..1], now);
        assert_eq!(book.known.len(), 1);
    }

    #[test]
    fn what_is_known_is_valid_until_it_is_known_anew() {
        let all = jobs("anna", 1..4);
        let (mut book, now) = (Book::default(), Instant::now());
        assert_eq!(book.get(Of::Job(all[0].key)), None);
        assert_eq!(look(&mut book, &all, now), [1, 2, 3]);
        assert!(look(&mut book, &all, now).is_empty());
        book.altered(2);
        let wanted = || all.iter().map(|job| (Of::Job(job.key), job));
        book.look_up(wanted(), now, &mut |_| Err(Fault::Later));
        assert_eq!(book.get(Of::Job(all[1].key)), Some(Some(NONE)));
        book.forget();
        assert_eq!(look(&mut book, &all, now), [2]);
        // A hint may be lost, and may name an element of an array by a number of its own.
        assert_eq!(look(&mut book, &all, now + AGE), [1, 2, 3]);
        book.altered(77);
        assert_eq!(look(&mut book, &all, now + AGE), [1, 2, 3]);
        // What can't be read is known as that, unless it was read before.
        book.altered(3);
        book.look_up(wanted(), now + AGE, &mut |_| Ok(None));
        assert_eq!(book.get(Of::Job(all[2].key)), Some(Some(NONE)));
        let mut book = Book::default();
        book.look_up(wanted(), now, &mut |_| Ok(None));
        assert_eq!(book.get(Of::Job(all[2].key)), Some(None));
        // Those that gave no answer come behind the others.
        let mut book = Book::default();
        let many = jobs("anna", 0..20);
        let wanted = || many.iter().map(|job| (Of::Job(job.key), job));
        book.look_up(wanted(), now, &mut |_| Err(Fault::Later));
        book.forget();
        assert_eq!(look(&mut book, &many, now + TIME)[0], 10);
    }

    #[test]
    fn a_job_that_is_never_answered_is_reported_once() {
        let all = jobs("anna", 1..4);
        let (mut book, now) = (Book::default(), Instant::now());
        let wanted = || all.iter().map(|job| (Of::Job(job.key), job));
        let turn = |book: &mut Book, silent: Option<u32>| {
            book.look_up(wanted(), now + AGE, &mut |key| match silent {
                Some(job) if job == key.job => Err(Fault::Later),
                _ => Ok(Some(NONE)),
            });
            book.forget();
        };
        for count in 0..MOST_FAILED + 2 {
            let is_told = !book.failing().is_empty();
            assert_eq!(is_told, count >= MOST_FAILED, "{count}");
            turn(&mut book, Some(2));
        }
        let told = "job 2 is not planned until there is an answer: scontrol show job: not now";
        assert_eq!(book.failing(), [told]);
        turn(&mut book, None);
        assert!(book.failing().is_empty());
        // The number of reports is bounded, whatever users do.
        let many = jobs("anna", 0..200);
        for round in 0..200 {
            let wanted = many.iter().map(|job| (Of::Job(job.key), job));
            book.look_up(wanted, now + AGE * round, &mut |_| Err(Fault::Later));
            book.forget();
        }
        assert_eq!(book.failing().len(), MOST_REPORTED + 1);
    }

    #[test]
    fn details_are_those_of_slurm_and_not_of_a_text() {
        let text =
            "JobId=38 ArrayJobId=1 ArrayTaskId=6 ArrayTaskThrottle=2 JobName=a JobName=b\n   \
                    UserId=games(5)\n   NumNodes=2-4 NumCPUs=1\n   \
                    MinCPUsNode=1 MinMemoryNode=100M MinTmpDiskNode=0\n   \
                    Comment=NumNodes=1 MinMemoryCPU=5M\n";
        let is_memory_of_node = Some(true);
        let of = Details { throttle: 2, is_limited: true, is_memory_of_node };
        assert_eq!(details_of(text), Some(of));
        let other = text.replace("MinMemoryNode", "MinMemoryCPU");
        let is_memory_of_node = Some(false);
        assert_eq!(details_of(&other), Some(Details { is_memory_of_node, ..of }));
        let text = "JobId=38 JobName=a ArrayTaskThrottle=2\n   NumNodes=2 NumCPUs=1\n";
        let of = Details { throttle: 0, is_limited: false, is_memory_of_node: None };
        assert_eq!(details_of(text), Some(of));
        assert!(details_of("JobId=38 ArrayTaskThrottle=x JobName=a\n   NumNodes=2\n").is_none());
        assert!(details_of("").is_none());
    }
}
