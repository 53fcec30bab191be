// SPDX-License-Identifier: GPL-2.0
//! In which order the programs of a job can be started by who can't look into them.
//!
//! A task with instructions is a program, or a part of one that marks the ends of its tasks
//! itself; one without is none, and ends as soon as all has that it waits for. A program is
//! started when its first task can be; all its tasks have ended when it has. What is in the
//! middle of a program that marks its tasks can't be told apart: a process that it forks is
//! taken to be forked when it is started, and it does not wait for others in between.

use pbs_job::{Action, Command, Job, Start};

/// A program of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    pub(crate) command: &'a Command,
    /// Number of the process in messages.
    pub(crate) process: u32,
    /// Index of its first task.
    first: usize,
}

/// Progress of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waits,
    Runs,
    Ended,
}

/// The programs of a job with what each waits for.
pub(crate) struct Net<'a> {
    job: &'a Job,
    pub(crate) programs: Vec<Program<'a>>,
    /// Program of each task; `None`: no program.
    of_task: Vec<Option<usize>>,
}

impl<'a> Net<'a> {
    /// # Errors
    ///
    /// In words: a process has nothing to run.
    pub(crate) fn new(job: &'a Job) -> Result<Self, String> {
        let mut programs = Vec::new();
        let mut of_task = vec![None; job.tasks.len()];
        for process in &job.processes {
            let planned = process.tasks.iter().copied();
            let mut planned = planned.filter(|&task| job.tasks[task].insns > 0).peekable();
            let Some(&first) = planned.peek() else {
                continue;
            };
            let commands = process.start.commands();
            if commands.is_empty() {
                return Err(format!("process {} has nothing to run", process.id));
            }
            if matches!(process.start, Start::Commands(_)) {
                for (command, task) in commands.iter().zip(planned) {
                    of_task[task] = Some(programs.len());
                    programs.push(Program { command, process: process.id, first: task });
                }
                continue;
            }
            // All that lies between its tasks is in it as well.
            let own = process.tasks.iter().skip_while(|&&task| task != first);
            let last = planned.last();
            for &task in own {
                of_task[task] = Some(programs.len());
                if Some(task) == last {
                    break;
                }
            }
            programs.push(Program { command: &commands[0], process: process.id, first });
        }
        Ok(Self { job, programs, of_task })
    }

    /// Programs that can be started at these stages.
    pub(crate) fn ready(&self, stages: &[Stage]) -> Vec<usize> {
        let ended = self.ended(stages);
        let programs = self.programs.iter().enumerate();
        let ready = programs.filter(|(index, program)| {
            let mut before = self.job.predecessors(program.first);
            stages[*index] == Stage::Waits && before.all(|task| ended[task])
        });
        ready.map(|(index, _)| index).collect()
    }

    /// Per task: whether it has ended. The net of a job has no cycle, so what is said of one
    /// depends on fewer and fewer others, and is looked for until there is no more.
    fn ended(&self, stages: &[Stage]) -> Vec<bool> {
        let of_program = |task: usize, program: usize| match stages[program] {
            Stage::Waits => false,
            Stage::Runs => matches!(self.job.tasks[task].action, Action::Fork { .. }),
            Stage::Ended => true,
        };
        let tasks = self.of_task.iter().enumerate();
        let mut ended: Vec<bool> = tasks
            .map(|(task, program)| program.is_some_and(|program| of_program(task, program)))
            .collect();
        loop {
            let free = (0..ended.len()).filter(|&task| {
                !ended[task]
                    && self.of_task[task].is_none()
                    && self.job.predecessors(task).all(|before| ended[before])
            });
            let free: Vec<_> = free.collect();
            if free.is_empty() {
                return ended;
            }
            for task in free {
                ended[task] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbs_job::job_from_toml;

    fn job(text: &str) -> Job {
        let head = "name = \"j\"\ndeadline_ns = 9_000_000_000\n";
        job_from_toml(&format!("{head}{text}")).unwrap_or_else(|problems| {
            panic!("{problems:?}");
        })
    }

    /// In which rounds the programs of a job are started, each by its name, if all of a round
    /// end before the next.
    fn rounds(job: &Job) -> Vec<Vec<&str>> {
        let net = Net::new(job).unwrap();
        let mut stages = vec![Stage::Waits; net.programs.len()];
        let mut rounds = Vec::new();
        loop {
            let mut round = Vec::new();
            // Some can be started as soon as others are.
            loop {
                let ready = net.ready(&stages);
                if ready.is_empty() {
                    break;
                }
                for index in ready {
                    stages[index] = Stage::Runs;
                    round.push(net.programs[index].command.argv[0].as_str());
                }
            }
            if round.is_empty() {
                assert!(stages.iter().all(|stage| *stage == Stage::Ended));
                return rounds;
            }
            rounds.push(round);
            stages.fill_with(|| Stage::Ended);
            for (index, stage) in stages.iter_mut().enumerate() {
                let name = net.programs[index].command.argv[0].as_str();
                if !rounds.iter().flatten().any(|it| *it == name) {
                    *stage = Stage::Waits;
                }
            }
        }
    }

    const FORKS: &str = r#"
[[process]]
id = 1
memory_bytes = 4096
commands = [["a"], ["b"], ["c"]]
tasks = [
    { name = "a", insns = 10 },
    { action = "fork", child = 2 },
    { name = "b", insns = 10 },
    { action = "join", child = 2 },
    { name = "c", insns = 10 },
]
[[process]]
id = 2
memory_bytes = 4096
commands = [["d"], ["e"]]
tasks = [{ insns = 10 }, { insns = 10 }]
"#;

    #[test]
    fn programs_run_in_the_order_of_their_net() {
        let forks = job(FORKS);
        assert_eq!(rounds(&forks), [&["a"][..], &["b", "d"], &["e"], &["c"]]);
        let after = FORKS
            .replace("tasks = [{ insns = 10 }, ", "tasks = [{ insns = 10, after = [\"b\"] }, ");
        let after = job(&after);
        assert_eq!(rounds(&after), [["a"], ["b"], ["d"], ["e"], ["c"]]);
    }

    /// One that marks its own tasks is one program, and what it forks begins with it: its end
    /// is not waited for, as it may wait itself.
    #[test]
    fn forked_processes_begin_beside_their_program() {
        let stages = include_str!("../../../samples/jobs/stages.toml");
        let stages = job_from_toml(stages).unwrap();
        assert_eq!(rounds(&stages), [["pbs_stages", "pbs-stages"]]);
    }

    #[test]
    fn a_process_without_a_program_is_reported() {
        let none = job("[[process]]\nid = 7\nmemory_bytes = 4096\ntasks = [10]\n");
        let told = Net::new(&none).err();
        assert_eq!(told.as_deref(), Some("process 7 has nothing to run"));
    }
}
