// SPDX-License-Identifier: GPL-2.0
//! Times of jobs that wait for their start, or were submitted before the boot.

use pbs_history::{Kind, NewRun, State};

use super::*;
use crate::clock::since_1970;
use crate::ClosedRun;

/// Runs that were closed, in words.
#[derive(Default)]
struct Hears(Vec<String>);

impl Listener for Hears {
    fn closed(&mut self, closed: &ClosedRun<'_>) {
        let ClosedRun { run, job, kept, .. } = closed;
        self.0.push(format!("{run} {job} {} {kept:?}", closed.in_words()));
    }
}

/// The plan of a job is in force before the time for which it was made, and its slots come as
/// much earlier. One that waits for its start does not begin before.
#[test]
fn a_job_is_not_planned_before_its_start() {
    let directory = scratch("pbs-start");
    let mut jobs = open(&directory);
    for start_ns in [0, 1_000_000, 2 * SECOND_NS] {
        let text = order(start_ns, 900 * SECOND_NS, |_| {}).submission.request;
        let text = format!("start_ns = {start_ns}\n{text}");
        let submission = Submission::from_text(text, "start.toml".into()).unwrap();
        let terms = Terms::new(pbs_launch::Owner::new(1000, 1000));
        let id = jobs.order(vec![Order::new(submission, terms)], &mut Nobody).unwrap()[0];
        let active = jobs.runs.iter().find(|run| run.id == Some(id)).unwrap();
        let planned_ns = jobs.controller.planned_start_ns(active.run).unwrap();
        assert_eq!(active.job.start_ns, active.submitted_ns + start_ns);
        if start_ns > 0 {
            assert!(planned_ns >= active.job.start_ns + crate::LEAD_NS, "{start_ns}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A program that is granted the CPU before the start of its job sleeps there: the job has not
/// begun, and has no start if it is cancelled then.
#[test]
fn a_job_that_sleeps_until_its_start_has_not_begun() {
    let directory = scratch("pbs-sleep");
    let mut world = World::new(&directory);
    let cases = [
        (EventKind::Grant, Some(5)),
        (EventKind::TaskEnded, Some(0)),
        (EventKind::ProcessEnded, None),
    ];
    for (next, begun_after_ns) in cases {
        let text = order(world.name(), 900 * SECOND_NS, |_| {}).submission.request;
        let text = format!("start_ns = {}\n{text}", 100 * SECOND_NS);
        let submission = Submission::from_text(text, "start.toml".into()).unwrap();
        let terms = Terms::new(pbs_launch::Owner::new(1000, 1000));
        let orders = vec![Order::new(submission, terms)];
        let id = world.jobs.order(orders, &mut Nobody).unwrap()[0];
        let plan = world.start();
        let active = world.jobs.runs.iter().find(|run| run.id == Some(id)).unwrap();
        let (run, start_ns) = (active.run, active.job.start_ns);
        let start_unix_ns = active.unix_ns(start_ns);
        let number = world.jobs.numbers(run)[0];
        world.event(&plan, number, EventKind::Attached, start_ns - SECOND_NS, 0);
        world.event(&plan, number, EventKind::Grant, start_ns - SECOND_NS, 0);
        world.event(&plan, number, EventKind::Preempted, start_ns - SECOND_NS / 2, 0);
        world.has_not_begun(id, "planned");
        if begun_after_ns.is_none() {
            let why = "cancelled by anna".to_string();
            assert!(world.jobs.cancel(id, why, &mut Nobody).unwrap().is_some());
            world.event(&plan, number, next, start_ns - 1, 1);
        } else {
            world.event(&plan, number, next, start_ns + 5, 0);
            assert_eq!(world.standing(id).state, "running");
        }
        let ended = EndedPrograms::default();
        assert!(world.jobs.finish(run, ended, &mut Nobody).is_some());
        let begun_unix_ns = begun_after_ns.map(|ns| start_unix_ns + ns);
        assert_eq!(world.standing(id).begun_unix_ns, begun_unix_ns, "{next:?}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A job that was submitted an hour before the boot has the same times for the service, for who
/// reads the history, and when the machine went down while it ran.
#[test]
fn a_job_from_before_the_boot_has_its_times() {
    const HOUR_NS: u64 = 3600 * SECOND_NS;
    let directory = scratch("pbs-boot");
    let mut world = World::new(&directory);
    let deadline_ns = crate::clock::monotonic_ns() + 2 * HOUR_NS;
    let Order { submission, terms, .. } = order(world.name(), deadline_ns, |_| {});
    let noted = crate::orders::Noted { terms, ending: crate::Ending::default() };
    let submitted_unix_ns = since_1970(0) - HOUR_NS;
    let new = NewRun {
        job: &submission.job.name,
        kind: Kind::Plan,
        submitted_unix_ns,
        request: &submission.request,
        reservation: "",
        order: Some(&noted.order()),
    };
    let id = world.jobs.ledger.take_in(&[new]).unwrap()[0];
    world.jobs.find_orders(&mut Nobody).unwrap();
    world.jobs.promote(&mut Nobody);
    let is_about = |unix_ns: Option<u64>, expected_unix_ns: u64| {
        assert!(unix_ns.unwrap().abs_diff(expected_unix_ns) < 60 * SECOND_NS, "{unix_ns:?}");
    };
    let deadline_unix_ns = submitted_unix_ns + deadline_ns;
    assert_eq!(world.standing(id).reason, None);
    is_about(world.standing(id).deadline_unix_ns, deadline_unix_ns);
    let plan = world.start();
    let run = world.jobs.runs.iter().find(|run| run.id == Some(id)).unwrap().run;
    let number = world.jobs.numbers(run)[0];
    let begin_ns = crate::clock::monotonic_ns();
    world.event(&plan, number, EventKind::Grant, begin_ns, 0);
    let standing = world.standing(id);
    is_about(standing.begun_unix_ns, since_1970(begin_ns));
    world.is_in_the_history(&standing);
    // Its deadline counts from its submission, and not from the boot.
    let altered =
        crate::Alteration { deadline_ns: Some(deadline_ns + HOUR_NS), ..Default::default() };
    world.jobs.alter(id, altered, &mut Nobody).unwrap();
    is_about(world.standing(id).deadline_unix_ns, deadline_unix_ns + HOUR_NS);
    drop(world);
    let mut store = Store::open(&directory.join("history.db"), Options::DEFAULT).unwrap();
    let takeover = store.takeover(id).unwrap().unwrap();
    let takeover = pbs_history::Takeover { boot_id: "before".into(), ..takeover };
    store.update_run(id, State::Running, &takeover, &[]).unwrap();
    drop(store);
    let mut hears = Hears::default();
    let run = open_with(&directory, &mut hears).standing_of(id).unwrap();
    let text = format!("{id} model-1 unknown ({}) Some(false)", crate::result::REBOOTED);
    assert_eq!(hears.0, [text]);
    assert_eq!(run.reason.as_deref(), Some(crate::result::REBOOTED));
    is_about(run.deadline_unix_ns, deadline_unix_ns + HOUR_NS);
    std::fs::remove_dir_all(&directory).unwrap();
}
