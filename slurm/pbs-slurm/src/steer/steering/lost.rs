// SPDX-License-Identifier: GPL-2.0
//! Jobs that the batch system lost in a crash. They have no comment any more; their users are told
//! with their other jobs.

use std::collections::{BTreeMap, HashSet};

use pbs_manager::Manager;

use super::{date, Shown, Steer};
use crate::steer::controller::TOLD_CHARS;
use crate::steer::link::Link;
use crate::steer::seen::{JobSeen, JobState, Key};

/// Time for which a user is told of a lost job: a day.
const TOLD_FOR_S: u64 = 86_400;
/// Lost jobs of a user that are remembered.
const MOST_OF_USER: usize = 100;
/// Lost jobs that a text names; it counts the others.
const MOST_NAMED: usize = 2;
/// Longest part of a job's name in a text.
const NAME_CHARS: usize = 20;

/// Part of a word that becomes a character longer when it is written as an argument.
const GROWING: &str = "n't";
/// Mark of a text that is cut.
const CUT: &str = "...";

/// A lost job: the time at which it was missed, its number, and its name.
#[derive(Debug)]
struct LostJob {
    lost_s: u64,
    number: String,
    name: String,
}

/// Lost jobs of each user, in the order in which they were missed.
#[derive(Debug, Default)]
pub(super) struct LostJobs {
    of_user: BTreeMap<String, Vec<LostJob>>,
}

impl LostJobs {
    /// Notes a lost job.
    pub(super) fn note(&mut self, user: &str, key: Key, name: &str, lost_s: u64) {
        let all = self.of_user.entry(user.into()).or_default();
        if all.len() == MOST_OF_USER {
            all.remove(0);
        }
        let name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        all.push(LostJob { lost_s, number: key.name(), name });
    }

    /// Forgets jobs of which users have been told for long enough, and returns these users.
    fn forget(&mut self, now_s: u64) -> HashSet<String> {
        let mut users = HashSet::new();
        for (user, all) in &mut self.of_user {
            let before = all.len();
            all.retain(|lost| now_s < lost.lost_s.saturating_add(TOLD_FOR_S));
            if all.len() < before {
                users.insert(user.clone());
            }
        }
        self.of_user.retain(|_, all| !all.is_empty());
        users
    }

    /// Names the lost jobs of a user, and the time at which the last one was missed; `None`: there
    /// are none.
    fn named(&self, user: &str) -> Option<(String, u64)> {
        let all = self.of_user.get(user)?;
        let named = all.iter().rev().take(MOST_NAMED);
        let named = named.map(|lost| format!("{} ({})", lost.number, lost.name));
        let mut text = named.collect::<Vec<_>>().join(", ");
        if let Some(more) = all.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
            text += &format!(" and {more} more");
        }
        let jobs = if all.len() == 1 { "job" } else { "jobs" };
        Some((format!("{jobs} {text}"), all.last()?.lost_s))
    }
}

impl Steer {
    /// A text for the user of a job, with the jobs of that user that were lost.
    pub(super) fn with_lost(&self, manager: &Manager<Link>, key: Key, text: &str) -> String {
        let user = self.world.job(key).map(|job| &job.user);
        match user.and_then(|user| self.lost.named(user)) {
            None => text.into(),
            Some((jobs, lost_s)) => {
                let date = date(manager, lost_s);
                let note = format!(
                    "; lost in a crash of slurmctld by {date}, to be submitted again: {jobs}"
                );
                with_note(text, &note)
            }
        }
    }

    /// Forgets lost jobs after a while, which the other jobs of their users name no longer then.
    pub(super) fn forget_lost(&mut self, now_s: u64) {
        let users = self.lost.forget(now_s);
        if !users.is_empty() {
            let jobs = std::mem::take(&mut self.world.jobs);
            self.show_lost(&jobs, &users);
            self.world.jobs = jobs;
        }
    }

    /// Shows the waiting jobs of users anew who have lost jobs since.
    pub(super) fn show_lost(&mut self, jobs: &[JobSeen], users: &HashSet<String>) {
        let waits = |job: &&JobSeen| matches!(job.state, JobState::Pending(_));
        for job in jobs.iter().filter(waits).filter(|job| users.contains(&job.user)) {
            if let Some(of) = self.jobs.get_mut(&job.key) {
                of.shown = Shown::Stale;
            } else if let Some(of) = self.declined.get_mut(&job.key) {
                // The reason takes the place of a reminder, which is shown again then.
                of.is_reminded = false;
                self.untold.entry(job.key).or_default();
            }
        }
    }
}

/// A text with a note behind it, for which the text is cut if both are too long.
fn with_note(text: &str, note: &str) -> String {
    let growth = text.matches(GROWING).count() + note.matches(GROWING).count();
    let room = TOLD_CHARS.saturating_sub(note.chars().count() + growth);
    if text.chars().count() <= room {
        return format!("{text}{note}");
    }
    let begin: String = text.chars().take(room.saturating_sub(CUT.len())).collect();
    format!("{}{CUT}{note}", begin.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_told_of_few_lost_jobs_for_a_day() {
        let mut lost = LostJobs::default();
        let key = |job| Key { job, index: None, submit_s: 0 };
        assert_eq!(lost.named("anna"), None);
        lost.note("anna", key(7), "a\nb", 1000);
        assert_eq!(lost.named("anna"), Some(("job 7 (ab)".into(), 1000)));
        assert_eq!(lost.named("bert"), None);
        for job in 8..300 {
            lost.note("anna", key(job), &"x".repeat(1000), 2000);
        }
        let (text, lost_s) = lost.named("anna").unwrap();
        let name = "x".repeat(NAME_CHARS);
        assert_eq!(text, format!("jobs 299 ({name}), 298 ({name}) and 98 more"));
        assert!(lost.forget(lost_s + TOLD_FOR_S - 1).is_empty());
        assert!(lost.named("anna").is_some());
        assert_eq!(lost.forget(lost_s + TOLD_FOR_S), HashSet::from(["anna".into()]));
        assert!(lost.of_user.is_empty());
    }

    #[test]
    fn a_note_has_its_room_behind_any_text() {
        assert_eq!(with_note("waits", "; note"), "waits; note");
        let long = with_note(&"x ".repeat(300), "; note");
        assert!(long.ends_with("x...; note") && long.len() <= TOLD_CHARS, "{long}");
        let growing = with_note(&"can't ".repeat(100), "; note");
        assert!(growing.replace("can't", "cannot").len() <= TOLD_CHARS, "{growing}");
        assert!(with_note("waits", &"n".repeat(400)).starts_with("..."));
    }
}
