// SPDX-License-Identifier: GPL-2.0
//! Figures from events, as a kernel sent them when it ran the main job
//! (`tests/data/main-job.events`; what is zero is left out of it).

use pbs_history::{Collector, Expected, ExpectedTask, Fingerprint, Outcome, ProcessRun, TaskRun};
use pbs_report::EventView;
use pbs_uapi::{Event, EventKind, NO_TASK};

fn recorded() -> Vec<Event> {
    include_str!("data/main-job.events")
        .lines()
        .map(|line| {
            let view: EventView = serde_json::from_str(line).unwrap();
            Event::try_from(&view).unwrap()
        })
        .collect()
}

/// Two processes of the six: `hash`, whose second task runs 30 % over, and
/// `count` with its one task far over. In the job they have other numbers.
fn expected() -> Vec<Expected> {
    let process = |number, process, name: &str, planned: &[u64]| Expected {
        number,
        process,
        name: Some(name.into()),
        fingerprint: Fingerprint::of([name]),
        tasks: planned
            .iter()
            .zip(0..)
            .map(|(&planned_insns, number)| ExpectedTask {
                number,
                task: 100 - number,
                name: None,
                planned_insns,
            })
            .collect(),
    };
    let hash = [20_600_000, 15_400_000, 10_400_000, 20_700_000, 12_800_000, 8_850_000, 19_300_000];
    vec![process(4, 11, "count", &[5_050_000]), process(2, 10, "hash", &hash)]
}

fn collect(events: &[Event]) -> Collector {
    let mut collector = Collector::new(0, expected());
    for event in events {
        collector.event(event);
    }
    collector
}

fn outcomes(process: &ProcessRun) -> Vec<Outcome> {
    // By number in the plan.
    process.tasks.iter().rev().map(|task| task.outcome).collect()
}

/// Returns the index of the event of this kind, process and task.
fn position(events: &[Event], kind: EventKind, process: u32, task: u32) -> usize {
    let here = |event: &Event| {
        (event.kind, event.process) == (kind as u16, process)
            && (task == NO_TASK || event.task == task)
    };
    events.iter().position(here).unwrap()
}

/// The events with what follows in place of those from `from` on.
fn cut(events: &[Event], from: usize, kind: EventKind, process: u32, value: u64) -> Vec<Event> {
    let mut events = events[..from].to_vec();
    events.push(Event {
        seq: from as u64,
        kind: kind as u16,
        process,
        task: NO_TASK,
        value,
        ..Event::default()
    });
    events
}

#[test]
fn a_whole_run_is_recorded() {
    let collector = collect(&recorded());
    assert_eq!((collector.events_lost(), collector.next_seq()), (0, 103));
    let figures = collector.figures();
    assert_eq!(Collector::outcome(&figures), Outcome::Complete);
    let numbers: Vec<_> = figures.iter().map(|p| p.process).collect();
    assert_eq!(numbers, [10, 11]);
    let retired = figures[0].tasks.iter().rev();
    let retired: Vec<_> = retired.map(|task| task.retired_insns).collect();
    assert_eq!(
        retired,
        [20_534_867, 20_019_539, 10_389_412, 20_603_423, 12_702_205, 8_807_743, 19_249_486]
    );
    let count = &figures[1];
    assert_eq!(count.outcome, Outcome::Complete);
    assert_eq!(count.name.as_deref(), Some("count"));
    assert_eq!(count.fingerprint, Fingerprint::of(["count"]));
    assert_eq!(
        count.tasks,
        [TaskRun {
            task: 100,
            name: None,
            planned_insns: 5_050_000,
            retired_insns: 25_242_187,
            peak_memory_bytes: 1_200_128,
            preemptions: 1,
            outcome: Outcome::Complete,
        }]
    );
    assert_eq!(figures[0].peak_memory_bytes(), 1_200_128);
}

#[test]
fn events_may_be_read_again() {
    let events = recorded();
    let whole = collect(&events);
    let mut again = collect(&events[..60]);
    for event in &events[30..] {
        again.event(event);
    }
    assert_eq!(again.figures(), whole.figures());
    assert_eq!(again.events_lost(), 0);
}

#[test]
fn another_goes_on_where_one_was() {
    let events = recorded();
    let whole = collect(&events).figures();
    for at in 0..=events.len() {
        let before = collect(&events[..at]);
        let figures = before.figures();
        let mut after = Collector::resume(before.next_seq(), expected(), &figures);
        assert_eq!(after.figures(), figures, "{at}");
        for event in &events {
            after.event(event);
        }
        assert_eq!(after.figures(), whole, "{at}");
        assert_eq!(after.events_lost(), 0);
    }
}

#[test]
fn a_run_on_its_way_is_not_known_yet() {
    let events = recorded();
    let none = collect(&events[..2]).figures();
    assert_eq!(none[0].outcome, Outcome::Absent);
    assert!(none[0].tasks.iter().all(|task| task.retired_insns == 0));
    // Within the second task of `hash`, which has been preempted.
    let at = position(&events, EventKind::Preempted, 2, 1) + 1;
    let figures = collect(&events[..at]).figures();
    assert_eq!(figures[0].outcome, Outcome::Unknown);
    assert_eq!(outcomes(&figures[0])[..3], [Outcome::Complete, Outcome::Unknown, Outcome::Unknown]);
    let second = &figures[0].tasks[5];
    assert!((15_400_000..20_019_539).contains(&second.retired_insns));
}

#[test]
fn a_killed_thread_leaves_its_task_unfinished() {
    let events = recorded();
    // The exit of the thread ends its task, too; five more never run.
    let at = position(&events, EventKind::TaskEnded, 2, 1) + 1;
    let events = cut(&events, at, EventKind::ProcessEnded, 2, 5);
    let figures = collect(&events).figures();
    let mut expected = vec![Outcome::Killed; 7];
    expected[0] = Outcome::Complete;
    assert_eq!(outcomes(&figures[0]), expected);
    assert_eq!(figures[0].outcome, Outcome::Killed);
    assert_eq!(Collector::outcome(&figures), Outcome::Killed);
}

#[test]
fn an_ejected_thread_leaves_its_tasks() {
    let events = recorded();
    let at = position(&events, EventKind::TaskEnded, 2, 1) + 1;
    let ejected = cut(&events, at, EventKind::Ejected, 2, 0);
    let figures = collect(&ejected).figures();
    let mut expected = vec![Outcome::Ejected; 7];
    expected[..2].fill(Outcome::Complete);
    assert_eq!(outcomes(&figures[0]), expected);
    assert_eq!(Collector::outcome(&figures), Outcome::Ejected);

    // Another thread goes on with them.
    let mut collector = collect(&ejected);
    let rest = cut(&ejected, at + 1, EventKind::Attached, 2, 0);
    collector.event(rest.last().unwrap());
    for event in &events[at..] {
        collector.event(&Event { seq: event.seq + 2, ..*event });
    }
    assert_eq!(collector.figures(), collect(&events).figures());
}

#[test]
fn a_program_that_failed_is_no_example() {
    let events = recorded();
    let mut collector = collect(&events);
    collector.failed(2, Some(3));
    collector.failed(4, None);
    collector.failed(77, None);
    collector.failed(2, Some(77));
    let figures = collector.figures();
    let mut expected = vec![Outcome::Complete; 7];
    expected[3] = Outcome::Killed;
    assert_eq!(outcomes(&figures[0]), expected);
    assert_eq!(outcomes(&figures[1]), [Outcome::Killed]);
    assert_eq!(figures[1].tasks[0].retired_insns, 25_242_187);
}

#[test]
fn what_was_lost_is_not_made_up() {
    let all = recorded();
    let first = position(&all, EventKind::TaskEnded, 2, 0);
    let overrun = |from: usize, count: usize| {
        let mut events = cut(&all, from, EventKind::Overrun, 0, count as u64);
        events.extend(&all[from + count..]);
        events
    };
    // The end of one task, of which a later event does not tell.
    let figures = {
        let collector = collect(&overrun(first, 1));
        assert_eq!(collector.events_lost(), 1);
        collector.figures()
    };
    let mut expected = vec![Outcome::Complete; 7];
    expected[0] = Outcome::Unknown;
    assert_eq!(outcomes(&figures[0]), expected);
    assert_eq!(Collector::outcome(&figures), Outcome::Unknown);

    // All that there was, without being told so.
    let mut events = all.clone();
    events.drain(2..all.len() - 1);
    let collector = collect(&events);
    assert_eq!(collector.events_lost(), all.len() as u64 - 3);
    for process in collector.figures() {
        assert_eq!(process.outcome, Outcome::Unknown);
    }
}

#[test]
fn any_events_are_taken() {
    let mut collector = Collector::new(5, expected());
    for kind in 0..40 {
        for value in [0, 1, u64::MAX] {
            for seq in [0, 6, u64::MAX] {
                collector.event(&Event {
                    seq,
                    kind,
                    value,
                    process: 2,
                    task: kind.into(),
                    retired_insns: u64::MAX,
                    ..Event::default()
                });
            }
        }
    }
    assert_eq!(collector.figures().len(), 2);
}

/// The CPU time of a process's programs is reported beside the events, and is preserved when
/// another collector continues.
#[test]
fn the_time_of_programs_adds_up() {
    let events = recorded();
    let mut collector = collect(&events[..60]);
    let numbers: Vec<_> = expected().iter().map(|process| process.number).collect();
    collector.ran(numbers[0], 7_000_000);
    collector.ran(numbers[0], 3_000_000);
    collector.ran(u32::MAX - 1, 1);
    let before = collector.figures();
    let of = |figures: &[pbs_history::ProcessRun], number| {
        let place = expected().iter().position(|process| process.number == number).unwrap();
        let process = expected()[place].process;
        let mut figures = figures.iter();
        figures.find(|p| p.process == process).unwrap().clone()
    };
    assert_eq!(of(&before, numbers[0]).ran_ns, 10_000_000);
    assert_eq!(of(&before, numbers[1]).ran_ns, 0);
    // It is not over.
    assert_eq!(of(&before, numbers[0]).rate_insns_per_ms(), None);
    let mut resumed = Collector::resume(collector.next_seq(), expected(), &before);
    for event in &events[60..] {
        resumed.event(event);
    }
    let whole = of(&resumed.figures(), numbers[0]);
    assert_eq!(whole.ran_ns, 10_000_000);
    let retired: u64 = whole.tasks.iter().map(|task| task.retired_insns).sum();
    assert_eq!(whole.rate_insns_per_ms(), Some(retired / 10));
}
