// SPDX-License-Identifier: GPL-2.0
//! Resources of a job as a whole: with all processes that its programs started, which are not in
//! the plan.

use pbs_history::{RunFigures, RunUsage};
use pbs_job::Job;
use pbs_launch::cgroup::GroupUsage;
use pbs_launch::Exited;
use pbs_node_api::Usage;
use pbs_plan::Start;
use pbs_text::span;

/// Remedy for a job whose programs start others.
pub const OTHERS_REMEDY: &str =
    "make them processes of the job (jobs.rst), or start the program itself with exec";

/// Describes in words that programs of a job have started others, which used so much time of a CPU.
pub fn others_in_words(others_ns: u64) -> String {
    format!(
        "its programs started others, which used {} of a CPU outside of the plan",
        span(others_ns)
    )
}

/// Resources of a job, as the service and `pbsctl` have them; `None`: nothing is known.
pub fn usage_of(figures: &RunFigures) -> Option<Usage> {
    let RunUsage { group_cpu_ns, programs_cpu_ns, .. } = figures.usage;
    let memory = figures.peak_memory_bytes();
    if memory.is_none() && figures.usage == RunUsage::default() {
        return None;
    }
    let source = |of_group| if of_group { "group" } else { "class" };
    Some(Usage {
        cpu_ns: group_cpu_ns,
        programs_cpu_ns,
        others_cpu_ns: figures.usage.others_cpu_ns(),
        peak_memory_bytes: memory.map(|(bytes, _)| bytes),
        memory_source: memory.map(|(_, of_group)| source(of_group).into()),
        advice: figures
            .usage
            .notable_others_ns()
            .map(|ns| format!("{}: {OTHERS_REMEDY}", others_in_words(ns))),
    })
}

/// Whether the CPU time of all processes of a job is that of its programs. Where programs attach
/// themselves, their children may be processes of the job, too.
fn is_counted_by_programs(job: &Job) -> bool {
    let mut processes = job.processes.iter();
    processes.all(|process| !matches!(process.start, Start::Itself(_)))
}

/// Resources of a run whose programs have ended so.
pub(crate) fn of_ended(group: GroupUsage, job: &Job, exits: &[Exited]) -> RunUsage {
    let ran_ns = exits.iter().map(|exited| {
        let has_ended = exited.end > 0 && !exited.itself;
        Some(exited.ran_ns).filter(|&ns| ns > 0 && has_ended)
    });
    with_programs(group, job, ran_ns)
}

/// Resources of a run with the CPU time of each of its programs; `None`: it is not known of one.
/// Programs that another service has started are not among them.
pub(crate) fn with_programs(
    group: GroupUsage,
    job: &Job,
    programs_ns: impl Iterator<Item = Option<u64>>,
) -> RunUsage {
    let programs_ns: Option<Vec<u64>> = programs_ns.collect();
    let is_whole = |known: &Vec<u64>| !known.is_empty() && known.len() == job.programs();
    let programs_ns = programs_ns.filter(|known| is_whole(known) && is_counted_by_programs(job));
    RunUsage {
        group_cpu_ns: group.cpu_ns,
        programs_cpu_ns: programs_ns.map(|known| known.into_iter().fold(0, u64::saturating_add)),
        group_peak_bytes: group.peak_memory_bytes,
    }
}

#[cfg(test)]
mod tests {
    use pbs_history::{Kind, Outcome, Run, RunId, State};
    use pbs_job::job_from_toml;
    use pbs_report::Exit;

    use super::*;

    const MS: u64 = 1_000_000;

    fn job(attaches: &str) -> Job {
        let text = format!(
            "name = \"j\"\ndeadline_ns = 1000\n[[process]]\nid = 1\nmemory_bytes = 5\n\
             command = [\"a\"]\ntasks = [7]\n[[process]]\nid = 2\nmemory_bytes = 5\n{attaches}\
             command = [\"b\"]\ntasks = [7]\n"
        );
        job_from_toml(&text).unwrap()
    }

    fn exited(ran_ns: u64, end: u64) -> Exited {
        let exit = Exit {
            process: 1,
            program: "a".into(),
            pid: 7,
            code: Some(0),
            signal: None,
            error: None,
        };
        Exited { exit, task: None, itself: false, ran_ns, end, was_signalled: false }
    }

    /// All programs of a job must be known: the time of one that is not would look like that of
    /// others.
    #[test]
    fn time_of_others_needs_that_of_each_program() {
        let group = GroupUsage { cpu_ns: Some(900 * MS), peak_memory_bytes: None };
        let others_ms = |attaches: &str, exits: &[Exited]| {
            let usage = of_ended(group, &job(attaches), exits);
            assert_eq!(usage.group_cpu_ns, Some(900 * MS));
            usage.others_cpu_ns().map(|ns| ns / MS)
        };
        assert_eq!(others_ms("", &[exited(100 * MS, 1), exited(200 * MS, 2)]), Some(600));
        // Another service has started one, or all.
        assert_eq!(others_ms("", &[exited(100 * MS, 1)]), None);
        assert_eq!(others_ms("", &[]), None);
        // Nobody has measured one, or it has not ended.
        assert_eq!(others_ms("", &[exited(100 * MS, 1), exited(0, 2)]), None);
        assert_eq!(others_ms("", &[exited(100 * MS, 1), exited(200 * MS, 0)]), None);
        // The children of one that attaches itself may be in the plan.
        let both = [exited(100 * MS, 1), exited(200 * MS, 2)];
        assert_eq!(others_ms("attaches = \"itself\"\n", &both), None);
        let unread = of_ended(GroupUsage::default(), &job(""), &both);
        assert_eq!((unread.group_cpu_ns, unread.others_cpu_ns()), (None, None));
    }

    fn figures(usage: RunUsage) -> RunFigures {
        let run = Run {
            id: RunId(1),
            job: "j".into(),
            kind: Kind::Plan,
            state: State::Over,
            submitted_unix_ns: 1,
            ended_unix_ns: Some(2),
            outcome: Some(Outcome::Complete),
            processes: 0,
        };
        RunFigures { run, processes: Vec::new(), usage }
    }

    /// The owner of a job is told what to change, and only if it is worth it.
    #[test]
    fn advice_is_for_jobs_whose_programs_start_others() {
        assert_eq!(usage_of(&figures(RunUsage::default())), None);
        let of = |others_ms: u64| {
            let usage = RunUsage {
                group_cpu_ns: Some((200 + others_ms) * MS),
                programs_cpu_ns: Some(200 * MS),
                group_peak_bytes: Some(5 << 20),
            };
            usage_of(&figures(usage)).unwrap()
        };
        let told = of(3_200);
        assert_eq!(told.advice.as_deref(), Some(
            "its programs started others, which used 3.2 s of a CPU outside of the plan: make them \
             processes of the job (jobs.rst), or start the program itself with exec"
        ));
        assert_eq!(told.others_cpu_ns, Some(3_200 * MS));
        let memory = (told.peak_memory_bytes, told.memory_source.as_deref());
        assert_eq!(memory, (Some(5 << 20), Some("group")));
        let little = of(5);
        assert_eq!((little.others_cpu_ns, little.advice), (Some(5 * MS), None));
        let unknown = RunUsage { group_cpu_ns: Some(5), ..RunUsage::default() };
        let unknown = usage_of(&figures(unknown)).unwrap();
        assert_eq!((unknown.cpu_ns, unknown.others_cpu_ns), (Some(5), None));
        assert_eq!((unknown.peak_memory_bytes, unknown.memory_source), (None, None));
    }
}
