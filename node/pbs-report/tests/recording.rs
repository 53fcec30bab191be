// SPDX-License-Identifier: GPL-2.0
//! Recordings are read back as they were written, or refused with words.

mod common;

use common::{facts, job, simulate};
use pbs_plan::{to_toml, Config};
use pbs_report::{config_by_name, describe, EventView, RecordedPlan, Recording, Source};
use pbs_uapi::{Cause, Event, EventKind, Grant};
use serde_json::{json, Value};

fn recording() -> (Recording, Vec<Event>) {
    let plan = job();
    let events = simulate(&plan, &[], 0);
    let facts = facts();
    let recording = Recording {
        version: Recording::VERSION,
        source: Source::Simulation,
        kernel: facts.kernel,
        tier: facts.tier,
        rate_insns_per_ms: facts.rate_insns_per_ms,
        outcome: facts.outcome,
        config: config_by_name(&Config::DEFAULT),
        plans: vec![RecordedPlan::from(&plan)],
        events: events.iter().map(EventView::from).collect(),
    };
    (recording, events)
}

fn json_of(recording: &Recording) -> Value {
    serde_json::to_value(recording).unwrap()
}

#[test]
fn a_recording_comes_back_as_it_was() {
    let (recording, events) = recording();
    let read = Recording::from_json(&json_of(&recording).to_string()).unwrap();
    assert_eq!(read, recording);
    let opened = read.open().unwrap();
    assert_eq!(opened.events, events);
    assert_eq!(opened.config, Config::DEFAULT);
    assert_eq!(to_toml(&opened.plans[0]), to_toml(&job()));
    assert_eq!(opened.facts.rate_insns_per_ms, facts().rate_insns_per_ms);
}

#[test]
fn tasks_are_found_by_number_and_by_name() {
    let opened = recording().0.open().unwrap();
    assert_eq!(opened.task("2:1"), Ok((2, 1)));
    assert_eq!(opened.task("hash:1"), Ok((2, 1)));
    assert_eq!(opened.task("a <very> long & \"odd\" name:0"), Ok((3, 0)));
    let refused = |text| opened.task(text).unwrap_err();
    assert!(refused("hash").ends_with("as in sort:0"));
    assert!(refused("hash:one").starts_with("\"hash:one\" is no task"));
    assert!(refused("cat:0").contains("no process \"cat\"; there are sort, hash, a <very>"));
    assert!(refused("hash:9").starts_with("process hash has no task 9; there are 0, 1"));

    let mut twins = recording().0.open().unwrap();
    twins.plans[0].processes[0].name = Some("hash".into());
    twins.plans[0].processes[2].name = Some("1:2".into());
    assert!(twins.task("hash:1").unwrap_err().ends_with("[1, 2]"));
    assert_eq!(twins.task("1:1"), Ok((1, 1)));
    assert_eq!(twins.task("1:2:0"), Ok((3, 0)));
}

/// Every name of every kind and reason, and numbers that are not known.
#[test]
fn every_event_comes_back_as_it_was() {
    let mut events = Vec::new();
    for kind in 1..=EventKind::Configured as u16 + 1 {
        for reason in 0..8 {
            events.push(Event {
                seq: u64::MAX,
                time_ns: 1 << 60,
                kind,
                reason,
                cpu: 3,
                process: 5,
                task: 6,
                slot: 7,
                lateness_insns: i64::MIN,
                node_lateness_insns: -8,
                value: u64::MAX,
                stress: 9,
                level_percent: 75,
                pid: 10,
                ..Event::default()
            });
        }
    }
    for event in events {
        let json = serde_json::to_string(&EventView::from(&event)).unwrap();
        let view: EventView = serde_json::from_str(&json).unwrap();
        assert_eq!(Event::try_from(&view), Ok(event), "{json}");
    }
}

#[test]
fn fields_of_others_are_passed_over() {
    let (recording, _) = recording();
    let mut json = json_of(&recording);
    json["counts"] = json!({ "late": 3 });
    json["events"][0]["weather"] = "fair".into();
    assert_eq!(Recording::from_json(&json.to_string()), Ok(recording));
}

#[test]
fn what_is_not_understood_is_refused_with_words() {
    let (recording, _) = recording();
    let json = json_of(&recording);
    let refused = |text: String| Recording::from_json(&text).unwrap_err();
    let mut other = json.clone();
    other["version"] = 2.into();
    assert!(refused(other.to_string()).contains("has version 2, and this pbsctl reads version 1"));
    other.as_object_mut().unwrap().remove("version");
    assert!(refused(other.to_string()).contains("it has no \"version\"; make a recording with"));
    other["version"] = 1.into();
    other.as_object_mut().unwrap().remove("plans");
    assert!(refused(other.to_string()).contains("missing field `plans`"));
    assert!(refused("{".into()).starts_with("this is not JSON"));
    assert!(refused("[]".into()).contains("this is not JSON"));

    let broken = |change: fn(&mut Recording)| {
        let mut broken = recording.clone();
        change(&mut broken);
        broken.open().unwrap_err()
    };
    assert_eq!(broken(|recording| recording.plans.clear()), "the recording has no plan");
    assert!(broken(|recording| recording.plans[0].toml = "plan_id = 4\n[[process".into())
        .starts_with("plan 7 of the recording: toml:"));
    assert!(broken(|recording| {
        recording.config.insert("sigma_t3_permille".into(), 1);
    })
    .contains("\"sigma_t3_permille\""));
    assert_eq!(
        broken(|recording| recording.events[0].kind = "wedding".into()),
        "there is no kind of event \"wedding\""
    );
    assert_eq!(
        broken(|recording| {
            recording.events[1].kind = "late".into();
            recording.events[1].reason = Some("slot".into());
        }),
        "an event \"late\" has no reason \"slot\""
    );
}

#[test]
fn signals_say_what_was_compared() {
    let event = |kind: EventKind, cause: Cause| Event {
        kind: kind as u16,
        reason: cause as u16,
        process: 3,
        task: 7,
        slot: 8,
        retired_insns: 12_345_678,
        lateness_insns: 345_678,
        node_lateness_insns: -4_000,
        preemptions: 5,
        value: 12_000,
        level_percent: 100,
        ..Event::default()
    };
    let line = |event: &Event| describe(event).split_off(30);
    assert_eq!(
        line(&event(EventKind::Late, Cause::Task)),
        "late           process 3 task 7 slot 8 12,345,678 retired > t2_task 12,000 (task)"
    );
    assert!(line(&event(EventKind::Late, Cause::Preemptions))
        .ends_with("slot 8 5 preemptions ≥ t2_preemptions 12,000 (preemptions)"));
    assert!(line(&event(EventKind::Early, Cause::Task))
        .ends_with("12,345,678 retired < tm2_task 12,000 (task)"));
    let info = Event { level_percent: 75, stress: 31, ..event(EventKind::Info, Cause::Process) };
    assert!(line(&info).ends_with(
        "process lateness 345,678 > 75 % of 12,000, the greater of capacity buffer and \
             t2_process stress 31 (process)"
    ));
    // A negative threshold.
    let early = Event { value: (-3_000i64) as u64, ..event(EventKind::Early, Cause::Node) };
    assert!(line(&early).ends_with("node lateness −4,000 < tm2_node −3,000 (node)"));
    // What a later kernel may tell.
    let unknown = Event { reason: 99, ..event(EventKind::Late, Cause::Task) };
    assert!(line(&unknown).ends_with("value 12,000 (reason_99)"));
    let grant = event(EventKind::Grant, Cause::Task);
    assert_eq!(EventView::from(&grant).reason.as_deref(), Some(Grant::Slot.name()));
}

#[test]
fn deviation_of_a_start_or_an_end_has_a_direction() {
    let line = |cause: Cause, off_ns: i64| {
        let kind = EventKind::Info as u16;
        let value = off_ns.cast_unsigned();
        describe(&Event { kind, reason: cause as u16, value, ..Event::default() })
    };
    assert!(line(Cause::Start, 12_000_000).ends_with("started 12 ms late > timeliness_ns (start)"));
    assert!(line(Cause::End, -3_000).ends_with("ended 3 µs early > timeliness_ns (end)"));
}
