// SPDX-License-Identifier: GPL-2.0
//! Deadlines that are kept in nets with messages, if the plans have planned arrivals and if
//! receivers only block.
//!
//! A net is a plan for two CPUs, whose tasks wait for tasks of the other CPU. Each such dependency
//! is a message, which is planned to arrive at the planned end of its sender. The same net without
//! arrivals has the same order of tasks, and its receivers block without a signal.

use pbs_gen::{Random, Stream};
use pbs_plan::{After, Plan, Slot};
use pbs_sim::{simulate, Failure, JobScheduler, NodeState, Simulation, Stretch};
use pbs_text::{grouped, Table};
use pbs_uapi::{Cause, EventKind};
use serde::Serialize;

use crate::node::plans::{plan, Deviation};
use crate::node::{kept_alone, percent, sums, Error, Format, Options, Rows, Tally};
use crate::Study;

/// Share of the tasks that receive a message, of those that can.
const MESSAGE_PERMILLE: u64 = 250;
/// Number of tasks of the other CPU, the last that end before the receiver begins, of which one
/// sends its message.
const REACH: usize = 4;

/// Treatment of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Waits {
    /// Receivers block: the plans have no arrivals.
    Blocking,
    /// Receivers block, and each answer to a failure moves tasks that have begun to the front, as
    /// the answers to late messages do: this shows what that movement does by itself.
    Advanced,
    /// The plans have planned arrivals. A late message is answered with the rest of the plan as it
    /// is: this shows what an answer costs by itself.
    Renewed,
    /// The plans have planned arrivals. A receiver that misses its message goes behind the next task
    /// of another process, and tasks that have begun go to the front.
    Planned,
    /// Like [`Waits::Planned`], and each answer to another failure moves tasks that have begun to
    /// the front, too.
    Both,
    /// Like [`Waits::Both`], but a receiver goes behind the next two tasks of other processes.
    Further,
}

impl Waits {
    const ALL: [Self; 6] =
        [Self::Blocking, Self::Advanced, Self::Renewed, Self::Planned, Self::Both, Self::Further];

    fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Advanced => "advanced",
            Self::Renewed => "renewed",
            Self::Planned => "planned",
            Self::Both => "both",
            Self::Further => "further",
        }
    }

    /// Whether the plans have planned arrivals.
    fn has_arrivals(self) -> bool {
        !matches!(self, Self::Blocking | Self::Advanced)
    }

    /// Whether an answer moves tasks that have begun to the front.
    fn advances(self, answers_message: bool) -> bool {
        match self {
            Self::Blocking | Self::Renewed => false,
            Self::Planned => answers_message,
            Self::Advanced | Self::Both | Self::Further => true,
        }
    }

    /// Number of tasks of other processes behind which the receiver of a late message goes.
    fn tasks_before_receiver(self) -> usize {
        match self {
            Self::Blocking | Self::Advanced | Self::Renewed => 0,
            Self::Planned | Self::Both => 1,
            Self::Further => 2,
        }
    }
}

/// Results of all processes with one treatment of messages.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cell {
    #[serde(flatten)]
    tally: Tally,
    /// Nets in which more deadlines are kept than with blocking receivers.
    nets_with_more: u64,
    /// Nets in which fewer deadlines are kept.
    nets_with_fewer: u64,
    /// Kept, and missed with blocking receivers.
    gained: u64,
    /// Missed, and kept with blocking receivers.
    lost: u64,
    messages: u64,
    /// Prediction failures of messages.
    late_messages: u64,
    early_messages: u64,
    answers: u64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.nets_with_more += other.nets_with_more;
        self.nets_with_fewer += other.nets_with_fewer;
        self.gained += other.gained;
        self.lost += other.lost;
        self.messages += other.messages;
        self.late_messages += other.late_messages;
        self.early_messages += other.early_messages;
        self.answers += other.answers;
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct MessagesRow {
    deviation: Deviation,
    waits: Waits,
    #[serde(flatten)]
    cell: Cell,
}

/// Makes the study; the number of plans is that of nets.
///
/// # Errors
///
/// Fails if a net cannot be simulated.
pub fn study(options: &Options<'_>) -> Result<impl Study, Error> {
    let cells = sums(options, |number| of_net(options.seed, number), Cell::add)?;
    let rows = cells.into_iter();
    let rows = rows.map(|((deviation, waits), cell)| MessagesRow { deviation, waits, cell });
    Ok(Rows::new(options, rows))
}

/// The results of a net.
type Cells = Vec<((Deviation, Waits), Cell)>;

fn of_net(seed: u64, number: u64) -> Result<Cells, Error> {
    let mut cells = Vec::new();
    for deviation in Deviation::ALL {
        let planned = net(seed, number, deviation)?;
        let mut blocking = planned.clone();
        for after in messages(&mut blocking) {
            after.arrival_ns = None;
        }
        let sent = messages(&mut planned.clone()).count() as u64;
        let simulate = |waits: Waits| {
            run(if waits.has_arrivals() { &planned } else { &blocking }, OfMessages { waits })
        };
        let there = &simulate(Waits::Blocking)?;
        for waits in Waits::ALL {
            let here = &simulate(waits)?;
            let (tally, blocked) = (Tally::of(here), Tally::of(there));
            let cell = Cell {
                tally,
                nets_with_more: u64::from(tally.kept > blocked.kept),
                nets_with_fewer: u64::from(tally.kept < blocked.kept),
                gained: kept_alone(here, there).count() as u64,
                lost: kept_alone(there, here).count() as u64,
                messages: sent,
                late_messages: of_messages(here, EventKind::Late),
                early_messages: of_messages(here, EventKind::Early),
                answers: here.replans.len() as u64,
            };
            cells.push(((deviation, waits), cell));
        }
    }
    Ok(cells)
}

/// Number of signals about messages.
fn of_messages(simulation: &Simulation, kind: EventKind) -> u64 {
    let events = simulation.events.iter();
    let of_kind = events.filter(|event| event.kind == kind as u16);
    of_kind.filter(|event| event.reason == Cause::Message as u16).count() as u64
}

/// Dependencies of all tasks.
fn messages(plan: &mut Plan) -> impl Iterator<Item = &mut After> {
    let tasks = plan.processes.iter_mut().flat_map(|process| &mut process.tasks);
    tasks.flat_map(|task| &mut task.after)
}

fn run(plan: &Plan, mut scheduler: OfMessages) -> Result<Simulation, Error> {
    let options = pbs_sim::Options::default();
    simulate(plan, &options, &mut scheduler).map_err(|error| Error(error.to_string()))
}

/// A task in its slot.
struct Placed {
    process: usize,
    task: usize,
    begin_ns: u64,
    end_ns: u64,
}

/// The tasks of a CPU in the order of their slots, with their planned times on a CPU that retires
/// an instruction in a nanosecond.
fn placed(plan: &Plan, cpu: usize) -> Vec<Placed> {
    let mut end_ns = 0;
    let mut placed = Vec::new();
    for slot in plan.place(&plan.cpus[cpu]) {
        let begin_ns = end_ns;
        end_ns += slot.length_insns;
        let of_task = |(process, task)| Placed { process, task, begin_ns, end_ns };
        placed.extend(slot.task.map(of_task));
    }
    placed
}

/// Net `number`: a generated plan on each of two CPUs, and messages between them. A message is sent
/// by a task that is planned to end before its receiver begins: there is no circle.
fn net(seed: u64, number: u64, deviation: Deviation) -> Result<Plan, Error> {
    let mut net = plan(seed, number, deviation)?;
    // Another plan with as many processes: the seed of a plan is the sum.
    let other = plan(seed.wrapping_add(1 << 32), number, deviation)?;
    let first = net.processes.len();
    let next_id = net.processes.iter().map(|process| process.id).max().map_or(0, |id| id + 1);
    net.processes.extend(other.processes.into_iter().map(|mut process| {
        process.id += next_id;
        process.name = None;
        process
    }));
    net.cpus.extend(other.cpus.into_iter().map(|mut cpu| {
        cpu.cpu = 1;
        for slot in &mut cpu.slots {
            if let Slot::Process { process } = slot {
                *process += first;
            }
        }
        cpu
    }));
    let mut random = Random::new(seed.wrapping_add(number), Stream::PlannedMessages);
    let tracks = [placed(&net, 0), placed(&net, 1)];
    for (here, there) in [(0, 1), (1, 0)] {
        for receiver in &tracks[here] {
            let waits = random.below(1000) < MESSAGE_PERMILLE;
            let chosen = random.below(1 << 32) as usize;
            let before = tracks[there].partition_point(|it| it.end_ns <= receiver.begin_ns);
            let senders = &tracks[there][before.saturating_sub(REACH)..before];
            if !waits || senders.is_empty() {
                continue;
            }
            let sender = &senders[chosen % senders.len()];
            let of = &net.processes[sender.process];
            let after = After {
                process: of.id,
                task: of.tasks[sender.task].id,
                arrival_ns: Some(sender.end_ns),
                ..After::default()
            };
            net.processes[receiver.process].tasks[receiver.task].after.push(after);
        }
    }
    Ok(net)
}

/// Job scheduler that stretches what is left, and answers late messages.
#[derive(Clone, Copy)]
struct OfMessages {
    waits: Waits,
}

impl JobScheduler for OfMessages {
    fn answer(&mut self, failures: &[Failure], state: &NodeState) -> Result<Option<Plan>, String> {
        let is_late = |failure: &&Failure| {
            failure.cause == pbs_sim::Cause::Message && failure.kind == pbs_core::EventKind::Late
        };
        let receivers: Vec<u32> =
            failures.iter().filter(is_late).map(|failure| failure.process).collect();
        let stretched = Stretch::default().answer(failures, state)?;
        let advances = self.waits.advances(!receivers.is_empty());
        let is_left = if receivers.is_empty() {
            stretched.is_none() || !advances
        } else {
            stretched.is_none() && state.remaining.processes.is_empty()
        };
        if is_left {
            return Ok(stretched);
        }
        let mut plan = stretched.unwrap_or_else(|| {
            let last = failures.iter().map(|failure| failure.seq).max();
            let plan_id = state.remaining.plan_id + 1;
            let dealt_seq = last.map_or(0, |seq| seq + 1);
            Plan { plan_id, dealt_seq, ..state.remaining.clone() }
        });
        for &receiver in &receivers {
            postpone(&mut plan, receiver, self.waits.tasks_before_receiver());
        }
        if advances {
            let began = |process: &&pbs_sim::ProcessState| process.retired_insns > 0;
            let began = state.processes.iter().filter(began).map(|process| process.id);
            let began: Vec<u32> = began.filter(|id| !receivers.contains(id)).collect();
            began.iter().rev().for_each(|&id| advance(&mut plan, id));
        }
        Ok(Some(plan))
    }
}

/// Moves the next slot of a process to the front.
fn advance(plan: &mut Plan, id: u32) {
    let Some(slots) = plan.cpus.first_mut().map(|cpu| &mut cpu.slots) else {
        return;
    };
    let is_of = |slot: &Slot| match slot {
        Slot::Process { process } => plan.processes[*process].id == id,
        Slot::Idle { .. } => false,
    };
    if let Some(own) = slots.iter().position(is_of) {
        slots[..=own].rotate_right(1);
    }
}

/// Moves the next slot of a process behind the next `most` slots of other ones, or behind as many
/// as there are.
fn postpone(plan: &mut Plan, id: u32, most: usize) {
    let Some(slots) = plan.cpus.first_mut().map(|cpu| &mut cpu.slots) else {
        return;
    };
    let is_of = |slot: &Slot, it: bool| match slot {
        Slot::Process { process } => (plan.processes[*process].id == id) == it,
        Slot::Idle { .. } => false,
    };
    let Some(own) = slots.iter().position(|slot| is_of(slot, true)) else {
        return;
    };
    let others = (own..slots.len()).filter(|&number| is_of(&slots[number], false));
    if let Some(last) = others.take(most).last() {
        slots[own..=last].rotate_left(1);
    }
}

impl Study for Rows<MessagesRow> {
    fn text(&self, format: Format) -> String {
        let titles = [
            "Deviation",
            "Waits",
            "Kept",
            "Of",
            "Share",
            "Gained",
            "Lost",
            "Nets with more",
            "With fewer",
            "Tardiness (ms)",
            "Messages",
            "Late",
            "Early",
            "Answers",
        ];
        let mut table = Table::new(&titles, 2);
        for MessagesRow { deviation, waits, cell } in &self.rows {
            table.push(vec![
                deviation.name().into(),
                waits.name().into(),
                grouped(cell.tally.kept),
                grouped(cell.tally.processes),
                percent(cell.tally.kept, cell.tally.processes),
                grouped(cell.gained),
                grouped(cell.lost),
                grouped(cell.nets_with_more),
                grouped(cell.nets_with_fewer),
                cell.tally.tardiness(),
                grouped(cell.messages),
                grouped(cell.late_messages),
                grouped(cell.early_messages),
                grouped(cell.answers),
            ]);
        }
        table.print(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[[process]]
id = 4
tasks = [10, 10, 10]
[[process]]
id = 2
tasks = [20, 20]
[[cpu]]
cpu = 0
slots = [4, \"idle 5\", 4, 2, 4, 2]
";

    /// Ids of the processes that have the slots; 0: idle.
    fn order(change: impl FnOnce(&mut Plan)) -> Vec<u32> {
        let mut plan = pbs_plan::from_toml(TEXT).unwrap();
        change(&mut plan);
        let ids = plan.cpus[0].slots.iter().map(|slot| match slot {
            Slot::Process { process } => plan.processes[*process].id,
            Slot::Idle { .. } => 0,
        });
        ids.collect()
    }

    #[test]
    fn a_receiver_goes_behind_tasks_of_others() {
        assert_eq!(order(|plan| postpone(plan, 4, 0)), [4, 0, 4, 2, 4, 2]);
        assert_eq!(order(|plan| postpone(plan, 4, 1)), [0, 4, 2, 4, 4, 2]);
        assert_eq!(order(|plan| postpone(plan, 4, 2)), [0, 4, 2, 4, 2, 4]);
        // There are no more, and none behind the last.
        assert_eq!(order(|plan| postpone(plan, 4, 3)), [0, 4, 2, 4, 2, 4]);
        assert_eq!(order(|plan| postpone(plan, 2, 2)), [4, 0, 4, 4, 2, 2]);
        assert_eq!(order(|plan| postpone(plan, 9, 2)), [4, 0, 4, 2, 4, 2]);
    }

    #[test]
    fn a_task_that_has_begun_goes_to_the_front() {
        assert_eq!(order(|plan| advance(plan, 2)), [2, 4, 0, 4, 4, 2]);
        assert_eq!(order(|plan| advance(plan, 9)), [4, 0, 4, 2, 4, 2]);
    }

    /// Plan whose first process waits in a slot of 100 ms for a task that takes far longer than
    /// planned; the second process could run meanwhile.
    const LATE: &str = "[[process]]
id = 1
tasks = [{ planned_insns = 100_000_000 }]
[[process]]
id = 2
tasks = [50_000_000]
[[process]]
id = 3
tasks = [{ planned_insns = 10_000_000, real_insns = 400_000_000 }]
[[cpu]]
cpu = 0
slots = [1, 2]
[[cpu]]
cpu = 1
slots = [3]
";

    /// End of the second process, in milliseconds.
    fn end_of_other_ms(waits: Waits) -> u64 {
        let mut plan = pbs_plan::from_toml(LATE).unwrap();
        let arrival_ns = waits.has_arrivals().then_some(10_000_000);
        let after = After { process: 3, task: 0, arrival_ns, ..After::default() };
        plan.processes[0].tasks[0].after.push(after);
        let simulation = run(&plan, OfMessages { waits }).unwrap();
        simulation.processes[1].ended_ns.unwrap() / 1_000_000
    }

    /// The slot of a receiver begins anew with the rest of the plan: others wait for it twice.
    #[test]
    fn an_answer_that_changes_nothing_waits_once_more() {
        let [blocking, renewed, planned] =
            [Waits::Blocking, Waits::Renewed, Waits::Planned].map(end_of_other_ms);
        assert!(renewed >= blocking + 35, "{renewed} and {blocking}");
        assert!(planned + 40 <= blocking, "{planned} and {blocking}");
    }

    /// A tenth of the nets of the study. Planned waits keep deadlines that blocking ones miss, and
    /// more if each answer also moves the tasks that have begun.
    #[test]
    fn planned_waits_keep_more_deadlines_than_blocking() {
        let options = Options { plans: 100, seed: 1, done: &|_| {} };
        let cells = sums(&options, |number| of_net(1, number), Cell::add).unwrap();
        let kept = |deviation, waits| cells[&(deviation, waits)].tally.kept;
        for deviation in Deviation::ALL {
            let further = kept(deviation, Waits::Further);
            assert!(further > kept(deviation, Waits::Blocking), "{deviation:?}: {cells:?}");
        }
        let in_all = |waits| Deviation::ALL.map(|deviation| kept(deviation, waits)).iter().sum();
        let in_all: [u64; 4] =
            [Waits::Blocking, Waits::Advanced, Waits::Both, Waits::Further].map(in_all);
        assert!(in_all.is_sorted_by(|one, next| one < next), "{in_all:?}");
        for ((deviation, waits), cell) in &cells {
            assert_eq!(cell.late_messages == 0, !waits.has_arrivals(), "{deviation:?}: {cell:?}");
        }
    }
}
