// SPDX-License-Identifier: GPL-2.0
//! Traces keep the rules of their format, and say what the events say.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pbs_gen::{generate, Parameters, Scenario, Span};
use pbs_plan::{from_toml, Plan};
use pbs_report::trace::Trace;
use pbs_report::{Facts, Opened, Source};
use pbs_sim::{simulate, JobScheduler, NoAnswer, Options, Simulation, Stretch};
use pbs_uapi::{EventKind, Grant, IDLE};
use serde_json::Value;

fn opened(plan: &Plan, options: &Options, simulation: &Simulation) -> Opened {
    let taken = simulation.replans.iter();
    let taken = taken.filter(|replan| replan.refused.is_none());
    let plans = std::iter::once(plan).chain(taken.map(|replan| &replan.plan));
    Opened {
        deadlines: Vec::new(),
        plans: plans.cloned().collect(),
        config: options.config,
        events: simulation.events.clone(),
        facts: Facts {
            kernel: "test".into(),
            tier: "event".into(),
            rate_insns_per_ms: options.rate_insns_per_ms,
            ..Facts::default()
        },
        source: Source::Simulation,
    }
}

/// The events of the file, as a reader that knows nothing of this crate has
/// them.
fn read(opened: &Opened) -> Vec<Value> {
    let json = serde_json::to_string(&Trace::new(opened)).unwrap();
    let trace: Value = serde_json::from_str(&json).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

fn ns(event: &Value, field: &str) -> u64 {
    let micros = event[field].as_f64().unwrap_or_else(|| panic!("{event}"));
    (micros * 1000.0).round() as u64
}

fn of_phase<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

fn of_track<'a>(events: &'a [Value], track: &str) -> Vec<&'a Value> {
    let named = of_phase(events, "M").filter(|event| event["args"]["name"] == track);
    let tids: BTreeSet<_> = named.map(|event| event["tid"].as_u64()).collect();
    let slices = events.iter().filter(|event| event["ph"] != "M");
    slices.filter(|event| tids.contains(&event["tid"].as_u64())).collect()
}

/// Checks the rules of the format's description and of Perfetto's importer.
fn keeps_the_rules(events: &[Value]) {
    let mut processes = BTreeSet::new();
    let mut threads = BTreeSet::new();
    let mut last_ns = 0;
    let mut past_names = false;
    let mut ends: HashMap<u64, Vec<u64>> = HashMap::new();
    for event in events {
        let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        assert!(pid > 0 && !event["name"].as_str().unwrap().is_empty(), "{event}");
        assert!(event["args"].is_object(), "{event}");
        let phase = event["ph"].as_str().unwrap();
        if phase == "M" {
            assert!(!past_names, "a name after what has it: {event}");
            match event["name"].as_str().unwrap() {
                "process_name" => assert!(processes.insert(pid)),
                // No number of a thread stands for two.
                "thread_name" => assert!(threads.insert(tid)),
                "process_sort_index" | "thread_sort_index" => {
                    assert!(event["args"]["sort_index"].is_u64());
                }
                name => panic!("metadata {name}"),
            }
            continue;
        }
        past_names = true;
        let from_ns = ns(event, "ts");
        assert!(from_ns >= last_ns, "time falls: {event}");
        last_ns = from_ns;
        assert!(processes.contains(&pid), "{event}");
        match phase {
            "X" => {
                assert!(threads.contains(&tid), "{event}");
                let to_ns = from_ns + ns(event, "dur");
                // Slices of a track hold one another or come one after the other.
                let open = ends.entry(tid).or_default();
                while open.last().is_some_and(|&end_ns| end_ns <= from_ns) {
                    open.pop();
                }
                assert!(open.last().is_none_or(|&end_ns| to_ns <= end_ns), "{event}");
                // And these tracks have one level.
                assert!(open.is_empty(), "two at once: {event}");
                open.push(to_ns);
            }
            "i" => {
                assert!(threads.contains(&tid), "{event}");
                assert_eq!(event["s"], "t");
            }
            "C" => {
                let values = event["args"].as_object().unwrap();
                assert!(!values.is_empty() && values.values().all(Value::is_i64), "{event}");
            }
            _ => panic!("{event}"),
        }
    }
}

/// Returns the time for which each process had the CPU: from each grant to the next one, the end of
/// the process, another plan, or the end of the recording, whichever comes first.
fn granted_ns(opened: &Opened) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    let mut open: HashMap<u32, (u32, u64)> = HashMap::new();
    let mut close = |cpu: u32, open: &mut HashMap<u32, (u32, u64)>, now_ns: u64| {
        if let Some((process, since_ns)) = open.remove(&cpu) {
            *sums.entry(process).or_default() += now_ns - since_ns;
        }
    };
    for event in &opened.events {
        match EventKind::from_raw(event.kind).unwrap() {
            EventKind::Grant => {
                close(event.cpu, &mut open, event.time_ns);
                if event.process != IDLE && event.reason != Grant::None as u16 {
                    open.insert(event.cpu, (event.process, event.time_ns));
                }
            }
            EventKind::PlanInstalled | EventKind::PlanEnded => {
                close(event.cpu, &mut open, event.time_ns);
            }
            EventKind::ProcessEnded
                if open.get(&event.cpu).is_some_and(|open| open.0 == event.process) =>
            {
                close(event.cpu, &mut open, event.time_ns);
            }
            _ => {}
        }
    }
    let end_ns = opened.events.last().unwrap().time_ns;
    for cpu in 0..8 {
        close(cpu, &mut open, end_ns);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn says_what_the_events_say(opened: &Opened, simulation: &Simulation, events: &[Value]) {
    let actual = of_track(events, "actual");
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for slice in &actual {
        let process = slice["args"]["process"].as_u64().unwrap() as u32;
        *sums.entry(process).or_default() += ns(slice, "dur");
    }
    assert_eq!(sums, granted_ns(opened), "time of each process");
    // It was enough for what they did.
    let rate = u128::from(opened.facts.rate_insns_per_ms);
    for (process, sum_ns) in &sums {
        let tasks = simulation.tasks.iter();
        // What a task without end does after the last event is not in the trace.
        let retired = tasks.filter(|task| task.process == *process && task.ended_ns.is_some());
        let retired: u64 = retired.map(|task| task.retired_insns).sum();
        let room_insns = u128::from(*sum_ns + 1000) * rate / 1_000_000;
        assert!(
            room_insns >= u128::from(retired),
            "process {process}: {retired} retired, {sum_ns} ns at {rate} insns per ms"
        );
    }

    let of_kinds = |kinds: &[EventKind]| {
        let of_kind = |event: &&pbs_uapi::Event| kinds.iter().any(|k| *k as u16 == event.kind);
        opened.events.iter().filter(of_kind).collect::<Vec<_>>()
    };
    let times = |kinds: &[EventKind]| -> Vec<u64> {
        of_kinds(kinds).iter().map(|event| event.time_ns).collect()
    };
    let instants = |names: &[&str]| -> Vec<u64> {
        let instants = of_phase(events, "i");
        let of_kind = instants.filter(|event| names.contains(&event["cat"].as_str().unwrap()));
        of_kind.map(|event| ns(event, "ts")).collect()
    };
    assert_eq!(instants(&["preempted", "pushed"]), times(&[EventKind::Preempted]));
    assert_eq!(instants(&["ceiling"]), times(&[EventKind::Ceiling]));
    let signals = [EventKind::Late, EventKind::Early, EventKind::Info];
    assert_eq!(instants(&["late", "early", "info"]), times(&signals));

    // The counters tell the lateness with which each task ended.
    let mut counters: HashMap<&str, Vec<(u64, i64)>> = HashMap::new();
    for event in of_phase(events, "C") {
        let counter = counters.entry(event["name"].as_str().unwrap()).or_default();
        let value = event["args"].as_object().unwrap().values().next().unwrap();
        counter.push((ns(event, "ts"), value.as_i64().unwrap()));
    }
    for event in of_kinds(&[EventKind::TaskEnded]) {
        let process = opened.plans.iter().find_map(|plan| plan.process(event.process));
        let name = format!("lateness: {}", process.unwrap().label());
        let points = &counters[name.as_str()];
        let until = points.partition_point(|point| point.0 <= event.time_ns);
        // There may be several of one moment.
        let last_ns = points[until - 1].0;
        let mut last = points[..until].iter().rev().take_while(|point| point.0 == last_ns);
        assert!(
            last.any(|point| point.1 == event.lateness_insns),
            "{event:?}: {name} is {:?}",
            points[until - 1]
        );
    }

    // Every slot of the first plan that was not taken over is there, in full.
    if opened.plans.len() == 1 {
        let plan = &opened.plans[0];
        let slots: usize = plan.cpus.iter().map(|cpu| cpu.slots.len()).sum();
        let planned = of_track(events, "planned");
        assert_eq!(planned.len(), slots);
        for cpu in &plan.cpus {
            let insns: u64 = plan.place(cpu).map(|slot| slot.length_insns).sum();
            let pid = u64::from(cpu.cpu) + 1;
            let here = planned.iter().filter(|slice| slice["pid"] == pid);
            let sum_ns: u64 = here.map(|slice| ns(slice, "dur")).sum();
            let rate = pbs_core::Rate::new(opened.facts.rate_insns_per_ms);
            assert_eq!(sum_ns, rate.to_ns(insns));
        }
    }
}

#[test]
fn generated_runs_come_out_right() {
    let mut swaps = 0;
    for scenario in Scenario::ALL {
        for seed in 1..=3 {
            let plan = generate(&Parameters {
                scenario,
                seed,
                processes: 2 + seed,
                tasks: Span::new(3, 8),
                task_insns: Span::new(2_000_000, 60_000_000),
                idle_insns: Span::new(1_000_000, 20_000_000),
                cpu: seed as u32 % 3,
                ..Parameters::default()
            })
            .unwrap();
            let schedulers: [&mut dyn JobScheduler; 2] = [&mut NoAnswer, &mut Stretch::default()];
            for scheduler in schedulers {
                let options = Options {
                    rate_insns_per_ms: [1_000_000, 333_333][seed as usize % 2],
                    // There are tasks without end.
                    limit_ns: Some(8_000_000_000),
                    ..Options::default()
                };
                let simulation = simulate(&plan, &options, scheduler).unwrap();
                let opened = opened(&plan, &options, &simulation);
                let events = read(&opened);
                keeps_the_rules(&events);
                says_what_the_events_say(&opened, &simulation, &events);
                swaps += opened.plans.len() - 1;
            }
        }
    }
    assert!(swaps > 20, "only {swaps} plans took over");
}

/// Two CPUs; on one of them a task runs over its slot.
const TWO_CPUS: &str = r#"
plan_id = 7
[config]
no_preemption_ns = 10_000
stress_gain_ns = 400_000
t1_spares_last_slot = false
capacity_buffer_permille = 1100
[[process]]
id = 1
name = "sort"
tasks = [{ planned_insns = 20_000_000, real_insns = 26_000_000 }, { name = "merge", planned_insns = 10_000_000 }]
[[process]]
id = 2
name = "hash"
tasks = [{ planned_insns = 8_000_000, real_insns = 5_000_000 }, 12_000_000]
[[process]]
id = 9
tasks = [4_000_000]
[[cpu]]
cpu = 0
slots = ["sort", "hash", "idle 10_000_000", "sort", "hash"]
[[cpu]]
cpu = 3
slots = [9]
"#;

/// The whole file of a small run. If it is to change: `UPDATE=1 cargo test -p
/// pbs-report --test trace`, and look at the difference.
#[test]
fn small_run_is_the_golden_file() {
    let plan = from_toml(TWO_CPUS).unwrap();
    let options = Options::default();
    let simulation = simulate(&plan, &options, &mut NoAnswer).unwrap();
    let opened = opened(&plan, &options, &simulation);
    keeps_the_rules(&read(&opened));
    let trace = serde_json::to_value(Trace::new(&opened)).unwrap();
    // An event a line, so that a difference can be read.
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let lines: String = events.map(|event| format!("{event}\n")).collect();
    let lines = format!("{lines}{} {}\n", trace["displayTimeUnit"], trace["otherData"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/two-cpus.golden");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(file).unwrap());
}

/// A plan from before the recording has no beginning, and therefore no planned slots.
#[test]
fn without_its_beginning_a_plan_is_not_laid_out() {
    let plan = from_toml(TWO_CPUS).unwrap();
    let options = Options::default();
    let simulation = simulate(&plan, &options, &mut NoAnswer).unwrap();
    let mut opened = opened(&plan, &options, &simulation);
    let installed = EventKind::PlanInstalled as u16;
    opened.events.retain(|event| event.kind != installed);
    let events = read(&opened);
    keeps_the_rules(&events);
    assert_eq!(of_track(&events, "planned").len(), 0);
    assert!(!of_track(&events, "actual").is_empty());
}
