// SPDX-License-Identifier: GPL-2.0
//! Runs plans on the policy core in virtual time, to have the events that the
//! kernel would give.

use pbs_core::wire::Message;
use pbs_core::{Node, Presence, Rate, Sink, StdMemory};
use pbs_plan::{from_toml, wire, Config, Plan};
use pbs_report::{tier_name, Facts, Opened, Report, Source};
use pbs_uapi::Event;

const RATE_INSNS_PER_MS: u64 = 250_000;
const START_NS: u64 = 5_000_000_000;

/// Three processes on a CPU; sorting runs 30 % over, hashing 40 % under.
#[allow(dead_code)]
pub(crate) const JOB: &str = r#"
plan_id = 7
[config]
no_preemption_ns = 10_000
t1_spares_last_slot = false
stress_gain_ns = 400_000
[[process]]
id = 1
name = "sort"
tasks = [{ planned_insns = 20_000_000, real_insns = 26_000_000 }, 10_000_000, 15_000_000, 5_000_000]
[[process]]
id = 2
name = "hash"
tasks = [8_000_000, { planned_insns = 30_000_000, real_insns = 18_000_000 }, 12_000_000]
[[process]]
id = 3
name = "a <very> long & \"odd\" name"
tasks = [{ name = "only", planned_insns = 25_000_000, real_insns = 25_100_000 }, 1_000_000]
[[cpu]]
cpu = 0
slots = ["sort", "hash", 3, "idle 10_000_000", "sort", "hash", "sort", "idle 4_000_000", 3, "hash", "sort"]
"#;

struct Collector {
    cpu: u32,
    plan_id: u64,
    events: Vec<Event>,
}

impl Collector {
    fn push(&mut self, event: &pbs_core::Event, pid: i32) -> u64 {
        let seq = self.events.len() as u64;
        self.events.push(Event {
            seq,
            plan_id: self.plan_id,
            cpu: self.cpu,
            pid,
            ..wire::event_record(event)
        });
        seq
    }
}

impl Sink for Collector {
    fn emit(&mut self, event: &pbs_core::Event) -> u64 {
        self.push(event, 0)
    }
}

/// The events of a plan whose processes are all there from the beginning, but
/// for `absent`, which come after `absent_ns`.
pub(crate) fn simulate(plan: &Plan, absent: &[u32], absent_ns: u64) -> Vec<Event> {
    let encoded = wire::encode(plan);
    let message = Message::parse::<StdMemory>(&encoded.bytes).unwrap();
    let mut events = Vec::new();
    for section in message.sections() {
        let core = pbs_core::Plan::build(&section).unwrap();
        events.extend(simulate_cpu(plan, section.cpu(), core, absent, absent_ns));
    }
    events.sort_by_key(|event| event.time_ns);
    for (seq, event) in events.iter_mut().enumerate() {
        event.seq = seq as u64;
    }
    events
}

fn simulate_cpu(
    plan: &Plan,
    cpu: u32,
    core: pbs_core::Plan<StdMemory>,
    absent: &[u32],
    absent_ns: u64,
) -> Vec<Event> {
    let rate = Rate::new(RATE_INSNS_PER_MS);
    let config = plan.config.unwrap_or(Config::DEFAULT);
    let mut sink = Collector { cpu, plan_id: plan.plan_id, events: Vec::new() };
    let ids: Vec<u32> = core.processes().iter().map(|process| process.id).collect();
    // What each process's tasks really take, the current one first.
    let mut real: Vec<Vec<u64>> = ids
        .iter()
        .map(|&id| {
            let tasks = plan.process(id).unwrap().tasks.iter();
            tasks.map(|task| task.real_insns.unwrap_or(task.planned_insns)).collect()
        })
        .collect();
    let mut now_ns = START_NS;
    let mut installed = pbs_core::Event::new(pbs_core::EventKind::PlanInstalled, now_ns);
    installed.value = core.slots().len() as u64;
    sink.push(&installed, 0);
    let mut node = Node::new(core, config, rate, plan.plan_id, now_ns).unwrap();
    let late = |id: &u32| absent.contains(id);
    for (p, id) in (0..).zip(&ids) {
        if !late(id) {
            node.set_presence(p, Presence::Ready);
            node.memory(p, 64 << 20, 8 << 20);
        }
    }
    let mut waiting = ids.iter().any(late);
    loop {
        if waiting && now_ns >= START_NS + absent_ns {
            waiting = false;
            for (p, id) in (0..).zip(&ids).filter(|(_, id)| late(id)) {
                let mut attached = pbs_core::Event::new(pbs_core::EventKind::Attached, now_ns);
                attached.process = *id;
                sink.push(&attached, 100);
                node.set_presence(p, Presence::Ready);
            }
        }
        let decision = node.decide(now_ns, &mut sink);
        if node.ended() && node.unfinished() == 0 {
            return sink.events;
        }
        let mut step_ns = decision.until_ns.map_or(u64::MAX, |at| at - now_ns);
        if waiting {
            step_ns = step_ns.min(START_NS + absent_ns - now_ns);
        }
        let running = decision.grant.filter(|_| !decision.unallocated);
        let Some(p) = running else {
            now_ns += step_ns.max(1);
            continue;
        };
        let left = real[p as usize][0];
        let insns =
            left.min(decision.until_insns.unwrap_or(u64::MAX)).min(rate.to_insns(step_ns).max(1));
        now_ns += rate.to_ns(insns).max(1);
        node.charge(p, insns);
        real[p as usize][0] -= insns;
        if real[p as usize][0] == 0 {
            real[p as usize].remove(0);
            node.end_task(p, now_ns, &mut sink);
        }
    }
}

#[allow(dead_code)]
pub(crate) fn job() -> Plan {
    from_toml(JOB).unwrap()
}

/// The report of a plan run by the policy core.
#[allow(dead_code)]
pub(crate) fn report(plan: &Plan) -> Report {
    Report::new(plan, &simulate(plan, &[], 0), &facts())
}

pub(crate) fn facts() -> Facts {
    Facts {
        kernel: "6.12.117".into(),
        tier: tier_name(2),
        rate_insns_per_ms: RATE_INSNS_PER_MS,
        ..Facts::default()
    }
}

/// A task far over its plan, one far under it, and thresholds that are near.  A
/// nanosecond is a quarter of an instruction.
#[allow(dead_code)]
pub(crate) const SIGNALS: &str = r#"
plan_id = 7
[config]
no_preemption_ns = 10_000
t1_spares_last_slot = false
capacity_buffer_permille = 1100
sigma_t2_permille = 1200
t2_spacer_ns = 4_000_000
t2_min_process_ns = 12_000_000
stress_reset = 10
stress_gain_ns = 800_000
nominal_tick_ns = 4_000_000
max_preemptions = 2
reschedule_time_ns = 8_000_000
[[process]]
id = 1
name = "sort"
buffer_insns = 300_000_000
tasks = [{ planned_insns = 20_000_000, real_insns = 46_000_000 }, 10_000_000, 15_000_000, 5_000_000]
[[process]]
id = 2
name = "hash"
tasks = [8_000_000, { planned_insns = 30_000_000, real_insns = 9_000_000 }, 12_000_000]
[[process]]
id = 3
name = "a <very> long & \"odd\" name"
tasks = [25_000_000, 1_000_000]
[[cpu]]
cpu = 0
slots = [1, 2, 3, "idle 10_000_000", 1, 2, 1, "idle 4_000_000", 3, 2, 1]
"#;

/// A recording of a plan run by the policy core.
#[allow(dead_code)]
pub(crate) fn opened(plan: Plan) -> Opened {
    Opened {
        events: simulate(&plan, &[], 0),
        deadlines: Default::default(),
        plans: vec![plan],
        config: Config::DEFAULT,
        facts: facts(),
        source: Source::Simulation,
    }
}
