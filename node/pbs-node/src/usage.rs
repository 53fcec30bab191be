// SPDX-License-Identifier: GPL-2.0
//! Resources of a job as a whole: with all processes that its programs started, which are not in
//! the plan.

use pbs_history::RunUsage;
use pbs_job::Job;
use pbs_launch::cgroup::GroupUsage;
use pbs_launch::Exited;
use pbs_plan::Start;

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
}
