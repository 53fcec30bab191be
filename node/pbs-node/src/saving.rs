// SPDX-License-Identifier: GPL-2.0
//! Jobs that save their work (Leppert 2021, 6.2.3): before the node ends such a job, it notifies its
//! programs and gives them the time that the job declares, up to a bound of the node.
//!
//! Meanwhile the job has the slots, the memory and the resources that it was promised, and the time
//! that no plan has promised to others.

use std::time::Duration;

use pbs_history::RunId;
use pbs_job::Checkpoint;
use pbs_launch::NoticeSignal;

use crate::programs::Programs;
use crate::save_request::SaveRequest;
use crate::{Error, Listener, Node};

impl<L: Listener> Node<L> {
    /// Asks the programs of a run to save their work now, as its job declares it. Returns the number
    /// of processes.
    ///
    /// # Errors
    ///
    /// Fails if the run does not run, or its job declares no checkpoint.
    pub fn checkpoint_run(&self, id: RunId) -> Result<usize, Error> {
        let run = self.jobs.iter().flat_map(|jobs| &jobs.runs).find(|run| run.id == Some(id));
        let job = &run.ok_or(Error::DoesNotRun(id))?.job;
        let checkpoint = job.checkpoint.as_ref();
        let checkpoint = checkpoint.ok_or_else(|| Error::NoCheckpoint(id, job.name.clone()))?;
        self.notify_run(id, notice(&checkpoint.signal)?)
    }

    /// Asks the programs of a run to save their work before it is ended; `None`: they cannot, or
    /// were asked before.
    pub(crate) fn ask_to_save(&self, id: RunId) -> Option<SaveRequest> {
        let run = self.jobs.iter().flat_map(|jobs| &jobs.runs).find(|run| run.id == Some(id))?;
        let checkpoint = run.job.checkpoint.as_ref().filter(|_| run.cancelled.is_none())?;
        self.programs.ask_to_save(run.run, checkpoint, self.options.checkpoint_ns)
    }
}

impl Programs {
    /// Asks the programs of a run to save their work. The time for it is at most `most_ns`; 0: they
    /// are not asked. `None`: no process of the run handles the signal.
    fn ask_to_save(
        &self,
        run: pbs_planner::RunId,
        checkpoint: &Checkpoint,
        most_ns: u64,
    ) -> Option<SaveRequest> {
        // The check of the job has refused any other signal.
        let signal = notice(&checkpoint.signal).ok().filter(|_| most_ns > 0)?;
        // Programs that nobody can notify are told to end at once.
        let processes = self.notify(run, signal).ok().filter(|&processes| processes > 0)?;
        let within = Duration::from_nanos(checkpoint.within_ns.min(most_ns));
        Some(SaveRequest { signal: checkpoint.signal.clone(), processes, within })
    }
}

/// The signal of a checkpoint, which was checked with its job.
fn notice(signal: &str) -> Result<NoticeSignal, Error> {
    let invalid = |why| Error::Programs(std::io::Error::other::<String>(why));
    signal.parse().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use pbs_launch::cgroup::GroupLimits;

    use super::*;

    /// A program that handles the signal is asked, within the bound of the node; another is not.
    #[test]
    fn only_programs_that_can_save_their_work_are_asked() {
        let parent = std::env::temp_dir().join(format!("pbs-asked-{}", std::process::id()));
        let group = parent.join("job-7");
        fs::create_dir_all(&group).unwrap();
        let mut programs = Programs::default();
        let run = pbs_planner::RunId(3);
        programs.open_cgroup(run, Some(RunId(7)), &parent, GroupLimits::default()).unwrap();
        let checkpoint = Checkpoint { signal: "USR1".into(), within_ns: 5_000 };
        let start = |program: &str| {
            let child = Command::new("sh").args(["-c", program]).spawn().unwrap();
            fs::write(group.join("cgroup.procs"), format!("{}\n", child.id())).unwrap();
            child
        };
        let mut deaf = start("exec sleep 60");
        assert_eq!(programs.ask_to_save(run, &checkpoint, 9_000), None);
        assert_eq!(deaf.try_wait().unwrap(), None);
        deaf.kill().unwrap();
        deaf.wait().unwrap();
        let mut saves = start("trap 'exit 7' USR1; while :; do sleep 0.01; done");
        assert_eq!(programs.ask_to_save(run, &checkpoint, 0), None);
        // It sets its handler in its own time.
        let asked = || programs.ask_to_save(run, &checkpoint, 2_000);
        let request = std::iter::repeat_with(asked).flatten().next().unwrap();
        assert_eq!((request.processes, request.within), (1, Duration::from_nanos(2_000)));
        assert_eq!(saves.wait().unwrap().code(), Some(7));
        assert_eq!(programs.ask_to_save(run, &checkpoint, 9_000), None);
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn a_request_names_its_signal_and_its_time() {
        let within = Duration::from_secs(2);
        let request = SaveRequest { signal: "USR1".into(), processes: 3, within };
        let words = "was asked to save itself (USR1 to 3 processes, within 2 s)";
        assert_eq!(request.to_string(), words);
    }
}
