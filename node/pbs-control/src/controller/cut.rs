// SPDX-License-Identifier: GPL-2.0
//! Cancellation of what depends on processes that ended before their tasks did.

use super::{ActiveRun, Cancelled, Controller};
use crate::End;
use pbs_planner::RunId;

/// Processes of a run that ended before their tasks did, and whose dependents are not cancelled
/// yet. A look at a run goes through all its tasks: one is for all processes that were cut since
/// the last.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    /// Processes whose dependents are cancelled at once.
    at_once: Vec<usize>,
    /// Whether a process was cut since the last look at all that were. Before the first look,
    /// nobody knows: another planner may have had the run.
    is_new: bool,
}

impl Default for Cuts {
    fn default() -> Self {
        Self { at_once: Vec::new(), is_new: true }
    }
}

impl Cuts {
    /// Notes a process that was cut, and does not come back.
    pub(super) fn at_once(&mut self, process: usize) {
        self.at_once.push(process);
        self.is_new = true;
    }

    /// Notes that a process was cut which may come back before the next plan.
    pub(super) fn later(&mut self) {
        self.is_new = true;
    }
}

impl ActiveRun {
    /// Notes that a process has a thread on this core. One that comes back may be one that can't go
    /// on.
    pub(super) fn attached(&mut self, process: usize, core: usize) {
        let track = &mut self.tracks[process];
        if track.end() == Some(End::Cut) {
            self.cuts.is_new = true;
        }
        track.attached(core);
    }

    /// Cancels what can't go on, directly or through others, since processes ended before their
    /// tasks did: whole processes, for what is left of one would only wait. What does not depend on
    /// them goes on. Returns the processes that the node knows of.
    fn cancel_after(&mut self, run: RunId, cut: &[usize]) -> Vec<Cancelled> {
        if cut.is_empty() {
            return Vec::new();
        }
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        let ended = self.ended();
        let job = &self.job;
        let open = |process: usize| {
            let tasks = job.processes[process].tasks.iter();
            tasks.copied().filter(|&task| !ended[task])
        };
        let mut is_gone = vec![false; job.processes.len()];
        let mut cancelled = Vec::new();
        for &cut in cut {
            let mut gone = vec![cut];
            is_gone[cut] = true;
            let mut next = 0;
            while let Some(&process) = gone.get(next) {
                next += 1;
                for after in open(process).flat_map(|task| job.successors(task)) {
                    let process = job.tasks[after].process;
                    let is_over = self.tracks[process].end().is_some();
                    if !is_over && !std::mem::replace(&mut is_gone[process], true) {
                        gone.push(process);
                    }
                }
            }
            for &process in &gone[1..] {
                // One that only forks and joins is nowhere but in the job.
                let runs = open(process).any(|task| self.expected_insns[task] > 0);
                self.tracks[process].ended(End::Cancelled);
                if runs {
                    cancelled.push(Cancelled { run, process, cut });
                }
            }
        }
        cancelled
    }
}

impl Controller {
    /// Cancels the dependents of processes that were cut and do not come back.
    pub(super) fn cancel_at_once(&mut self) {
        for (&run, active) in &mut self.runs {
            let cut = std::mem::take(&mut active.cuts.at_once);
            let cancelled = active.cancel_after(run, &cut);
            self.failed |= !cancelled.is_empty();
            self.cancelled.extend(cancelled);
        }
    }

    /// Cancels the dependents of all processes that were cut, also before a take-over, or by
    /// leaving the class. The next plan will contain neither these processes nor the dependencies
    /// on them.
    pub(super) fn cancel_cut(&mut self) {
        let planned = self.runs.iter_mut().filter(|(_, active)| !active.has_no_place);
        for (&run, active) in planned {
            if !std::mem::replace(&mut active.cuts.is_new, false) {
                continue;
            }
            let tracks = active.tracks.iter().enumerate();
            let cut = tracks.filter(|(_, track)| track.end() == Some(End::Cut));
            let cut: Vec<_> = cut.map(|(process, _)| process).collect();
            let cancelled = active.cancel_after(run, &cut);
            self.failed |= !cancelled.is_empty();
            self.cancelled.extend(cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use pbs_job::{Action, Core, Job, Machine, Node, Process, Task};
    use pbs_planner::RunId;
    use pbs_uapi::{Event, EventKind};

    use super::super::{ActiveRun, Controller, Options};
    use crate::track::Track;
    use crate::End;

    thread_local! {
        /// Number of looks at all tasks of a run.
        pub(super) static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    /// Number of processes of the job, each of a task.
    const PROCESSES: usize = 200;

    /// A job whose last process waits for the one before it.
    fn job() -> Job {
        let task = |number: usize| Task {
            id: number as u32,
            name: None,
            process: number,
            position: 0,
            action: Action::Calculation,
            insns: 1000,
            memory_bytes: 0,
            message_bytes: None,
            senders: Vec::new(),
            after: if number == PROCESSES - 1 { vec![number - 1] } else { Vec::new() },
            before: if number == PROCESSES - 2 { vec![number + 1] } else { Vec::new() },
            line: None,
        };
        Job {
            tasks: (0..PROCESSES).map(task).collect(),
            processes: (0..PROCESSES)
                .map(|number| Process { tasks: vec![number], ..Process::default() })
                .collect(),
            ..Job::default()
        }
    }

    #[test]
    fn a_run_is_looked_at_once_for_all_processes_that_were_cut() {
        let core = Core { name: "0".into(), cpu: Some(0), rate_insns_per_s: 1_000_000_000 };
        let node = Node { name: "n".into(), memory_bytes: 1, cores: vec![core], line: None };
        let machine = Machine { nodes: vec![node], ..Machine::default() };
        let mut controller = Controller::new(machine, Options::default(), 1, 1);
        let tracks = vec![Track::default(); PROCESSES];
        controller.runs.insert(RunId(1), ActiveRun::new(Arc::new(job()), tracks));
        let looks = |controller: &mut Controller, look: &dyn Fn(&mut Controller)| {
            let before = LOOKS.get();
            look(controller);
            LOOKS.get() - before
        };
        // All but the last are killed at once.
        for process in 0..PROCESSES - 1 {
            let kind = EventKind::ProcessEnded as u16;
            let process = controller.ids.get(RunId(1), process);
            controller.event(&Event { kind, process, value: 1, ..Event::default() });
        }
        let cancels = |controller: &mut Controller| {
            let cancelled = controller.cancelled();
            assert_eq!(cancelled.len(), 1);
            assert_eq!((cancelled[0].process, cancelled[0].cut), (PROCESSES - 1, PROCESSES - 2));
        };
        assert_eq!(looks(&mut controller, &cancels), 1);
        // A plan looks at all that were cut, and the next one need not.
        assert_eq!(looks(&mut controller, &Controller::cancel_cut), 1);
        assert_eq!(looks(&mut controller, &Controller::cancel_cut), 0);
        assert!(controller.cancelled().is_empty());
        let ends = controller.ends(RunId(1)).unwrap();
        assert!(ends[..PROCESSES - 1].iter().all(|end| *end == Some(End::Cut)), "{ends:?}");
        assert_eq!(ends[PROCESSES - 1], Some(End::Cancelled));
    }
}
