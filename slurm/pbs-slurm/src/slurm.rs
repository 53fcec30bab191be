// SPDX-License-Identifier: GPL-2.0
//! Slurm behind the interface of a controller.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::steer::{
    Closing, Commitment, Controller, Event, Fault, Hold, JobSeen, JobState, Key, Leaving, Memory,
    NodeSeen, Revoked, Unread, World, TOLD_CHARS,
};

use crate::columns::{
    extras_of, jobs_of, node_format, nodes_of, Context, Extra, Mark, EXTRA, UNSHOWN,
};
use crate::details::{details_of, Book, Details, Of};
use crate::events::Hints;
use crate::pipe::{Answer, Pipe};
use crate::relay::Served;
use crate::reservations::{overrun_of, reservations_of, Row};
use crate::run::output_of;

/// Greatest number of jobs that are queried by their numbers; if there are more, all are queried.
const BY_NUMBER: usize = 200;

/// Time for which the configuration of Slurm counts as known.
const CONFIG_AGE: Duration = Duration::from_secs(300);
/// Reason for which no job is left to Slurm in a reservation of which nothing is known.
const UNREAD: &str = "its row in scontrol show reservation can't be read";

/// Access to Slurm.
#[derive(Clone, Debug)]
pub struct Options {
    /// The partition whose jobs are planned.
    pub partition: String,
    /// The file with the hints.
    pub events: PathBuf,
    /// Time that an answer may take.
    pub patience: Duration,
}

/// Slurm.
#[derive(Debug)]
pub struct Slurm {
    partition: String,
    patience: Duration,
    pipe: Pipe,
    hints: Hints,
    /// Facts about jobs besides their columns, by the jobs and their requests.
    extras: HashMap<Key, (Asked, Extra)>,
    /// Limits of arrays, and whether jobs may have no more nodes than they were given at their
    /// submission.
    details: Book,
    /// Cores and memory as users gave them, of jobs that wait.
    own: HashMap<Key, Own>,
    /// Demands of each job in the last look ([`JobSeen::asks`]).
    asked: HashMap<Key, u64>,
    /// Names of the nodes of the partition in the last look, sorted.
    planned: Vec<String>,
    /// Reservations, as they were read last.
    reservations: Vec<Closing>,
    /// Seconds for which jobs go on after the end of their reservations, and the time at which that
    /// was read; the inner `None`: without limit.
    overrun: Option<(Instant, Option<u64>)>,
}

/// Cores and memory of a job: least number of cores on each node, number of cores, memory.
type Sizes = (u64, u64, Memory);

/// Cores and memory as a user gave them. Slurm shows others once a commitment has set the least
/// number of cores on each node.
#[derive(Clone, Copy, Debug)]
struct Own {
    of_user: Sizes,
    /// Least number of cores on each node that a commitment has set.
    set: Option<u64>,
    /// Sizes that Slurm has shown since. Others are those of a user who changed them.
    shown: Option<Sizes>,
}

/// Row of one job.
#[derive(Debug)]
enum OneRow {
    /// The job.
    Read(Box<JobSeen>),
    /// The row can't be read. That concerns this job alone.
    Unread {
        /// Whether the row shows a job that has not begun; `None`: that can't be read either.
        is_waiting: Option<bool>,
    },
}

impl OneRow {
    /// Outcome of the hold of the job; a job that runs can be held, too, and goes on.
    fn revoked(&self) -> Result<Revoked, Fault> {
        match self {
            Self::Read(seen) => match seen.state {
                JobState::Over(_) | JobState::Completing(_) => Err(Fault::Gone),
                JobState::Running => Ok(Revoked::AlreadyStarted),
                JobState::Pending(_) => Ok(Revoked::Held),
            },
            Self::Unread { is_waiting: Some(true) } => Ok(Revoked::Held),
            Self::Unread { is_waiting: Some(false) } => Ok(Revoked::AlreadyStarted),
            Self::Unread { is_waiting: None } => Err(Fault::Later),
        }
    }

    /// Number of what the job asks for ([`JobSeen::asks`]).
    fn asks(&self) -> Result<u64, Fault> {
        match self {
            Self::Read(seen) => Ok(seen.asks()),
            // Nobody knows whether it is still what was planned.
            Self::Unread { .. } => Err(Fault::Later),
        }
    }
}

/// Values that decide whether these facts must be looked up again.
type Asked = (u64, u64, u64, Memory);

impl Slurm {
    /// With the commands that the path finds, and `SLURM_CONF`.
    ///
    /// # Errors
    ///
    /// What the disk says of the file with the hints.
    pub fn new(options: &Options) -> io::Result<Self> {
        Ok(Self {
            partition: options.partition.clone(),
            patience: options.patience,
            pipe: Pipe::new("scontrol", options.patience),
            hints: Hints::open(&options.events)?,
            extras: HashMap::new(),
            details: Book::default(),
            own: HashMap::new(),
            asked: HashMap::new(),
            planned: Vec::new(),
            reservations: Vec::new(),
            overrun: None,
        })
    }

    /// Waits until something happened, so long at most.
    pub fn wait(&self, most: Duration) {
        self.hints.wait(None, most);
    }

    /// Runs a program that has so much time for each part of its output.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Fault> {
        output_of(program, arguments, self.patience)
    }

    /// Says one command.
    fn say(&mut self, command: String) -> Answer {
        let mut answers = self.pipe.say(&[command])?;
        answers.pop().unwrap_or(Ok(()))
    }

    fn jobs(&self, columns: &[&str]) -> Result<String, Fault> {
        let mut all = vec!["-h", "-r", "-a", "-t", "all", "--noconvert", "-p", &self.partition];
        all.extend(columns);
        self.run("squeue", &all)
    }

    /// Rows of jobs, which begin with the mark.
    fn rows(&self, mark: &Mark, columns: &[&str]) -> Result<String, Fault> {
        let format = mark.job_format();
        let mut all = vec!["-o", format.as_str()];
        all.extend(columns);
        self.jobs(&all)
    }

    /// Jobs by their rows, and the rows that can't be read.
    fn read(&self, rows: &str, mark: &Mark) -> (Vec<JobSeen>, Vec<Unread>) {
        jobs_of(rows, mark, Context { how: &self.hints.ends, planned: &self.planned })
    }

    /// The row of a job; `None`: that job is not there.
    fn row(&self, job: Key) -> Result<Option<OneRow>, Fault> {
        let mark = Mark::new();
        let rows = match self.rows(&mark, &["-j", &job.job.to_string()]) {
            Err(Fault::Unreachable(why)) if why.contains("Invalid job id") => return Ok(None),
            rows => rows?,
        };
        let (jobs, unread) = self.read(&rows, &mark);
        if let Some(unread) = unread.into_iter().find(|unread| unread.key == Some(job)) {
            return Ok(Some(OneRow::Unread { is_waiting: unread.is_waiting }));
        }
        let seen = jobs.into_iter().find(|seen| seen.key == job);
        Ok(seen.map(|seen| OneRow::Read(Box::new(seen))))
    }

    /// Looks up what columns don't say, of those of whom it is not known.
    fn add_extras(&mut self, jobs: &mut [JobSeen]) -> Result<(), Fault> {
        let asked = |job: &JobSeen| (job.nodes_wanted, job.cpus, job.min_cpus, job.memory);
        let is_known = |job: &JobSeen| {
            let known = self.extras.get(&job.key);
            known.is_some_and(|(of, _)| *of == asked(job))
        };
        let new: Vec<&JobSeen> = jobs.iter().filter(|job| !is_known(job)).collect();
        if !new.is_empty() {
            let text = if new.len() <= BY_NUMBER {
                let names: Vec<String> = new.iter().map(|job| job.key.job.to_string()).collect();
                self.jobs(&["-O", EXTRA, "-j", &names.join(",")])?
            } else {
                self.jobs(&["-O", EXTRA])?
            };
            let extras = extras_of(&text);
            for job in new {
                if let Some(extra) = extras.get(&(job.key.job, job.key.index)) {
                    self.extras.insert(job.key, (asked(job), extra.clone()));
                }
            }
        }
        let mut kept = HashMap::with_capacity(jobs.len());
        for job in jobs {
            if let Some((of, extra)) = self.extras.remove(&job.key) {
                extra.add_to(job);
                kept.insert(job.key, (of, extra));
            } else {
                job.foreign = Some(UNSHOWN.into());
            }
        }
        self.extras = kept;
        Ok(())
    }

    /// Adds the limits of arrays. An array without a readable limit is not planned.
    fn add_throttles(&mut self, jobs: &mut [JobSeen]) {
        let patience = self.patience;
        let waits = |job: &JobSeen| matches!(job.state, JobState::Pending(_));
        let is_of = |job: &JobSeen| waits(job) && job.key.index.is_some();
        let of = |job: &JobSeen| Of::Array(job.key.job);
        let wanted = jobs.iter().filter(|job| is_of(job)).map(|job| (of(job), job));
        self.details.look_up(wanted, Instant::now(), &mut |job| details(job, patience));
        for job in jobs.iter_mut().filter(|job| is_of(job)) {
            match self.details.get(of(job)) {
                Some(Some(of)) => job.demands.throttle = of.throttle,
                Some(None) => {
                    let what =
                        "--array: the limit of the array can't be read, since scontrol show \
                                job does not show it; submit it again";
                    job.foreign.get_or_insert_with(|| what.into());
                }
                None => job.is_unclear = true,
            }
        }
    }

    /// Finds out whether memory is that of each node or of each core, where columns leave that open.
    fn add_memory(&mut self, jobs: &mut [JobSeen]) {
        let patience = self.patience;
        let is_open = |job: &&mut JobSeen| {
            let extra = self.extras.get(&job.key);
            let waits = matches!(job.state, JobState::Pending(_));
            waits && extra.is_some_and(|(_, extra)| extra.is_memory_open(job))
        };
        let mut open: Vec<&mut JobSeen> = jobs.iter_mut().filter(is_open).collect();
        let wanted = open.iter().map(|job| (Of::Job(job.key), &**job));
        self.details.look_up(wanted, Instant::now(), &mut |job| details(job, patience));
        for job in &mut open {
            match (self.details.get(Of::Job(job.key)), job.memory) {
                (None, _) => job.is_unclear = true,
                (
                    Some(Some(Details { is_memory_of_node: Some(true), .. })),
                    Memory::OfCore(bytes),
                ) => {
                    job.memory = Memory::OfNode(bytes);
                }
                // Unreadable or of each core: the greater amount is enough.
                (Some(_), _) => {}
            }
        }
    }

    /// Restores cores and memory as users gave them, where a commitment has changed what Slurm shows.
    fn restore_sizes(&mut self, jobs: &mut [JobSeen]) {
        let mut kept = HashMap::with_capacity(jobs.len());
        for job in jobs.iter_mut().filter(|job| matches!(job.state, JobState::Pending(_))) {
            let seen: Sizes = (job.min_cpus, job.cpus, job.memory);
            let own = self.own.get(&job.key).copied().filter(|own| {
                !job.required.is_empty()
                    && own.set == Some(job.min_cpus)
                    && own.shown.is_none_or(|shown| shown == seen)
            });
            let own = match own {
                Some(own) => Own { shown: Some(seen), ..own },
                None => Own { of_user: seen, set: None, shown: None },
            };
            (job.min_cpus, job.cpus, job.memory) = own.of_user;
            kept.insert(job.key, own);
        }
        self.own = kept;
    }

    /// Reads the reservations, and returns messages about those that the plan does not respect. A
    /// reservation whose row can't be read stays as it was.
    fn read_reservations(&mut self) -> Result<Vec<String>, Fault> {
        let rows = reservations_of(&self.run("scontrol", &["show", "reservation", "-o"])?);
        let (mut closed, mut remarks) = (Vec::<Closing>::with_capacity(rows.len()), Vec::new());
        let overrun_s = if rows.is_empty() { None } else { self.overrun()? };
        let of_name =
            |name: String, why: String| Closing { name, loose: Some(why), ..Closing::default() };
        for row in rows {
            match row {
                Row::Read(closing) => {
                    let overrun_s = closing.overrun_s.and(overrun_s);
                    closed.push(Closing { overrun_s, ..closing });
                }
                Row::Foreign { name, why } => {
                    remarks.push(format!(
                        "reservation {name} of Slurm is not planned as a whole: {why}; jobs that \
                         Slurm does not start for it wait longer than planned"
                    ));
                    if closed.last().is_none_or(|last| last.name != name) {
                        closed.push(of_name(name, why));
                    }
                }
                Row::Unread { name, what } => {
                    let known = self.reservations.iter().find(|of| Some(&of.name) == name.as_ref());
                    let unknown = || of_name(name.clone().unwrap_or_default(), UNREAD.into());
                    closed.push(known.cloned().unwrap_or_else(unknown));
                    let then = match known {
                        Some(_) => "it is planned as before",
                        None => "it is not planned; give it a plain name",
                    };
                    remarks.push(format!(
                        "a reservation of Slurm is set aside: its row in scontrol show reservation \
                         can't be read ({what:?}); {then}"
                    ));
                }
            }
        }
        self.reservations = closed;
        Ok(remarks)
    }

    /// Seconds for which jobs go on after the end of their reservations; `None`: without limit.
    fn overrun(&mut self) -> Result<Option<u64>, Fault> {
        match self.overrun {
            Some((at, overrun_s)) if at.elapsed() < CONFIG_AGE => Ok(overrun_s),
            _ => {
                let overrun_s = overrun_of(&self.run("scontrol", &["show", "config"])?);
                self.overrun = Some((Instant::now(), overrun_s));
                Ok(overrun_s)
            }
        }
    }

    /// Takes as many nodes for each job as its tasks need, if it may have them.
    fn lay_out(&mut self, jobs: &mut [JobSeen], nodes: &[NodeSeen]) {
        let patience = self.patience;
        // Nodes that they were given, of those whose tasks need more.
        let mut given = HashMap::new();
        // The job before, and the number of nodes that it was given: elements of an array are alike.
        let mut last: Option<(JobSeen, u64)> = None;
        for job in jobs.iter_mut().filter(|job| job.is_to_lay_out()) {
            let before = job.nodes_wanted;
            match &last {
                Some((like, given)) if *given == before && job.is_laid_out_like(like) => {
                    job.nodes_wanted = like.nodes_wanted;
                }
                _ => {
                    job.lay_out(nodes);
                    last = Some((job.clone(), before));
                }
            }
            // Slurm shows its own estimate of a greatest number that nobody gave.
            let most = job.max_nodes.filter(|&most| most > 0).unwrap_or(before);
            if job.nodes_wanted > most {
                given.insert(job.key, (before, most));
            }
        }
        let needs_more = |job: &&JobSeen| given.contains_key(&job.key);
        let wanted = jobs.iter().filter(needs_more).map(|job| (Of::Job(job.key), job));
        self.details.look_up(wanted, Instant::now(), &mut |job| details(job, patience));
        for job in jobs {
            let Some(&(before, most)) = given.get(&job.key) else {
                continue;
            };
            let details = self.details.get(Of::Job(job.key));
            job.is_unclear |= details.is_none();
            if details.flatten().is_none_or(|of| of.is_limited) {
                let what = format!(
                    "--nodes: {most} nodes have no room for all of its tasks; write --nodes={} or \
                     fewer tasks",
                    job.nodes_wanted
                );
                job.foreign.get_or_insert(what);
                job.nodes_wanted = before.min(most);
            }
        }
    }
}

/// Asks for what only `scontrol show job` prints; `None`: it can't be read.
fn details(job: Key, patience: Duration) -> Result<Option<Details>, Fault> {
    Ok(details_of(&output_of("scontrol", &["show", "job", &job.name()], patience)?))
}

/// Command that sets the time limit of a job.
fn limited(job: Key, limit_s: u64) -> String {
    format!("update JobId={} TimeLimit={}", job.name(), limit_s.div_ceil(60))
}

/// Commands that let a job go.
///
/// With a least number of cores on each node, and `cpus`, the number in all, Slurm spreads them as
/// planned.
///
/// Its user may change the limit as long as the job is held, even between two of these commands.
/// After the release only operators can raise it. Therefore the planned limit comes last.
fn commitment(job: Key, of: &Commitment, cpus: Option<u64>) -> Vec<String> {
    let start = of.start_s.map_or_else(|| "now".into(), |start_s| format!("uts{start_s}"));
    let (name, count) = (job.name(), of.nodes.len());
    let nodes = of.nodes.join(",");
    let why = quoted(&of.told);
    // As a range: its user may have given another.
    let place = format!(
        "update JobId={name} NumNodes={count}-{count} ReqNodeList={nodes} StartTime={start} \
         AdminComment=\"{why}\""
    );
    // Slurm makes a number of cores in all of the least number.
    let least = of.least_cpus.zip(cpus).map(|(least, cpus)| {
        [format!("MinCPUsNode={least}"), format!("NumCPUs={cpus}")]
            .map(|change| format!("update JobId={name} {change}"))
    });
    let limit = of.limit_s.map(|limit_s| limited(job, limit_s));
    let least = least.into_iter().flatten();
    [place].into_iter().chain(least).chain([format!("release {name}")]).chain(limit).collect()
}

/// Commands that leave a held job to Slurm. An earlier commitment may have set its nodes.
fn left(job: Key, of: &Leaving) -> [String; 2] {
    let start = of.begin_s.map_or_else(|| "now".into(), |begin_s| format!("uts{begin_s}"));
    let (name, why) = (job.name(), quoted(&of.told));
    let terms = format!("StartTime={start} ReqNodeList= AdminComment=\"{why}\"");
    [format!("update JobId={name} {terms}"), format!("release {name}")]
}

/// Sets jobs aside that want a generic resource of any type where a node has several types: which
/// of them Slurm would take is not known before.
fn need_types(jobs: &mut [JobSeen], nodes: &[NodeSeen]) {
    let has_types = |name: &str| {
        nodes.iter().any(|node| node.gres.iter().filter(|of| of.name == name).count() > 1)
    };
    for job in jobs {
        let untyped = job.demands.gres.iter().map(|(_, of)| of).find(|of| of.kind.is_none());
        if let Some(of) = untyped.filter(|of| has_types(&of.name)) {
            let name = &of.name;
            let what = format!(
                "--gres={name}: nodes have several types of {name}, and nobody knows before which \
                 of them Slurm takes; write the type, such as --gres={name}:TYPE:{}",
                of.count
            );
            job.foreign.get_or_insert(what);
        }
    }
}

/// Quotes a text as an argument. It may have no apostrophes.
fn quoted(text: &str) -> String {
    let text = text.replace("can't", "cannot").replace("n't", " not");
    let is_plain = |c: &char| (' '..='~').contains(c) && !matches!(c, '"' | '\'' | '\\' | '`');
    text.chars().filter(is_plain).take(TOLD_CHARS).collect()
}

impl Controller for Slurm {
    fn snapshot(&mut self) -> Result<World, Fault> {
        // Columns don't say all that a user may have changed.
        for number in std::mem::take(&mut self.hints.altered) {
            self.details.altered(number);
            let known = self.extras.len();
            self.extras.retain(|key, _| key.job != number);
            if self.extras.len() == known {
                // It may be an element of an array, by a number of its own.
                self.extras.clear();
            }
        }
        let mark = Mark::new();
        let rows = self.rows(&mark, &[])?;
        // Nodes are as new as jobs, or newer: a job does not end on a node that seems to be up.
        let text = self.run("sinfo", &["-h", "-N", "-p", &self.partition, "-o", &node_format()])?;
        let nodes = nodes_of(&text).map_err(Fault::Unreachable)?;
        self.planned = nodes.iter().map(|node| node.name.clone()).collect();
        self.planned.sort_unstable();
        let (mut jobs, unread) = self.read(&rows, &mark);
        self.asked = jobs.iter().map(|job| (job.key, job.asks())).collect();
        self.add_extras(&mut jobs)?;
        self.add_memory(&mut jobs);
        self.restore_sizes(&mut jobs);
        self.add_throttles(&mut jobs);
        self.lay_out(&mut jobs, &nodes);
        need_types(&mut jobs, &nodes);
        self.details.forget();
        let mut remarks = self.read_reservations()?;
        remarks.extend(self.details.failing());
        let closed = self.reservations.clone();
        Ok(World::new(jobs, nodes).with_unread(unread).with_closed(closed, remarks))
    }

    fn hold(&mut self, job: Key) -> Answer {
        self.say(format!("hold {}", job.name()))
    }

    fn hold_all(&mut self, jobs: &[Key]) -> Vec<Answer> {
        let commands: Vec<String> = jobs.iter().map(|job| format!("hold {}", job.name())).collect();
        let answers = self.pipe.say(&commands);
        answers.unwrap_or_else(|why| vec![Err(why); jobs.len()])
    }

    fn comment(&mut self, job: Key, text: &str) -> Answer {
        // As an argument of its own, a text of a user needs no quotes.
        let (id, text) = (format!("JobId={}", job.name()), format!("Comment={text}"));
        self.run("scontrol", &["update", &id, &text]).map(|_| ())
    }

    fn show(&mut self, job: Key, start_s: Option<u64>, why: &str) -> Answer {
        // A time that is over is none.
        let start = start_s.map_or_else(|| "now".into(), |start_s| format!("uts{start_s}"));
        let (name, why) = (job.name(), quoted(why));
        self.say(format!("update JobId={name} StartTime={start} AdminComment=\"{why}\""))
    }

    fn explain(&mut self, job: Key, why: &str) -> Answer {
        self.say(format!("update JobId={} AdminComment=\"{}\"", job.name(), quoted(why)))
    }

    fn commit(&mut self, job: Key, of: &Commitment) -> Answer {
        let own = self.own.get_mut(&job);
        let cpus = of.least_cpus.zip(own).map(|(least, own)| {
            (own.set, own.shown) = (Some(least), None);
            own.of_user.1
        });
        // A job without its nodes is not released.
        commitment(job, of, cpus).into_iter().try_for_each(|it| self.say(it))
    }

    fn leave(&mut self, job: Key, of: &Leaving) -> Answer {
        left(job, of).into_iter().try_for_each(|it| self.say(it))?;
        // Its user may have changed the reservation between the look and the release.
        match self.row(job)?.ok_or(Fault::Gone)? {
            OneRow::Read(seen) if seen.state == JobState::Pending(Hold::No) => {
                if seen.reservation == of.reservation {
                    return Ok(());
                }
                self.hold(job)?;
                Err(Fault::Later)
            }
            OneRow::Read(_) => Ok(()),
            OneRow::Unread { .. } => self.hold(job),
        }
    }

    fn revoke(&mut self, job: Key) -> Result<Revoked, Fault> {
        self.hold(job)?;
        self.row(job)?.ok_or(Fault::Gone)?.revoked()
    }

    fn stop(&mut self, job: Key, why: &str) -> Answer {
        // An end without a reason would look as if nobody knew of it.
        self.explain(job, why)?;
        // Numbers are used again after a crash: this one may be that of another's job by now.
        if self.row(job)?.is_none() {
            return Err(Fault::Gone);
        }
        match self.run("scancel", &[&job.name()]) {
            Ok(_) => Ok(()),
            Err(Fault::Unreachable(why)) if why.contains("Invalid job id") => Err(Fault::Gone),
            Err(fault) => Err(fault),
        }
    }

    fn limit(&mut self, job: Key, limit_s: u64) -> Answer {
        self.say(limited(job, limit_s))
    }

    fn notify(&mut self, job: Key, text: &str) -> Answer {
        self.say(format!("notify {} {}", job.name(), quoted(text)))
    }

    fn events(&mut self) -> Vec<Event> {
        let events = self.hints.take();
        if events.contains(&Event::Resync) {
            self.details.all_altered();
        }
        events
    }
}

impl Served for Slurm {
    fn wait(&mut self, bell: BorrowedFd<'_>, most: Duration) {
        self.hints.wait(Some(bell), most);
    }

    fn take_asked(&mut self) -> HashMap<Key, u64> {
        std::mem::take(&mut self.asked)
    }

    fn asks(&mut self, job: Key) -> Result<Option<u64>, Fault> {
        self.row(job)?.map(|row| row.asks()).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::{commitment, quoted, OneRow};
    use crate::steer::{Commitment, Fault, Key, Revoked};

    /// Slurm has answered, and only this job can't be read.
    #[test]
    fn one_unreadable_row_is_no_silence() {
        let row = |is_waiting| OneRow::Unread { is_waiting };
        assert_eq!(row(Some(true)).revoked(), Ok(Revoked::Held));
        assert_eq!(row(Some(false)).revoked(), Ok(Revoked::AlreadyStarted));
        assert_eq!(row(None).revoked(), Err(Fault::Later));
        assert_eq!(row(Some(true)).asks(), Err(Fault::Later));
    }

    #[test]
    fn a_commitment_ends_with_the_planned_limit() {
        let job = Key { job: 7, index: Some(3), submit_s: 1_764_000_000 };
        let of = Commitment {
            nodes: ["n01", "n02"].map(String::from).into(),
            start_s: Some(1_764_000_100),
            limit_s: Some(90),
            least_cpus: Some(2),
            told: "planned for \"then\" on n[01-02]".into(),
        };
        assert_eq!(
            commitment(job, &of, Some(5)),
            [
                "update JobId=7_3 NumNodes=2-2 ReqNodeList=n01,n02 StartTime=uts1764000100 \
                 AdminComment=\"planned for then on n[01-02]\"",
                "update JobId=7_3 MinCPUsNode=2",
                "update JobId=7_3 NumCPUs=5",
                "release 7_3",
                "update JobId=7_3 TimeLimit=2",
            ]
        );
        let at_once = Commitment { nodes: of.nodes, ..Commitment::default() };
        assert_eq!(commitment(job, &at_once, None).len(), 2);
    }

    #[test]
    fn what_users_write_ends_no_command() {
        assert_eq!(quoted("a\" Priority=1\n\\hold 2`x`é"), "a Priority=1hold 2x");
        assert_eq!(quoted("it can't start, and doesn't"), "it cannot start, and does not");
        assert_eq!(quoted(&"x".repeat(1000)).len(), 300);
    }
}
