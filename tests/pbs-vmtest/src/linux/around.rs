// SPDX-License-Identifier: GPL-2.0
//! Plans in Linux around the class: the places where others run, and the views of plans.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use crate::harness::{fork, sleep_ms, Child, Context, Node, Plan, Verdict};
use crate::linux::policy::{log, set_policy};
use crate::linux::scene::{
    ends_well, eventually, futex, set_affinity, Scene, SharedWords, ENDLESS_INSNS, PLAN_CPU,
};
use crate::{check, check_eq};

/// A process that may run on both CPUs, and says on which it does when it is woken up.
struct Unbound {
    child: Child,
    words: &'static SharedWords,
}

impl Unbound {
    /// Starts a thread of `SCHED_FIFO` with that priority.
    fn fifo(priority: u32) -> Result<Self, String> {
        let words = SharedWords::shared()?;
        let child = fork(|| loop {
            let round = words.other.load(SeqCst);
            futex(&words.other, libc::FUTEX_WAIT, round);
            if words.go.load(SeqCst) != 0 {
                return;
            }
            if words.other.load(SeqCst) != round {
                // SAFETY: no memory is involved.
                let cpu = unsafe { libc::sched_getcpu() };
                words.note.store(cpu as u32, SeqCst);
                words.progress.fetch_add(1, SeqCst);
            }
        })?;
        set_policy(child.pid, libc::SCHED_FIFO, priority)
            .map_err(|errno| format!("SCHED_FIFO: errno {errno}"))?;
        Ok(Self { child, words })
    }

    fn wake(&self) {
        self.words.other.fetch_add(1, SeqCst);
        futex(&self.words.other, libc::FUTEX_WAKE, 1);
    }

    /// Wakes it up, and says on which CPU it ran.
    fn wakes_on(&self) -> Result<u32, String> {
        let before = self.words.progress();
        // It may not be asleep yet.
        eventually("it runs when it is woken up", || {
            self.wake();
            sleep_ms(5);
            self.words.progress() != before
        })?;
        sleep_ms(5);
        Ok(self.words.note.load(SeqCst))
    }

    /// Makes the process run on that CPU, which is free, and sleep there.
    fn goes_to(&self, cpu: u32) -> Verdict {
        let bind =
            |cpus: &[usize]| set_affinity(self.child.pid, cpus).map_err(|e| format!("errno {e}"));
        bind(&[cpu as usize])?;
        check_eq!(self.wakes_on()?, cpu, "the CPU to which it is bound");
        bind(&[0, PLAN_CPU as usize])
    }

    fn ends(mut self) -> Verdict {
        self.words.go.store(1, SeqCst);
        self.wake();
        ends_well(&mut self.child, "the unbound process")
    }
}

fn set_online(cpu: u32, online: u8) -> Verdict {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(&path, online.to_string()).context(&path)
}

/// The third CPU is there to go and come: that builds the domains of the others anew.
const THIRD_CPU: u32 = 2;

/// A FIFO thread that may run elsewhere does not wake up on a plan's CPU, whether a plan process
/// runs there or not; nor after what real time and the domains say of the CPU meanwhile. When the
/// plan has gone it may.
pub fn fifo_thread_avoids_a_plan() -> Verdict {
    set_online(THIRD_CPU, 0)?;
    let mut scene = Scene::new()?;
    let fifo = Unbound::fifo(10)?;
    let bound = Unbound::fifo(5)?;
    let mut plan = Plan::new(61).cpu(PLAN_CPU);
    let disturbances = ["nothing", "a bound FIFO thread wakes up", "the domains are built anew"];
    for process in 1..=disturbances.len() as u32 {
        plan = plan.slot(process, 0, ENDLESS_INSNS);
    }
    scene.node.load(&plan)?;
    for (process, disturbance) in (1..).zip(disturbances) {
        let (blocked, spinning) = (SharedWords::shared()?, SharedWords::shared()?);
        let mut child = scene.spawn(process, || {
            blocked.block();
            spinning.spin();
        })?;
        eventually("the plan process sleeps in its slot", || blocked.progress() != 0)?;
        fifo.goes_to(PLAN_CPU)?;
        check_eq!(fifo.wakes_on()?, 0, "CPU of the FIFO thread beside a slot");

        fifo.goes_to(PLAN_CPU)?;
        bound.goes_to(PLAN_CPU)?;
        set_affinity(bound.child.pid, &[PLAN_CPU as usize]).map_err(|e| format!("errno {e}"))?;
        blocked.release();
        spinning.runs("the plan process")?;
        match process {
            2 => bound.wake(),
            3 => {
                set_online(THIRD_CPU, 1)?;
                set_online(THIRD_CPU, 0)?;
            }
            _ => {}
        }
        check_eq!(
            fifo.wakes_on()?,
            0,
            "CPU of the FIFO thread beside a plan process, after this: {disturbance}"
        );
        spinning.runs("the plan process")?;
        spinning.release();
        ends_well(&mut child, "the plan process")?;
    }
    scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    fifo.goes_to(PLAN_CPU)?;
    check_eq!(fifo.wakes_on()?, PLAN_CPU, "CPU of the FIFO thread without a plan");
    fifo.goes_to(0)?;
    fifo_is_pushed_away_from_another(&fifo)?;
    fifo.ends()?;
    bound.ends()
}

/// A FIFO thread that wakes up where a better one runs goes to the CPU that had the plan.
fn fifo_is_pushed_away_from_another(fifo: &Unbound) -> Verdict {
    let words = SharedWords::shared()?;
    let mut better = fork(|| {
        // It ends by itself: the test can't run beside it.
        let ready = set_affinity(0, &[0]).is_ok() && set_policy(0, libc::SCHED_FIFO, 50).is_ok();
        let before = fifo.words.progress();
        for turn in 0..10_000_000 {
            if turn == 1000 {
                fifo.wake();
            }
            if !ready || fifo.words.progress() != before {
                break;
            }
        }
        words.note.store(fifo.words.progress() - before, SeqCst);
    })?;
    ends_well(&mut better, "the better thread")?;
    check_eq!(words.note.load(SeqCst), 1, "turns of the FIFO thread beside a better one");
    check_eq!(fifo.words.note.load(SeqCst), PLAN_CPU, "its CPU, which has no plan any more");
    Ok(())
}

/// A normal process that shares a CPU with a plan is moved to another CPU and stays there, although
/// that has two already: a third of it is more than what the plan leaves.
pub fn fair_loop_leaves_a_plan() -> Verdict {
    let mut scene = Scene::new()?;
    let others = SharedWords::shared()?;
    let mut children = Vec::new();
    for _ in 0..2 {
        let child = fork(|| others.spin())?;
        set_affinity(child.pid, &[0]).map_err(|e| format!("errno {e}"))?;
        children.push(child);
    }
    scene.node.load(&Plan::new(62).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let words = SharedWords::shared()?;
    let fair = fork(|| {
        while words.go.load(SeqCst) == 0 {
            // SAFETY: no memory is involved.
            let cpu = unsafe { libc::sched_getcpu() };
            words.note.store(cpu as u32, SeqCst);
            words.progress.fetch_add(1, SeqCst);
        }
    })?;
    let bind = |cpus: &[usize]| set_affinity(fair.pid, cpus).map_err(|e| format!("errno {e}"));
    bind(&[PLAN_CPU as usize])?;
    eventually("the loop is on the CPU with the plan", || words.note.load(SeqCst) == PLAN_CPU)?;
    let planned = SharedWords::shared()?;
    let mut child = scene.spawn(1, || planned.spin())?;
    planned.runs("the plan process")?;
    bind(&[0, PLAN_CPU as usize])?;
    eventually("the loop leaves the CPU with the plan", || words.note.load(SeqCst) == 0)?;
    // Linux takes a while to learn what the plan leaves, and may move the loop back before.
    let mut stays = 0;
    for _ in 0..200 {
        words.runs("the loop")?;
        sleep_ms(10);
        stays = if words.note.load(SeqCst) == 0 { stays + 1 } else { 0 };
        if stays == 20 {
            break;
        }
    }
    check_eq!(stays, 20, "looks in a row at which the loop was on the CPU without the plan");
    planned.runs("the plan process")?;
    planned.release();
    ends_well(&mut child, "the plan process")?;
    words.release();
    others.release();
    children.push(fair);
    children.iter_mut().try_for_each(|child| ends_well(child, "a normal process"))
}

/// A value that `/proc` or debugfs shows in a line of its own.
fn shown(text: &str, name: &str) -> Result<i64, String> {
    let value = text.lines().find_map(|line| {
        let (left, right) = line.split_once(':')?;
        (left.trim() == name).then(|| right.trim())
    });
    value.and_then(|value| value.parse().ok()).ok_or_else(|| format!("no number {name} in\n{text}"))
}

/// Views of a thread and of a CPU, and reports: process, task and slot.
pub fn plan_is_shown() -> Verdict {
    const DEBUGFS: &str = "/sys/kernel/debug";
    let mut scene = Scene::new()?;
    let plan = Plan::new(63).cpu(PLAN_CPU).slot(7, 0, 1_000_000).slot(9, 4, 1_000_000).slot(
        9,
        5,
        ENDLESS_INSNS,
    );
    scene.node.load(&plan)?;
    let sched = |pid: i32| {
        let path = format!("/proc/{pid}/sched");
        fs::read_to_string(&path).context(&path)
    };
    let words = SharedWords::shared()?;
    let device = Node::open()?.device;
    let mut first = scene.spawn(7, || ())?;
    ends_well(&mut first, "process 7")?;
    let mut second = scene.spawn(9, || {
        device.task_end(None).expect("task end");
        words.spin();
    })?;
    words.runs("process 9")?;
    let text = sched(second.pid)?;
    for (name, value) in [
        ("pbs.plan_id", 63),
        ("pbs.cpu", PLAN_CPU.into()),
        ("pbs.process", 9),
        ("pbs.task", 5),
        ("pbs.slot", 2),
        ("pbs.planned_insns", ENDLESS_INSNS as i64),
    ] {
        check_eq!(shown(&text, name)?, value, "{name} in\n{text}");
    }
    // It has ended its first task early, or late.
    shown(&text, "pbs.lateness_insns")?;
    check!(shown(&text, "pbs.retired_insns")? > 0, "it has retired nothing:\n{text}");
    let text = sched(std::process::id() as i32)?;
    check!(!text.contains("pbs."), "of a normal process:\n{text}");

    let _ = fs::create_dir(DEBUGFS);
    // SAFETY: strings that end with zero, no data.
    unsafe {
        libc::mount(
            c"debugfs".as_ptr(),
            c"/sys/kernel/debug".as_ptr(),
            c"debugfs".as_ptr(),
            0,
            std::ptr::null(),
        );
    }
    let path = format!("{DEBUGFS}/sched/debug");
    let text = fs::read_to_string(&path).context(&path)?;
    let section = |cpu: u32| {
        let mut parts = text.split("\npbs_rq[");
        let part = parts.find(|part| part.starts_with(&format!("{cpu}]:")));
        part.and_then(|part| part.split("\n\n").next())
            .map(str::to_owned)
            .ok_or_else(|| format!("no section pbs_rq[{cpu}] in\n{text}"))
    };
    let own = section(PLAN_CPU)?;
    for (name, value) in [
        (".nr_running", 1),
        (".plan_id", 63),
        (".slot", 2),
        (".slots", 3),
        (".granted_process", 9),
        (".threads", 1),
        (".unfinished", 1),
    ] {
        let shown = shown(&own.replace("  .", "."), name)?;
        check_eq!(shown, value, "{name} in\n{own}");
    }
    check!(!section(0)?.contains("plan_id"), "a plan of the CPU that has none");

    let says = "Plan: 63 CPU: 1 Process: 9 Task: 5 Slot: 2 Lateness:";
    let trigger = |key| fs::write("/proc/sysrq-trigger", key).is_ok();
    let says_it = |count| log().is_ok_and(|log| log.matches(says).count() == count);
    // All tasks; then what each CPU executes, which is shown as an oops shows it.
    check!(trigger("t") && says_it(1), "SysRq-t does not name the process");
    eventually("SysRq-l names the process", || {
        // Now and then it is unallocated time.
        trigger("l") && says_it(2)
    })?;
    let text = fs::read_to_string("/proc/schedstat").context("/proc/schedstat")?;
    let cpus = text.lines().filter(|line| line.starts_with("cpu")).count();
    check_eq!(cpus, 2, "CPUs in /proc/schedstat");
    words.release();
    ends_well(&mut second, "process 9")?;
    scene.plan_ends()
}
