// SPDX-License-Identifier: GPL-2.0
//! Memory that a job takes.

use pbs_plan::Command;

use crate::{Amount, Job, Process, Task};

impl Job {
    /// Returns the bytes of memory that the job takes, by the lengths of its parts. The allocator
    /// adds to that.
    pub fn held_bytes(&self) -> usize {
        let processes = self.processes.iter().map(process_bytes);
        let tasks = self.tasks.iter().map(task_bytes);
        size_of::<Self>()
            + self.name.len()
            + self.checkpoint.as_ref().map_or(0, |it| it.signal.len())
            + size_of_val(&self.cpus[..])
            + amounts_bytes(&self.resources)
            + processes.sum::<usize>()
            + tasks.sum::<usize>()
    }

    /// Number of programs that are started for the job.
    pub fn programs(&self) -> usize {
        self.processes.iter().map(|process| process.start.commands().len()).sum()
    }
}

fn process_bytes(process: &Process) -> usize {
    let commands = process.start.commands().iter().map(command_bytes);
    size_of::<Process>()
        + process.name.as_ref().map_or(0, String::len)
        + size_of_val(&process.cpus[..])
        + amounts_bytes(&process.resources)
        + size_of_val(&process.tasks[..])
        + commands.sum::<usize>()
}

fn amounts_bytes(amounts: &[Amount]) -> usize {
    let names = amounts.iter().map(|amount| amount.resource.len());
    size_of_val(amounts) + names.sum::<usize>()
}

fn command_bytes(command: &Command) -> usize {
    let words = command.argv.iter().map(|word| size_of::<String>() + word.len());
    let files = [&command.stdin, &command.stdout, &command.stderr];
    let files = files.into_iter().flatten().map(|file| file.as_os_str().len());
    size_of::<Command>() + words.sum::<usize>() + files.sum::<usize>()
}

fn task_bytes(task: &Task) -> usize {
    size_of::<Task>()
        + task.name.as_ref().map_or(0, String::len)
        + size_of_val(&task.senders[..])
        + size_of_val(&task.after[..])
        + size_of_val(&task.before[..])
}
