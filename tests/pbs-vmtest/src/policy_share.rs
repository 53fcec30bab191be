// SPDX-License-Identifier: GPL-2.0
//! The rest of the system lives beside a plan that never lets go of the CPU.

use pbs_core::Config;

use crate::check;
use crate::harness::{
    burn, cputime_ns, cvt, fork, kernel_is_watched, now_ns, sleep_ms, Child, Context, Counting,
    Node, Plan, Scene, Verdict, CONFIG, LEAD_IN_INSNS,
};

/// More than any of these tests lasts.
const FOR_EVER_INSNS: u64 = 1 << 40;
const LOOK_NS: u64 = 3_000_000_000;

/// A normal task has at least 4 % of a CPU whose plan is full.
pub fn hog_leaves_four_percent() -> Verdict {
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(FOR_EVER_INSNS))?;
    let scene = scene.start(&hog_plan())?;
    // Until it has the CPU.
    sleep_ms(100);
    four_percent(scene.children[0].pid)
}

/// A normal task has that share, too, when the hog wakes up in the class while the deadline server
/// serves the fair class, because a realtime task starved it.
pub fn hog_that_wakes_during_server() -> Verdict {
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(FOR_EVER_INSNS))?;
    scene.node.load(&hog_plan())?;
    let mut realtime = starve()?;
    let scene = scene.attach_and_open()?;
    realtime.kill(libc::SIGKILL)?;
    four_percent(scene.children[0].pid)?;
    realtime.wait()?;
    Ok(())
}

/// And when it enters the class while it is runnable, and the server serves.
pub fn hog_that_enters_during_server() -> Verdict {
    let node = Node::open()?;
    node.load(&hog_plan())?;
    let hog = fork(|| burn(FOR_EVER_INSNS))?;
    let mut realtime = starve()?;
    node.attach(&hog, 1)?;
    realtime.kill(libc::SIGKILL)?;
    four_percent(hog.pid)?;
    realtime.wait()?;
    Ok(())
}

/// A realtime task that never ends. When this returns the caller runs by the
/// grace of the deadline server alone.
fn starve() -> Result<Child, String> {
    let realtime = fork(|| burn(FOR_EVER_INSNS))?;
    let parameters = libc::sched_param { sched_priority: 50 };
    // SAFETY: `parameters` is valid.
    cvt(unsafe { libc::sched_setscheduler(realtime.pid, libc::SCHED_FIFO, &parameters) })
        .context("sched_setscheduler")?;
    let (start_ns, start_cpu_ns) = (now_ns(), cputime_ns());
    while now_ns() - start_ns < 2_000_000_000 {}
    let had = (cputime_ns() - start_cpu_ns) as f64 / (now_ns() - start_ns) as f64;
    println!("beside a realtime task: {:.2} %", 100.0 * had);
    check!(had < 0.2, "the realtime task did not starve anybody, so this proves nothing");
    Ok(realtime)
}

/// The windows are those of the plan: with 30 % of unallocated time a normal
/// task has at least that, and the plan not more than the rest.
pub fn windows_of_the_plan() -> Verdict {
    let config =
        Config { window_period_ns: 50_000_000, window_unallocated_ns: 15_000_000, ..CONFIG };
    let mut scene = Scene::new()?;
    scene.process(1, |_| burn(FOR_EVER_INSNS))?;
    let scene = scene.start(&hog_plan().config(config))?;
    sleep_ms(100);
    let (normal, plan) = shares(scene.children[0].pid)?;
    // The deadline server may add its 5 %.
    check!((0.295..0.36).contains(&normal), "a normal task had {:.2} %", 100.0 * normal);
    check!((0.64..0.705).contains(&plan), "the plan had {:.2} %", 100.0 * plan);
    Ok(())
}

fn hog_plan() -> Plan {
    Plan::new(1).idle(LEAD_IN_INSNS).slot(1, 0, FOR_EVER_INSNS)
}

/// This test gets at least 4 % of the CPU; the hog must have the rest.
fn four_percent(hog: i32) -> Verdict {
    let (normal, plan) = shares(hog)?;
    check!(normal >= 0.04, "a normal task had {:.2} %", 100.0 * normal);
    check!(plan >= 0.85, "the plan had {:.2} %, so this proves nothing", 100.0 * plan);
    Ok(())
}

/// The shares of this test and of the hog in the next three seconds.
fn shares(hog: i32) -> Result<(f64, f64), String> {
    let hog_before_ns = cputime_of(hog)?;
    let (start_ns, start_cpu_ns) = (now_ns(), cputime_ns());
    while now_ns() - start_ns < LOOK_NS {}
    let passed_ns = (now_ns() - start_ns) as f64;
    let normal = (cputime_ns() - start_cpu_ns) as f64 / passed_ns;
    let plan = (cputime_of(hog)? - hog_before_ns) as f64 / passed_ns;
    println!("a normal task had {:.2} %, the plan {:.2} %", 100.0 * normal, 100.0 * plan);
    Ok((normal, plan))
}

/// CPU time of another process.
fn cputime_of(pid: i32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/schedstat");
    if let Ok(text) = std::fs::read_to_string(&path) {
        let first = text.split(' ').next().unwrap_or("");
        return first.parse().context(&path);
    }
    // Without schedstats: clock ticks of user and system time.
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).context(&path)?;
    let after_name = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<u64> =
        after_name.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    // After the state: utime and stime are the 11th and 12th number.
    let ticks = fields.get(10).zip(fields.get(11)).map(|(user, system)| user + system);
    ticks.map(|ticks| ticks * 10_000_000).ok_or(format!("{path}: {text}"))
}

/// A child that ran under a plan is accounted like any other process.
pub fn cputime_is_sane() -> Verdict {
    const BURN_INSNS: u64 = 50_000_000;
    let plan = Plan::new(1).idle(LEAD_IN_INSNS).slot(1, 0, BURN_INSNS).slot(2, 0, 10_000_000);
    let mut scene = Scene::new()?;
    scene.tasks(1, &[BURN_INSNS])?;
    let rate = scene.node.device.info().map_err(|error| error.to_string())?.rate_insns_per_ms;
    let (user_before_us, system_before_us) = children_us()?;
    let node = scene.run(&plan)?;
    let (user_us, system_us) = children_us()?;
    let (user_us, system_us) = (user_us - user_before_us, system_us - system_before_us);
    let expected_us = BURN_INSNS * 1000 / rate;
    println!("user {user_us} us, system {system_us} us, the loop took {expected_us} us");
    // The time of interrupts is the interrupted one's.
    let most_percent = if kernel_is_watched() { 150 } else { 103 };
    let total_us = user_us + system_us;
    check!(
        total_us >= expected_us * 98 / 100 && total_us <= expected_us * most_percent / 100,
        "{total_us} us for a loop of {expected_us} us\n{}",
        node.log()
    );
    check!(user_us > 4 * system_us, "user {user_us} us, system {system_us} us");
    // It was the plan that it ran under.
    check!(
        node.task_ended(1, 0)?.retired_insns >= Counting::here().least_insns(BURN_INSNS),
        "{}",
        node.log()
    );
    Ok(())
}

/// User and system time of all children that were waited for, in microseconds.
fn children_us() -> Result<(u64, u64), String> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the answer, and zeroes are one too.
    let usage = unsafe {
        cvt(libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr())).context("getrusage")?;
        usage.assume_init()
    };
    let us = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec) as u64;
    Ok((us(usage.ru_utime), us(usage.ru_stime)))
}
