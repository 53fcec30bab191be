// SPDX-License-Identifier: GPL-2.0
//! Linux's accounts of plan processes: tasks that can run or sleep, waits for the CPU, losses of
//! the CPU, and wake-ups.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pbs_uapi::EventKind;

use crate::harness::{kernel_is_watched, sleep_ms, Context, Verdict};
use crate::linux::policy::set_policy;
use crate::linux::scene::{
    dies, ends_well, eventually, futex, reaches_state, Scene, SharedWords, Trio, Turns, Waits,
    ENDLESS_INSNS, PLAN_CPU,
};
use crate::linux::sleeps::{self, Crew};
use crate::{check, check_eq};

/// Number of tasks that can run or wait for I/O, of all CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Runnable {
    /// Number in `/proc/stat`.
    running: u32,
    blocked: u32,
    /// Number in `/proc/loadavg`.
    of_load: u32,
    /// Sums of the CPUs' own accounts: on the run queue, and asleep so that it counts as load.
    /// Of the latter a CPU's share may be negative.
    of_cpus: i64,
    uninterruptible: i64,
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).context(path)
}

/// The number behind a word that begins a line.
fn number_behind(text: &str, word: &str) -> Result<u32, String> {
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    let line = line.ok_or_else(|| format!("no {word}"))?;
    line.trim().parse().context(word)
}

/// Number in `/proc/stat`; a number below zero would be a very great one here.
fn running() -> Result<u32, String> {
    number_behind(&read("/proc/stat")?, "procs_running ")
}

/// Number of tasks that wait for their input or output.
pub fn waiting_for_input() -> Result<u32, String> {
    number_behind(&read("/proc/stat")?, "procs_blocked ")
}

fn runnable() -> Result<Runnable, String> {
    let stat = read("/proc/stat")?;
    let load = read("/proc/loadavg")?;
    let of_load = load.split(' ').nth(3).and_then(|f| f.split('/').next());
    let debug = read("/sys/kernel/debug/sched/debug")?;
    let (mut of_a_cpu, mut of_cpus, mut uninterruptible) = (false, 0, 0);
    for line in debug.lines() {
        // Then come its groups, with numbers of the same names.
        of_a_cpu = line.starts_with("cpu#") || of_a_cpu && !line.trim().is_empty();
        let Some((name, value)) = line.split_once(':').filter(|_| of_a_cpu) else {
            continue;
        };
        let value = || value.trim().parse::<i64>().context(line);
        match name.trim() {
            ".nr_running" => of_cpus += value()?,
            ".nr_uninterruptible" => uninterruptible += value()?,
            _ => {}
        }
    }
    Ok(Runnable {
        running: number_behind(&stat, "procs_running ")?,
        blocked: waiting_for_input()?,
        of_load: of_load.unwrap_or("").parse().context("/proc/loadavg")?,
        of_cpus,
        uninterruptible,
    })
}

/// Only the test itself can run, and nobody is counted as something else. Others, such as
/// threads of the kernel, come to rest sooner or later.
pub fn all_at_rest() -> Verdict {
    let rest = Runnable { running: 1, blocked: 0, of_load: 1, of_cpus: 1, uninterruptible: 0 };
    let mut last = Err("not read".to_owned());
    eventually("only the test can run", || {
        last = runnable();
        last == Ok(rest)
    })
    .map_err(|why| format!("{why}: {last:?}"))
}

/// Number of tasks that can run, at many moments, from the fewest to the most. The test is one of
/// them.
fn samples_of_running() -> Result<Vec<u32>, String> {
    let mut samples = Vec::new();
    for _ in 0..200 {
        samples.push(running()?);
        sleeps::sleep_us(300);
    }
    samples.sort_unstable();
    println!("{} to {} tasks could run", samples[0], samples[199]);
    check!(samples[0] >= 1, "not even the test can run");
    Ok(samples)
}

/// Thousands of times the CPU goes from one process to another, by t1, by a task's end, by
/// sleeps of all kinds; who can run is counted right at each moment, and in the end.
pub fn hand_overs_leave_the_counts() -> Verdict {
    all_at_rest()?;
    let turns = Turns::new(5, 2000, 10_000, SharedWords::spin)?;
    // The one whose turn it is, the one before it on its way to wait, and what the kernel
    // has to do.
    let most = samples_of_running()?[199];
    check!(most <= 6, "{most} tasks can run");
    turns.go_on_to_the_end()?;
    all_at_rest()?;

    let crew = Crew::new(4, 400)?;
    let most = samples_of_running()?[199];
    check!(most <= 12, "{most} tasks can run");
    crew.finish()?;
    all_at_rest()
}

/// A way for a process to leave the plan.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Killed,
    Detached,
    ToFifo,
    WithItsPlan,
}

/// A process that leaves the plan, in whatever way and whatever it does, is counted as
/// running as long as it runs.
pub fn leaving_leaves_the_counts() -> Verdict {
    use Leaves::{Detached, Killed, ToFifo, WithItsPlan};
    for how in [Killed, Detached, ToFifo, WithItsPlan] {
        for waits in [Waits::AtACall, Waits::InUserCode] {
            for who in 0..3 {
                leave(how, waits, who)
                    .map_err(|why| format!("{who} leaves, {how:?}, {waits:?}: {why}"))?;
            }
        }
    }
    Ok(())
}

fn leave(how: Leaves, waits: Waits, who: usize) -> Verdict {
    let trio = Trio::waiting(waits)?;
    let mut scene = trio.scene;
    // In the order in which they come to their ends.
    let mut actors = [trio.running, trio.waiting, trio.blocked];
    let pid = actors[who].pid();
    match how {
        Leaves::Killed => {
            actors[who].child.kill(libc::SIGKILL)?;
            check_eq!(dies(&mut actors[who].child, "the killed one")?, libc::SIGKILL, "status");
        }
        Leaves::Detached => scene.node.device.detach(pid).context("detach")?,
        Leaves::ToFifo => check_eq!(set_policy(pid, libc::SCHED_FIFO, 1), Ok(()), "to FIFO"),
        Leaves::WithItsPlan => scene.node.device.drop_plan(PLAN_CPU).context("drop")?,
    }
    if matches!(how, Leaves::Killed) {
        // The plan goes on to its end.
        for (_, actor) in actors.iter_mut().enumerate().filter(|(n, _)| *n != who) {
            actor.ends()?;
        }
        scene.plan_ends()?;
    } else {
        // The slots of one who has left would go on for ever; there may be no plan any more.
        let _ = scene.node.device.drop_plan(PLAN_CPU);
        for actor in &mut actors {
            actor.ends()?;
        }
    }
    all_at_rest()
}

/// Run time, time that it waited for the CPU, and how often it got it: `/proc/PID/schedstat`.
fn schedstat(pid: i32) -> Result<[u64; 3], String> {
    let path = format!("/proc/{pid}/schedstat");
    let text = read(&path)?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().context(&path));
    let mut next = || numbers.next().ok_or_else(|| format!("{path}: {text}"))?;
    Ok([next()?, next()?, next()?])
}

/// A process that waits for its slot sleeps: it does not run, and the time that it waits is not
/// time that it wants the CPU, neither while it waits nor when it has its turn.
pub fn waiting_is_sleeping() -> Verdict {
    const WAIT_MS: u64 = 300;
    // What it may be kept from the CPU by others than the plan.
    let most_ns = if kernel_is_watched() { 60_000_000 } else { 20_000_000 };
    for waits in [Waits::AtACall, Waits::InUserCode] {
        let mut trio = Trio::waiting(waits)?;
        let pid = trio.waiting.pid();
        let before = schedstat(pid)?;
        let mut fewest = 0;
        // A thread of the kernel that belongs to this CPU may want it for long before it gets it.
        eventually("only the test and the running process can run", || {
            fewest = running().unwrap_or(0);
            fewest == 2
        })
        .map_err(|why| format!("{why}: {fewest} can"))?;
        sleep_ms(WAIT_MS);
        reaches_state(pid, 'S')?;
        let after = schedstat(pid)?;
        check_eq!(after, before, "run time, delay and turns of one that waits");
        trio.running.ends()?;
        trio.waiting.runs()?;
        let [_, delay_ns, _] = schedstat(pid)?;
        check!(delay_ns - before[1] < most_ns, "it wanted the CPU for {} ns", delay_ns - before[1]);
        trio.waiting.ends()?;
        trio.blocked.ends()?;
        trio.scene.plan_ends()?;
    }
    all_at_rest()
}

/// Number of sleeps of a thread, and of other losses of the CPU: `/proc/PID/status`.
fn switches(pid: i32) -> Result<[u32; 2], String> {
    let status = read(&format!("/proc/{pid}/status"))?;
    Ok([
        number_behind(&status, "voluntary_ctxt_switches:")?,
        number_behind(&status, "nonvoluntary_ctxt_switches:")?,
    ])
}

const TRACEFS: &str = "/sys/kernel/tracing";
const TRACED: [&str; 3] = ["sched_switch", "sched_waking", "sched_wakeup"];

fn trace(on: bool) -> Verdict {
    let set = |file: &str, text: &str| {
        let path = format!("{TRACEFS}/{file}");
        fs::write(&path, text).context(&path)
    };
    if on {
        set("buffer_size_kb", "8192")?;
        set("trace", "")?;
    }
    for tracepoint in TRACED {
        let on = if on { "1" } else { "0" };
        set(&format!("events/sched/{tracepoint}/enable"), on)?;
    }
    Ok(())
}

/// Traced facts about one thread.
#[derive(Default, Debug)]
struct Traced {
    /// Number of sleeps, and of other losses of the CPU.
    switches: [u32; 2],
    asleep: bool,
    /// Since it went to sleep, or at all if it does not.
    wakings: u32,
    wakeups: u32,
}

impl Traced {
    fn line(
        &mut self,
        tracepoint: &str,
        field: impl Fn(&str) -> Option<String>,
        pid: i32,
    ) -> Verdict {
        let is_it = |name: &str| field(name) == Some(pid.to_string());
        match tracepoint {
            "sched_waking" if is_it("pid") => self.wakings += 1,
            "sched_wakeup" if is_it("pid") => {
                self.wakeups += 1;
                check!(self.wakeups <= self.wakings, "a wake-up without its begin");
            }
            "sched_switch" if is_it("prev_pid") => {
                let state = field("prev_state").unwrap_or_default();
                self.asleep = !state.starts_with('R');
                self.switches[usize::from(!self.asleep)] += 1;
                (self.wakings, self.wakeups) = (0, 0);
            }
            "sched_switch" if is_it("next_pid") => {
                if self.asleep {
                    check_eq!(
                        (self.wakings, self.wakeups),
                        (1, 1),
                        "begins and ends of the wake-up that ended a sleep"
                    );
                }
                self.asleep = false;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Traced facts about these threads.
fn traced(pids: &[i32]) -> Result<HashMap<i32, Traced>, String> {
    let text = read(&format!("{TRACEFS}/trace"))?;
    let mut threads: HashMap<i32, Traced> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((tracepoint, fields)) = TRACED.iter().find_map(|name| {
            let (_, fields) = line.split_once(&format!(": {name}: "))?;
            Some((*name, fields))
        }) else {
            continue;
        };
        let field = |name: &str| {
            let mut words = fields.split_whitespace().filter_map(|w| w.split_once('='));
            words.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
        };
        for &pid in pids {
            let thread = threads.entry(pid).or_default();
            thread.line(tracepoint, field, pid).map_err(|why| {
                format!("{why}: {line}\n{thread:?}\n{}", around(&text, line, pid))
            })?;
        }
    }
    Ok(threads)
}

/// The lines about a thread in front of one line of the trace.
fn around(text: &str, line: &str, pid: i32) -> String {
    let word = format!("pid={pid} ");
    let before = text.lines().take_while(|&other| other != line);
    let mut lines: Vec<_> = before.filter(|line| line.contains(&word)).collect();
    lines.drain(..lines.len().saturating_sub(12));
    lines.join("\n")
}

/// Sleeps until the test wants it to end.
fn stay(word: &AtomicU32) {
    while word.load(SeqCst) == 0 {
        futex(word, libc::FUTEX_WAIT, 0);
    }
}

fn let_leave(word: &AtomicU32) {
    word.store(1, SeqCst);
    futex(word, libc::FUTEX_WAKE, 1);
}

/// Each time that a process loses the CPU at t1 or waits for its slot it has gone to sleep
/// once, and has been woken up once; and so in its own account and in the trace.
pub fn switches_and_wake_ups_are_told() -> Verdict {
    trace(true)?;
    let mut turns = Turns::new(3, 300, 20_000, |words| {
        words.spin();
        stay(&words.other);
    })?;
    turns.scene.wait_for("says that the second half has begun", |event| {
        event.kind == EventKind::Preempted as u16 && event.slot >= 450
    })?;
    for actor in &turns.actors {
        actor.words.release();
    }
    for actor in &turns.actors {
        reaches_state(actor.pid(), 'S')?;
    }
    // Who is asleep there has not to wait for its slot first.
    sleep_ms(200);
    trace(false)?;
    turns.scene.node.read()?;
    let pids: Vec<i32> = turns.actors.iter().map(|actor| actor.pid()).collect();
    let threads = traced(&pids)?;
    for actor in &turns.actors {
        let told = switches(actor.pid())?;
        let seen = &threads[&actor.pid()];
        let preempted = turns.scene.node.of(EventKind::Preempted);
        let preempted =
            preempted.iter().filter(|event| event.process == actor.process).count() as u32;
        println!("preempted {preempted} times; switches {told:?}, traced {:?}", seen.switches);
        check_eq!(told, seen.switches, "voluntary switches and others, told and traced");
        // A way out of the kernel that is longer than the slot is owed, and then there are slots of
        // which nothing is left: no measure where the kernel watches itself.
        if !kernel_is_watched() {
            check!(
                (preempted..preempted + preempted / 4 + 10).contains(&(told[0] + told[1])),
                "preempted {preempted} times, it lost the CPU {told:?} times"
            );
            check!(told[0] >= preempted, "it went to sleep {} times", told[0]);
        }
        let_leave(&actor.words.other);
    }
    for actor in &mut turns.actors {
        ends_well(&mut actor.child, actor.name)?;
    }
    turns.scene.plan_ends()?;
    sleeps_are_switches()
}

/// A process that sleeps so many times in its slot has so many voluntary switches.
fn sleeps_are_switches() -> Verdict {
    const SLEEPS: u32 = 200;
    let watched = kernel_is_watched();
    let mut scene = Scene::new()?;
    let plan = crate::harness::Plan::new(13).config(Turns::config()).cpu(PLAN_CPU).slot(
        1,
        0,
        ENDLESS_INSNS,
    );
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let mut child = scene.spawn(1, || {
        let before = sleeps::own_voluntary_switches();
        for _ in 0..SLEEPS {
            // Long enough that none ends before the CPU has found something else to do.
            sleeps::sleep_us(if watched { 5000 } else { 500 });
        }
        words.note.store(sleeps::own_voluntary_switches() - before, SeqCst);
    })?;
    ends_well(&mut child, "the process that sleeps")?;
    let told = words.note.load(SeqCst);
    println!("{SLEEPS} sleeps: {told} voluntary switches");
    // Some end in unallocated time, when it has to wait again.
    check!(
        (SLEEPS..SLEEPS + SLEEPS / 10).contains(&told),
        "{SLEEPS} sleeps are {told} voluntary switches"
    );
    scene.plan_ends()
}
