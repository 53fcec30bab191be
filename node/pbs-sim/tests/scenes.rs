// SPDX-License-Identifier: GPL-2.0
//! Scenes whose outcome is worked out by hand. One instruction takes a
//! nanosecond, unless a scene says otherwise.

mod common;

use common::{config, ended, of_kind, plan, run, run_with};
use pbs_core::{Cause, EventKind, Grant, Threshold};
use pbs_plan::{After, Config, Cpu, Process, Slot, Task};
use pbs_sim::{
    simulate, Error, MemoryOver, NoAnswer, Options, Resolution, Simulation, Stretch, Timing,
};

#[test]
fn what_goes_as_planned_takes_what_was_planned() {
    let plan = plan("1: 1000000 500000\n2: 300000\nslots: 1 2 i200000 1");
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 1_000_000), (2, 0, 1_300_000), (1, 1, 2_000_000)]);
    let cpu = &simulation.cpus[0];
    assert!(cpu.ended);
    assert_eq!((cpu.running_ns, cpu.idle_ns), (1_800_000, 200_000));
    assert_eq!((cpu.unallocated_ns, cpu.switches), (0, 3));
    assert_eq!(of_kind(&simulation, EventKind::Attached).len(), 2);
    assert_eq!(of_kind(&simulation, EventKind::PlanInstalled)[0].value, 4);
    assert_eq!(of_kind(&simulation, EventKind::PlanEnded).len(), 1);
}

/// A CPU may be named to have no process; its plan has ended as it comes.
#[test]
fn a_cpu_without_slots_is_over_at_once() {
    let mut plan = plan("1: 1000000\nslots: 1");
    plan.cpus.push(Cpu { cpu: 3, ..Cpu::default() });
    let simulation = run(&plan);
    assert!(simulation.ended(), "{simulation:?}");
    assert_eq!(simulation.cpus[1].cpu, 3);
    let plan_ended = of_kind(&simulation, EventKind::PlanEnded);
    let at: Vec<_> = plan_ended.iter().map(|e| (e.cpu, e.time_ns)).collect();
    assert!(at.contains(&(3, 0)), "{at:?}");
}

/// t1 is 5 % over: the slot ends at 1,050,000; the rest of the task and the
/// next one share the second slot.
#[test]
fn a_task_beyond_t1_goes_on_in_the_next_slot_of_its_process() {
    let plan = plan("1: 1000000/1100000 500000\n2: 300000\nslots: 1 2 1");
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(2, 0, 1_350_000), (1, 0, 1_400_000), (1, 1, 1_900_000)]);
    assert_eq!(simulation.tasks[0].preemptions, 1);
    let preempted = of_kind(&simulation, EventKind::Preempted);
    assert_eq!(preempted[0].retired_insns, 1_050_000);
    assert_eq!(preempted[0].value, 1_050_000);
}

#[test]
fn an_idle_slot_is_filled_and_lasts_its_length() {
    let plan = plan("1: 1000000/1100000\n2: 300000\nslots: 1 i200000 2");
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 1_100_000), (2, 0, 1_550_000)]);
    assert_eq!(simulation.cpus[0].idle_ns, 150_000);
    let grants = of_kind(&simulation, EventKind::Grant);
    assert_eq!(grants[1].reason, Grant::IdleSlot as u16);
}

#[test]
fn unallocated_time_is_no_execution_time() {
    let mut plan = plan("1: 250000000\nslots: 1");
    plan.config = Some(Config { thresholds: 0, ..Config::DEFAULT });
    let simulation = run(&plan);
    // 95 ms of each 100.
    assert_eq!(ended(&simulation), [(1, 0, 260_000_000)]);
    assert_eq!(simulation.cpus[0].unallocated_ns, 10_000_000);
    // Planned with nine tenths of the node, and 100 ms for each 95.
    let deadline_ns = 250_000_000 * 1111 / 1000 * 100 / 95;
    assert_eq!(simulation.processes[0].deadline_ns, deadline_ns);
    assert!(simulation.processes[0].kept);
}

#[test]
fn a_process_waits_before_a_task() {
    let mut plan = plan("1: 100000 100000\n2: 300000\nslots: 1 1 2");
    plan.processes[0].tasks[1].wait_insns = Some(50_000);
    let simulation = run(&plan);
    // Nobody can fill its slot, as 2 is not behind.
    assert_eq!(ended(&simulation), [(1, 0, 100_000), (1, 1, 250_000), (2, 0, 550_000)]);
    assert_eq!(simulation.cpus[0].idle_ns, 50_000);
}

#[test]
fn another_rate_takes_another_time() {
    let plan = plan("1: 1000000\n2: 10\nslots: 1 2");
    let options = Options { rate_insns_per_ms: 3_000_000, ..Options::default() };
    let simulation = run_with(&plan, &options);
    // 333,333.3 and 3.3 ns: a task ends in a whole nanosecond.
    assert_eq!(ended(&simulation), [(1, 0, 333_334), (2, 0, 333_338)]);
    let options = Options { rate_insns_per_ms: 250_000, ..Options::default() };
    assert_eq!(ended(&run_with(&plan, &options)), [(1, 0, 4_000_000), (2, 0, 4_000_040)]);
}

/// Twice as long as at the rate of the options, and twice as long again.
fn with_rates(text: &str) -> pbs_plan::Plan {
    let mut plan = plan(text);
    plan.cpus[0].rate_insns_per_ms = 500_000;
    plan.processes[1].rate_insns_per_ms = 250_000;
    plan
}

#[test]
fn a_plan_says_the_rate_of_a_cpu_and_of_a_process() {
    let plan = with_rates("1: 1000000\n2: 300000\nslots: 1 i200000 2");
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 2_000_000), (2, 0, 3_600_000)]);
    let cpu = &simulation.cpus[0];
    assert_eq!((cpu.running_ns, cpu.idle_ns), (3_200_000, 400_000));
    assert_eq!(cpu.retired_insns, 1_300_000);
}

/// The process is slow, therefore it takes longer to reach t1 and the end of a task.
#[test]
fn a_slow_process_is_preempted_at_the_same_count() {
    let plan = with_rates("1: 1000000\n2: 1000000/1100000 500000\nslots: 2 1 2");
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 6_200_000), (2, 0, 6_400_000), (2, 1, 8_400_000)]);
    let preempted = of_kind(&simulation, EventKind::Preempted);
    assert_eq!(preempted[0].retired_insns, 1_050_000);
    assert_eq!(preempted[0].time_ns, 4_200_000);
}

#[test]
fn ceilings_and_deadlines_are_those_of_the_rates() {
    let mut plan = with_rates("1: 1000000\n2: 1000000 1000000\nslots: 2 1 2");
    plan.processes[1].tasks[0].wait_insns = Some(1 << 40);
    plan.processes[1].buffer_insns = 100_000;
    plan.config = Some(Config {
        ceiling_factor_permille: 2000,
        ceiling_extra_ns: 1_000_000,
        capacity_buffer_permille: 1100,
        window_period_ns: 100_000_000,
        window_unallocated_ns: 5_000_000,
        ..config()
    });
    let simulation = run(&plan);
    let ceilings = of_kind(&simulation, EventKind::Ceiling);
    assert_eq!(ceilings[0].value, 2 * 4_000_000 + 1_000_000);
    let deadlines = simulation.processes.iter().map(|p| (p.id, p.deadline_ns));
    let planned = |ns: u64| ns * 11 / 10 * 100 / 95;
    let expected = [(1, planned(6_000_000)), (2, planned(10_400_000))];
    assert_eq!(deadlines.collect::<Vec<_>>(), expected);
}

#[test]
fn a_late_timer_and_switches_cost_what_is_said() {
    let plan = plan("1: 1000000/1100000 500000\n2: 300000\nslots: 1 2 1");
    let options = Options {
        timing: Timing { timer_delay_insns: 25, switch_ns: 1000, ..Timing::default() },
        ..Options::default()
    };
    let simulation = run_with(&plan, &options);
    let preempted = of_kind(&simulation, EventKind::Preempted);
    assert_eq!(preempted[0].retired_insns, 1_050_025);
    assert_eq!(simulation.cpus[0].lost_ns, 3000);
    assert_eq!(ended(&simulation), [(2, 0, 1_352_025), (1, 0, 1_403_000), (1, 1, 1_903_000)]);
}

/// Two checks take time: one at t1 in the first slot, and one in the last slot, of which the first
/// task has used a part.
#[test]
fn a_look_takes_time() {
    let plan = plan("1: 1000000/1100000 500000\n2: 300000\nslots: 1 2 1");
    let options =
        Options { timing: Timing { look_ns: 100, ..Timing::default() }, ..Options::default() };
    let simulation = run_with(&plan, &options);
    assert_eq!(simulation.cpus[0].lost_ns, 200);
    assert_eq!(ended(&simulation), [(2, 0, 1_350_100), (1, 0, 1_400_100), (1, 1, 1_900_200)]);
}

/// t1 of 10,500,000 is noticed at the tick at 12 ms.
#[test]
fn a_node_that_has_only_its_tick_notices_late() {
    let plan = plan("1: 10000000/20000000\n2: 300000\nslots: 1 2");
    let options = Options { resolution: Resolution::Tick, ..Options::default() };
    let simulation = run_with(&plan, &options);
    assert_eq!(of_kind(&simulation, EventKind::Preempted)[0].retired_insns, 12_000_000);
    // The end of a task is a system call, and is noticed at once.
    assert_eq!(ended(&simulation), [(2, 0, 12_300_000), (1, 0, 20_300_000)]);
}

#[test]
fn an_endless_loop_stops_at_the_limit() {
    let text = format!("1: 1000000/{}\n2: 300000\nslots: 1 2", u64::MAX);
    let plan = plan(&text);
    let simulation = run(&plan);
    assert!(!simulation.ended());
    assert_eq!(simulation.tasks[0].ended_ns, None);
    assert_eq!(simulation.tasks[1].ended_ns, Some(1_350_000));
    let cpu = &simulation.cpus[0];
    assert_eq!(simulation.tasks[0].retired_insns + 300_000, cpu.running_ns);
    assert!(!simulation.processes[0].kept && simulation.processes[1].kept);
    assert!(of_kind(&simulation, EventKind::PlanEnded).is_empty());

    let options = Options { limit_ns: Some(5_000_000), ..Options::default() };
    assert_eq!(run_with(&plan, &options).ended_ns(), 5_000_000);
}

#[test]
fn cpus_run_beside_each_other() {
    let mut plan = plan("1: 1000 2000\n2: 1500\nslots: 1 1");
    plan.cpus.push(pbs_plan::Cpu {
        cpu: 3,
        slots: vec![pbs_plan::Slot::Process { process: 1 }],
        ..pbs_plan::Cpu::default()
    });
    let simulation = run(&plan);
    let ended: Vec<_> = of_kind(&simulation, EventKind::TaskEnded)
        .iter()
        .map(|event| (event.time_ns, event.cpu))
        .collect();
    assert_eq!(ended, [(1000, 0), (1500, 3), (3000, 0)]);
    assert!((0..).zip(&simulation.events).all(|(seq, event)| event.seq == seq));
    assert_eq!(simulation.cpus.len(), 2);
}

#[test]
fn grants_can_be_left_out() {
    let plan = plan("1: 1000000/1100000 500000\n2: 300000\nslots: 1 2 1");
    let options = Options { record_grants: false, ..Options::default() };
    let (with, without) = (run(&plan), run_with(&plan, &options));
    assert!(of_kind(&without, EventKind::Grant).is_empty());
    assert_eq!(with.tasks, without.tasks);
    let grants = of_kind(&with, EventKind::Grant).len();
    assert_eq!(with.events.len(), without.events.len() + grants);
}

#[test]
fn a_bad_configuration_is_refused_with_words() {
    let options =
        Options { config: Config { max_preemptions: 0, ..config() }, ..Options::default() };
    let mut plan = plan("1: 10\nslots: 1");
    plan.config = None;
    let error = simulate(&plan, &options, &mut NoAnswer).unwrap_err();
    assert!(matches!(error, Error::Config(_)));
    assert!(error.to_string().contains("max_preemptions"), "{error}");
}

fn after(process: u32, task: u32) -> Vec<After> {
    vec![After { process, task, ..After::default() }]
}

/// A pipeline whose first stage takes three times what was planned: those behind
/// it wait, and are not late for that.
#[test]
fn a_task_waits_for_another() {
    let mut plan = plan("1: 1000000/3000000\n2: 500000\n3: 500000\nslots: 1 2 3");
    plan.processes[1].tasks[0].after = after(1, 0);
    plan.processes[2].tasks[0].after = after(2, 0);
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 3_000_000), (2, 0, 3_500_000), (3, 0, 4_000_000)]);
    let waits = of_kind(&simulation, EventKind::Waits);
    let waits = waits.iter().map(|event| (event.process, event.value));
    assert_eq!(waits.collect::<Vec<_>>(), [(2, 1 << 32)]);
    let ends = of_kind(&simulation, EventKind::TaskEnded);
    let lateness = ends.iter().map(|event| (event.process, event.lateness_insns));
    assert_eq!(lateness.collect::<Vec<_>>(), [(1, 2_000_000), (2, 0), (3, 0)]);
}

/// The one on the other CPU goes on in the moment in which the task ends, and the
/// idle CPU is told in between.
#[test]
fn a_task_waits_for_one_on_another_cpu() {
    let mut plan = plan("1: 1000000/1200000 300000\nslots: 1 1");
    plan.processes.push(Process {
        id: 2,
        tasks: vec![Task {
            planned_insns: 400_000,
            real_insns: Some(500_000),
            after: after(1, 0),
            ..Task::default()
        }],
        ..Process::default()
    });
    plan.processes[0].tasks[1].after = after(2, 0);
    plan.cpus.push(Cpu { cpu: 1, slots: vec![Slot::Process { process: 1 }], ..Cpu::default() });
    let simulation = run(&plan);
    assert_eq!(ended(&simulation), [(1, 0, 1_200_000), (2, 0, 1_700_000), (1, 1, 2_000_000)]);
    assert_eq!(simulation.cpus[1].idle_ns, 1_200_000);
}

/// A sender on another CPU takes three times what was planned. Its message is late, and neither the
/// receiver nor the node of it is.
#[test]
fn a_late_message_is_a_failure_of_its_own() {
    let mut plan = plan("1: 1000000/3000000\nslots: 1");
    let message = After { process: 1, task: 0, arrival_ns: Some(1_000_000), ..After::default() };
    plan.processes.push(Process {
        id: 2,
        tasks: vec![Task { planned_insns: 400_000, after: vec![message], ..Task::default() }],
        ..Process::default()
    });
    plan.cpus.push(Cpu {
        cpu: 1,
        slots: vec![
            Slot::Idle { length_insns: 1_000_000, real_insns: None },
            Slot::Process { process: 1 },
        ],
        ..Cpu::default()
    });
    let config = Config {
        thresholds: Threshold::T1 as u64 | Threshold::T2Message as u64 | Threshold::Info as u64,
        t2_message_ns: 800_000,
        stress_reset: 0,
        ..config()
    };
    plan.config = Some(config);
    let simulation = run(&plan);
    let told: Vec<_> = simulation
        .events
        .iter()
        .filter(|event| event.reason == Cause::Message as u16 && event.level_percent != 0)
        .map(|event| (event.time_ns, event.level_percent, event.process, event.value))
        .collect();
    let from = 1 << 32;
    let expected = [
        (1_200_001, 25, 2, from),
        (1_400_001, 50, 2, from),
        (1_600_001, 75, 2, from),
        (1_800_001, 100, 2, from),
    ];
    assert_eq!(told, expected);
    assert_eq!(ended(&simulation), [(1, 0, 3_000_000), (2, 0, 3_400_000)]);
}

/// The second process starts late by what the first one takes more, and early by what its own first
/// task takes less; unallocated time counts for nothing.
#[test]
fn untimely_tasks_are_reported_by_their_deviation() {
    let mut plan = plan("1: 1000000/1300000 1000000\n2: 1000000/100000 1000000\nslots: 1 2 2 1");
    plan.config = Some(Config { thresholds: 0, timeliness_ns: 250_000, ..config() });
    let simulation = run(&plan);
    let told: Vec<_> = simulation
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Info as u16)
        .map(|event| (event.reason, event.process, event.task, event.value.cast_signed()))
        .collect();
    let [start, end] = [Cause::Start as u16, Cause::End as u16];
    let expected = [
        (end, 1, 0, 300_000),
        (start, 2, 0, 300_000),
        (start, 2, 1, -600_000),
        (start, 1, 1, -600_000),
    ];
    assert_eq!(told, expected);
    assert_eq!(simulation.counts().signals["info"]["start"], 3);
}

/// (kind, cause, process, what is compared, level) of the signals about memory, in the
/// order of time.
fn about_memory(simulation: &Simulation) -> Vec<(EventKind, Cause, u32, u64, u32)> {
    let kinds = [EventKind::Late, EventKind::Info];
    let causes = [Cause::Memory, Cause::NodeMemory];
    let mut told = Vec::new();
    for event in &simulation.events {
        let kind = kinds.into_iter().find(|&kind| kind as u16 == event.kind);
        let cause = causes.into_iter().find(|&it| it as u16 == event.reason);
        if let (Some(kind), Some(cause)) = (kind, cause) {
            let level = event.level_percent;
            told.push((kind, cause, event.process, event.memory_bytes, level));
        }
    }
    told
}

/// The plan with these planned and real peaks, of whose thresholds only t1 and those of
/// memory are on, to the byte.
fn with_memory(text: &str, peaks: &[(u64, u64)], limit_bytes: u64) -> pbs_plan::Plan {
    let mut plan = plan(text);
    plan.config = Some(Config {
        thresholds: Threshold::T1 as u64 | Threshold::T2Memory as u64,
        sigma_memory_permille: 1000,
        memory_spacer_bytes: 0,
        ..config()
    });
    plan.memory_bytes = limit_bytes;
    for (process, &(planned_bytes, real_bytes)) in plan.processes.iter_mut().zip(peaks) {
        process.memory_bytes = planned_bytes;
        process.real_memory_bytes = Some(real_bytes);
    }
    plan
}

/// Moves the last slot to another CPU.
fn on_two_cpus(mut plan: pbs_plan::Plan) -> pbs_plan::Plan {
    let slots = vec![plan.cpus[0].slots.pop().unwrap()];
    plan.cpus.push(Cpu { cpu: 1, slots, ..Cpu::default() });
    plan
}

#[test]
fn who_has_more_memory_than_planned_is_told_once_until_that_is_answered() {
    let text = "1: 1000000 2000000\n2: 1000000 2000000\nslots: 1 2 1 2";
    let mut plan = with_memory(text, &[(100, 100), (100, 101)], 0);
    plan.config.as_mut().unwrap().reschedule_time_ns = 100_000;
    let expected = [(EventKind::Late, Cause::Memory, 2, 101, 100)];
    let unanswered = run(&plan);
    assert_eq!(about_memory(&unanswered), expected);
    let two = &unanswered.processes[1];
    assert_eq!((two.planned_memory_bytes, two.real_memory_bytes), (100, 101));
    let answered = simulate(&plan, &Options::default(), &mut Stretch::default()).unwrap();
    assert_eq!(about_memory(&answered), expected);
    assert_eq!(answered.replans.len(), 1, "{:?}", answered.replans);
    assert_eq!(answered.replans[0].plan.processes[1].memory_bytes, 101);
    assert_eq!(answered.replans[0].plan.processes[0].memory_bytes, 100);
    assert!(answered.ended());
}

/// Without a real peak a process has what was planned, as a task takes what was, and that is no
/// information.
#[test]
fn on_the_way_to_a_threshold_there_is_information() {
    let mut plan = with_memory("1: 1000000\nslots: 1", &[(100, 101)], 120);
    let config = plan.config.as_mut().unwrap();
    config.thresholds |= Threshold::Info as u64;
    config.sigma_memory_permille = 1300;
    let expected = [
        (EventKind::Info, Cause::Memory, 1, 101, 75),
        (EventKind::Info, Cause::NodeMemory, 1, 101, 75),
    ];
    assert_eq!(about_memory(&run(&plan)), expected);
    plan.processes[0].real_memory_bytes = None;
    assert_eq!(about_memory(&run(&plan)), []);
}

#[test]
fn the_node_has_the_memory_of_all_cpus_and_of_who_has_not_ended() {
    let one = with_memory("1: 10000000\n2: 30000000\nslots: 1 2", &[(0, 600), (0, 600)], 1000);
    // One after the other.
    let simulation = run(&one);
    assert_eq!(about_memory(&simulation), []);
    assert_eq!(simulation.memory.peak_bytes, 600);
    // Beside each other: the first look sees the memory of one, the next that of both.
    let simulation = run(&on_two_cpus(one));
    let beyond = (EventKind::Late, Cause::NodeMemory, 2, 1200, 100);
    assert_eq!(about_memory(&simulation), [beyond]);
    assert_eq!(simulation.memory.peak_bytes, 1200);
    assert_eq!(simulation.memory.limit_bytes, 1000);
    // On a node that has more than the plan may use, that is all.
    assert!(simulation.ended());
    assert_eq!(ended(&simulation), [(1, 0, 10_000_000), (2, 0, 30_000_000)]);
}

fn over(memory_over: MemoryOver) -> Options {
    Options { memory_over, ..Options::default() }
}

/// 1 has its memory first, and 2 begins in vain; 3 begins when 1 has ended. Who waits
/// for 2 never goes on.
#[test]
fn who_begins_without_memory_left_is_killed() {
    let text = "1: 1000000\n3: 1000000\n4: 1000000\n2: 3000000\nslots: 1 3 4 2";
    let peaks = [(0, 600), (0, 600), (0, 0), (0, 600)];
    let mut plan = on_two_cpus(with_memory(text, &peaks, 1000));
    plan.processes[2].tasks[0].after = vec![After { process: 2, task: 0, ..After::default() }];
    let simulation = run_with(&plan, &over(MemoryOver::Kill));
    // Its death ends the task that it was to begin.
    let dead = (2, 0, 0);
    assert_eq!(ended(&simulation), [dead, (1, 0, 1_000_000), (3, 0, 2_000_000)]);
    let killed = simulation.processes.iter().map(|process| process.killed_ns);
    assert_eq!(killed.collect::<Vec<_>>(), [None, None, None, Some(0)]);
    let kept = simulation.processes.iter().map(|process| process.kept);
    assert_eq!(kept.collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!((simulation.memory.killed, simulation.memory.peak_bytes), (1, 600));
    assert!(!simulation.ended());
    assert_eq!(of_kind(&simulation, EventKind::Waits).last().unwrap().reason, 2);
}

/// Both use 500 of 1000 bytes that are not there: a third of what they use, on which
/// an instruction takes four times as long. So all takes twice the time, until 1 ends.
#[test]
fn all_are_slower_while_the_node_swaps() {
    let text = "1: 1000000\n2: 3000000\nslots: 1 2";
    let plan = on_two_cpus(with_memory(text, &[(0, 750), (0, 750)], 1000));
    let swap = over(MemoryOver::Swap { slowdown: 4 });
    let simulation = run_with(&plan, &swap);
    assert_eq!(ended(&simulation), [(1, 0, 2_000_000), (2, 0, 4_000_000)]);
    assert_eq!(simulation.memory.killed, 0);
}
