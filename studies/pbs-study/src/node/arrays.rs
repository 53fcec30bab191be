// SPDX-License-Identifier: GPL-2.0
//! Cost of a decision by the length of the plan, here and where a plan is an array whose tasks are
//! moved (Leppert 2021, 5.2).
//!
//! In the thesis a preempted task is moved back in the array, and all tasks in between move one
//! place forward; the thesis says that a list would avoid this overhead. Here slots stay where they
//! are, and a process has its position among its tasks. The measured quantity is the time for which
//! a thread has a CPU: therefore it differs from machine to machine.

use pbs_core::wire::Message;
use pbs_core::{Event, EventKind, Node, Presence, Rate, Sink, StdMemory};
use pbs_plan::{wire, Config, Cpu, Plan, Process, Slot, Task, Threshold};
use pbs_text::{grouped, Format, Table};
use pbs_uapi::clock::thread_cpu_ns;
use serde::Serialize;

use crate::node::Error;
use crate::Study;

/// Tasks of the plans.
const TASKS: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

/// Number of preemptions that are measured; plans with fewer are made anew.
const PREEMPTIONS: usize = 2_048;

/// Bytes that arrays move in a measurement at most, but for the first preemption.
const MOST_BYTES: usize = 1 << 31;

const LENGTH_INSNS: u64 = 10_000_000;
const RATE_INSNS_PER_MS: u64 = 1_000_000;

/// Place of the next slot of the preempted process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    /// Eight slots on: eight processes take turns.
    Near,
    /// At the end of the plan: some processes have their second slots there.
    Far,
}

impl Layout {
    const ALL: [Self; 2] = [Self::Near, Self::Far];

    fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// The processes that are preempted.
    fn processes(self, tasks: usize) -> usize {
        match self {
            Self::Near => 8,
            Self::Far => (tasks / 4).min(256),
        }
    }

    /// Owners of the slots.
    fn owners(self, tasks: usize) -> Vec<usize> {
        let processes = self.processes(tasks);
        match self {
            Self::Near => (0..tasks).map(|slot| slot % processes).collect(),
            Self::Far => {
                let between = tasks - 2 * processes;
                let first = 0..processes;
                first.clone().chain(vec![processes; between]).chain(first).collect()
            }
        }
    }

    /// Preemptions in one plan, each of a process that has a slot to come.
    fn preemptions(self, tasks: usize) -> usize {
        match self {
            Self::Near => (tasks - self.processes(tasks)).min(PREEMPTIONS),
            Self::Far => self.processes(tasks),
        }
    }
}

/// A plan of the thesis: a task of its kernel module takes 72 bytes.
#[derive(Clone, Copy)]
struct Moved {
    process: usize,
    _numbers: [u64; 8],
}

/// An array, of which the present task is the one at `at`.
struct Array {
    tasks: Vec<Moved>,
    at: usize,
}

impl Array {
    /// Moves the present task to before the next one of its process, which begins with
    /// looking for it, and those between one place forward.
    fn preempt(&mut self) {
        let rest = &mut self.tasks[self.at..];
        let process = rest[0].process;
        let next = rest.iter().skip(1).position(|task| task.process == process);
        if let Some(between) = next {
            rest[..=between].rotate_left(1);
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ArrayRow {
    layout: Layout,
    tasks: usize,
    /// A preemption by the policy that the kernel runs, with all that it decides.
    core_ns: f64,
    /// The move of a task alone, in an array.
    array_ns: f64,
}

/// Results of the study.
#[derive(Debug, Serialize)]
struct Arrays {
    rows: Vec<ArrayRow>,
}

/// Measures.
pub fn study() -> Result<impl Study, Error> {
    let mut rows = Vec::new();
    for layout in Layout::ALL {
        for tasks in TASKS {
            rows.push(ArrayRow {
                layout,
                tasks,
                core_ns: core_ns(layout, tasks)?,
                array_ns: array_ns(layout, tasks),
            });
        }
    }
    Ok(Arrays { rows })
}

/// In which no task ends: each reaches t1 in every slot.
fn plan(layout: Layout, tasks: usize) -> Plan {
    let owners = layout.owners(tasks);
    let count = owners.iter().max().map_or(0, |most| most + 1);
    let mut processes: Vec<_> =
        (0u32..).take(count).map(|id| Process { id, ..Process::default() }).collect();
    for &owner in &owners {
        let tasks = &mut processes[owner].tasks;
        tasks.push(Task { id: tasks.len() as u32, planned_insns: LENGTH_INSNS, ..Task::default() });
    }
    let slots = owners.into_iter().map(|process| Slot::Process { process });
    Plan {
        plan_id: 1,
        processes,
        cpus: vec![Cpu { slots: slots.collect(), ..Cpu::default() }],
        ..Plan::default()
    }
}

/// Counts preemptions.
#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn emit(&mut self, event: &Event) -> u64 {
        self.0 += usize::from(event.kind == EventKind::Preempted);
        0
    }
}

fn core_ns(layout: Layout, tasks: usize) -> Result<f64, Error> {
    let plan = plan(layout, tasks);
    let encoded = wire::encode(&plan);
    let (mut took_ns, mut preemptions) = (0, 0);
    while preemptions < PREEMPTIONS {
        let mut node = node(&encoded.bytes)?;
        let mut count = Count::default();
        let mut now_ns = 0;
        let mut decision = node.decide(now_ns, &mut count);
        let began_ns = thread_cpu_ns();
        while count.0 < layout.preemptions(tasks) {
            match (decision.grant, decision.until_insns) {
                (Some(p), Some(insns)) if !decision.unallocated && insns > 0 => {
                    node.charge(p, insns);
                    now_ns += insns * 1_000_000 / RATE_INSNS_PER_MS;
                }
                _ => {
                    let until_ns = decision.until_ns.filter(|_| !decision.again);
                    now_ns = until_ns.unwrap_or(now_ns).max(now_ns);
                }
            }
            decision = node.decide(now_ns, &mut count);
        }
        took_ns += thread_cpu_ns() - began_ns;
        preemptions += count.0;
    }
    Ok(took_ns as f64 / preemptions as f64)
}

fn node(bytes: &[u8]) -> Result<Node<StdMemory>, Error> {
    let refused = |refusal: pbs_core::Refusal| Error(refusal.to_string());
    let message = Message::parse::<StdMemory>(bytes).map_err(refused)?;
    let section = message.sections().next();
    let section = section.ok_or_else(|| Error("the plan has no CPU".into()))?;
    let plan = pbs_core::Plan::build(&section).map_err(refused)?;
    // Unallocated time hardly ever comes, and no ceiling before t1.
    let config = Config {
        thresholds: Threshold::T1 as u64,
        t1_spares_last_slot: 0,
        window_period_ns: 10_000_000_000,
        window_unallocated_ns: 100_000_000,
        ..Config::DEFAULT
    };
    let rate = Rate::new(RATE_INSNS_PER_MS);
    let node = Node::new(plan, config, rate, 1, 0);
    let mut node = node.map_err(|_| Error("there is no memory for the plan".into()))?;
    node.begin(None, 0, 0);
    for p in 0..node.plan().processes().len() as u32 {
        node.set_presence(p, Presence::Ready);
    }
    Ok(node)
}

fn array_ns(layout: Layout, tasks: usize) -> f64 {
    let of = |process| Moved { process, _numbers: [0; 8] };
    let whole: Vec<_> = layout.owners(tasks).into_iter().map(of).collect();
    let distance = match layout {
        Layout::Near => 8,
        Layout::Far => tasks - layout.processes(tasks),
    };
    let most = MOST_BYTES / (distance * size_of::<Moved>());
    let wanted = PREEMPTIONS.min(most).max(1);
    let (mut took_ns, mut preemptions) = (0, 0);
    while preemptions < wanted {
        let mut array = Array { tasks: whole.clone(), at: 0 };
        let here = layout.preemptions(tasks).min(wanted - preemptions);
        let began_ns = thread_cpu_ns();
        for _ in 0..here {
            array.preempt();
            if layout == Layout::Near {
                // The next slot has begun.
                array.at += 1;
            }
        }
        took_ns += thread_cpu_ns() - began_ns;
        // What nobody looks at need not be done.
        std::hint::black_box(&array.tasks);
        preemptions += here;
    }
    took_ns as f64 / preemptions as f64
}

impl Study for Arrays {
    fn text(&self, format: Format) -> String {
        let titles = ["Next slot", "Tasks", "Core (ns)", "Array (ns)"];
        let mut table = Table::new(&titles, 1);
        for row in &self.rows {
            table.push(vec![
                row.layout.name().into(),
                grouped(row.tasks as u64),
                format!("{:.0}", row.core_ns),
                format!("{:.0}", row.array_ns),
            ]);
        }
        table.print(format)
    }
}

#[cfg(test)]
mod tests {
    use super::{Array, Moved};

    #[test]
    fn a_preempted_task_stands_before_the_next_of_its_process() {
        let of = |process| Moved { process, _numbers: [0; 8] };
        let mut array = Array { tasks: [1, 2, 3, 1, 2].map(of).to_vec(), at: 0 };
        let order = |array: &Array| -> Vec<_> { array.tasks.iter().map(|it| it.process).collect() };
        array.preempt();
        assert_eq!(order(&array), [2, 3, 1, 1, 2]);
        array.preempt();
        assert_eq!(order(&array), [3, 1, 1, 2, 2]);
        // It has no other slot.
        array.preempt();
        assert_eq!(order(&array), [3, 1, 1, 2, 2]);
        assert_eq!(std::mem::size_of::<Moved>(), 72);
    }
}
