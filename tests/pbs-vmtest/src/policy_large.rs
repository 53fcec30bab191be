// SPDX-License-Identifier: GPL-2.0
//! Plans of as many processes as there can be, each with a thread.

use std::ops::Range;
use std::sync::{mpsc, Condvar, Mutex};
use std::thread::Builder;

use pbs_core::wire::MAX_PROCESSES;
use pbs_uapi::{Eject, EventKind};

use crate::harness::{burn, sleep_ms, sysfs_number, Context, Node, Plan, Random, Verdict, CONFIG};
use crate::{check, check_eq};

/// Process 1 runs these; the others wait. So many that they outlast the swaps on the watched
/// kernel, too, which is slow to load a plan.
const TASKS: u32 = 240;
const SLOT_INSNS: u64 = 2_000_000;
const BURN_INSNS: u64 = 1_900_000;

/// Number of times that the plan is replaced by a plan like it.
const SWAPS: u64 = 8;

/// A plan for these processes; half of the time is unallocated, for the test.
fn plan(id: u64, processes: Range<u32>) -> Plan {
    let config = pbs_core::Config {
        window_period_ns: 10_000_000,
        window_unallocated_ns: 5_000_000,
        ..CONFIG
    };
    let mut plan = Plan::new(id).config(config);
    if id == 1 {
        // The threads are attached meanwhile.
        plan = plan.idle(200_000_000);
    }
    for task in 0..TASKS {
        plan = plan.slot(processes.start, task, SLOT_INSNS);
    }
    // Does not end in the time of the test.
    plan = plan.idle(1 << 40);
    for task in 0..8 {
        for process in processes.clone().skip(1) {
            plan = plan.slot(process, task, 1000);
        }
    }
    plan
}

/// Condition that threads wait for.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opens: Condvar,
}

impl Gate {
    fn wait(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opens.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opens.notify_all();
    }
}

/// Whether the thread waits at its gate.
fn sleeps(tid: i32) -> Result<bool, String> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    let stat = stat.context("state of a thread")?;
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    Ok(state == Some(Some('S')))
}

/// Plans of 1,024 processes replace each other while one of these runs, which
/// loses no count; then one that has other processes, and all threads leave.
pub fn large_plans_replace_each_other() -> Verdict {
    let node = Node::open()?;
    node.load(&plan(1, 1..MAX_PROCESSES + 1))?;
    let [runs, leaves] = [Gate::default(), Gate::default()];
    let (tell, told) = mpsc::channel();
    let node = std::thread::scope(|scope| {
        let device = &node.device;
        let mut threads = Vec::new();
        for process in 1..=MAX_PROCESSES {
            let (tell, runs, leaves) = (tell.clone(), &runs, &leaves);
            let work = move || {
                // SAFETY: takes and returns numbers.
                let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
                tell.send(tid).expect("the test is there");
                if process != 1 {
                    return leaves.wait();
                }
                runs.wait();
                for _ in 0..TASKS {
                    burn(BURN_INSNS);
                    device.task_end(None).expect("task end");
                }
            };
            let thread = Builder::new().stack_size(64 << 10);
            threads.push(thread.spawn_scoped(scope, work).context("spawn")?);
            let tid = told.recv().context("a thread's id")?;
            // One that is attached earlier would wait with a lock of the others.
            while !sleeps(tid)? {
                sleep_ms(1);
            }
            device.attach(tid, process, 0).context("attach")?;
        }
        let result = replace(&node, &runs, || threads.remove(0).join().is_ok());
        // Whatever came of it, the threads must go before the scope does.
        runs.open();
        let _ = device.drop_plan(0);
        leaves.open();
        result
    })
    .and_then(|()| {
        let mut node = node;
        node.read()?;
        Ok(node)
    })?;
    let log = node.log();

    let ends = node.of(EventKind::TaskEnded);
    check_eq!(ends.len(), TASKS as usize, "tasks that ended\n{log}");
    let mut retired_insns = 0;
    for (end, task) in ends.iter().zip(0..) {
        check_eq!((end.process, end.task), (1, task), "what ended\n{log}");
        retired_insns += end.retired_insns;
    }
    let burnt_insns = u64::from(TASKS) * BURN_INSNS;
    check!(
        retired_insns.wrapping_sub(burnt_insns) < u64::from(TASKS) * 2_000,
        "retired are {retired_insns}, burnt were {burnt_insns}\n{log}"
    );
    let plans: Vec<u64> = ends.iter().map(|end| end.plan_id).collect();
    let met_running = (2..2 + SWAPS).filter(|id| plans.contains(id)).count();
    println!("{met_running} of {SWAPS} plans came while tasks ran");
    check!(met_running >= 4, "too few plans met a running task\n{log}");

    let ejected = node.of(EventKind::Ejected);
    let processes: Vec<u32> = ejected.iter().map(|event| event.process).collect();
    let all: Vec<u32> = (2..=MAX_PROCESSES).collect();
    check_eq!(processes, all, "who was ejected");
    check!(ejected.iter().all(|e| e.reason == Eject::Plan as u16), "why they were ejected\n{log}");
    let longest_ns = sysfs_number("cpu0/longest_swap_ns")?;
    println!("a change of plans held the CPU for {longest_ns} ns at the most");
    check!(longest_ns > 0, "no change of plans was measured");
    Ok(())
}

/// Replaces the plan while process 1 runs, and when it has ended.
fn replace(node: &Node, runs: &Gate, ended: impl FnOnce() -> bool) -> Verdict {
    let attached = i64::from(MAX_PROCESSES);
    check_eq!(sysfs_number("cpu0/threads")?, attached, "threads");
    runs.open();
    for swap in 0..SWAPS {
        sleep_ms(37);
        node.load(&plan(2 + swap, 1..MAX_PROCESSES + 1))?;
        check!(
            sysfs_number("cpu0/threads")? >= attached - 1,
            "threads have left with plan {}",
            2 + swap
        );
    }
    check!(ended(), "process 1 failed");
    check_eq!(sysfs_number("cpu0/threads")?, attached - 1, "threads");
    node.load(&plan(100, 5000..5000 + MAX_PROCESSES))?;
    check_eq!(sysfs_number("cpu0/threads")?, 0, "threads left");
    Ok(())
}

/// Processes of each of the two CPUs, in an order that is hard to sort.
const SHUFFLED: u32 = 512;

/// A plan whose processes are spread over two CPUs in a wild order, and wait for each other across
/// the CPUs. The kernel sorts them for that, which must not take the more of its stack.
pub fn plans_in_any_order_fit_the_stack() -> Verdict {
    let node = Node::open()?;
    for seed in 1..=8 {
        let mut random = Random::new(seed);
        let mut of_cpu = [Vec::new(), Vec::new()];
        for process in 1..=2 * SHUFFLED {
            of_cpu[random.below(2)].push(process);
        }
        of_cpu.iter_mut().for_each(|processes| processes.truncate(SHUFFLED as usize));
        let mut plan = Plan::new(seed);
        for (cpu, processes) in (0..).zip(&of_cpu) {
            plan = plan.cpu(cpu).idle(1 << 40);
            for &process in processes {
                plan = plan.slot(process, 0, 1_000_000);
                if cpu == 0 {
                    let after = of_cpu[1][random.below(of_cpu[1].len())];
                    plan = plan.edge(process, 0, after, 0);
                }
            }
        }
        node.load(&plan).context(&format!("plan {seed}"))?;
    }
    Ok(())
}
