// SPDX-License-Identifier: GPL-2.0
//! The system survives beside a plan (Leppert 2021, 2.4.3): a process that wants all of the
//! CPU, and what is left to shells, to tasks that wake up now and then, and to threads of the
//! kernel. The same beside nobody, and where the hog is in other classes.

use std::fs;
use std::process::Command;

use pbs_vmtest::check;
use pbs_vmtest::harness::{
    burn, cputime_ns, fork, now_ns, sleep_ms, Child, Context, Node, Plan, LEAD_IN_INSNS,
};
use pbs_vmtest::sched_attr::SchedAttr;
use serde_json::{json, Value};

use crate::beside::Cron;

/// More than the study lasts.
const FOR_EVER_INSNS: u64 = 1 << 40;
/// For so long shells and wake-ups are looked at, and for so long a loop of a normal task.
const COMMANDS_NS: u64 = 4_000_000_000;
const LOOP_NS: u64 = 3_000_000_000;

/// Class of the hog.
#[derive(Clone, Copy)]
enum Hog {
    Nowhere,
    Plan,
    Other,
    Fifo,
}

impl Hog {
    fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "none",
            Self::Plan => "plan",
            Self::Other => "other",
            Self::Fifo => "fifo",
        }
    }

    /// Starts the hog. The plan is in force as long as the returned node exists.
    fn start(self) -> Result<(Option<Child>, Option<Node>), String> {
        if matches!(self, Self::Nowhere) {
            return Ok((None, None));
        }
        let mut node = None;
        if matches!(self, Self::Plan) {
            let opened = Node::open()?;
            // With the node's own numbers.
            let plan = Plan::new(1).without_config().idle(LEAD_IN_INSNS).slot(1, 0, FOR_EVER_INSNS);
            opened.load(&plan)?;
            node = Some(opened);
        }
        let hog = fork(|| burn(FOR_EVER_INSNS))?;
        match (self, &node) {
            (Self::Plan, Some(node)) => node.attach(&hog, 1)?,
            (Self::Fifo, _) => SchedAttr::fifo(50).set(hog.pid).context("SCHED_FIFO")?,
            _ => {}
        }
        sleep_ms(100);
        Ok((Some(hog), node))
    }
}

/// Context switches of the kernel's threads.
fn kernel_switches() -> Result<u64, String> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc").context("/proc")? {
        let path = entry.context("/proc")?.path();
        let read = |file: &str| fs::read_to_string(path.join(file));
        // One without memory of its own is the kernel's; it may have gone meanwhile.
        let (Ok(status), true) = (read("status"), read("cmdline").is_ok_and(|it| it.is_empty()))
        else {
            continue;
        };
        let numbers = status.lines().filter_map(|line| {
            let (name, number) = line.split_once(':')?;
            name.ends_with("ctxt_switches").then(|| number.trim().parse::<u64>().ok())?
        });
        sum += numbers.sum::<u64>();
    }
    Ok(sum)
}

/// The CPU time of a process and the whole time, meanwhile a loop of this one ran.
fn share_of_a_loop() -> f64 {
    let (start_ns, start_cpu_ns) = (now_ns(), cputime_ns());
    while now_ns() - start_ns < LOOP_NS {}
    (cputime_ns() - start_cpu_ns) as f64 / (now_ns() - start_ns) as f64
}

fn beside(hog: Hog) -> Result<Value, String> {
    let (child, node) = hog.start()?;
    let start_ns = now_ns();
    let kernel = kernel_switches()?;
    let cron = Cron::new(start_ns)?;
    let (mut commands, mut longest_ns) = (0u64, 0);
    while now_ns() - start_ns < COMMANDS_NS {
        let begun_ns = now_ns();
        let status = Command::new("sh")
            .args(["-c", "ls /proc | wc -l >/tmp/survival"])
            .status()
            .context("sh")?;
        check!(status.success(), "a shell's command failed: {status}");
        commands += 1;
        longest_ns = longest_ns.max(now_ns() - begun_ns);
    }
    let lasted_s = (now_ns() - start_ns) as f64 / 1e9;
    let kernel = kernel_switches()?.saturating_sub(kernel);
    let cron = cron.end()?;
    let share = share_of_a_loop();
    drop(child);
    if let Some(node) = node {
        node.device.drop_plan(0).context("drop the plan")?;
    }
    Ok(json!({
        "hog": hog.name(),
        "fair_share_percent": 100.0 * share,
        "wakeups_per_s": cron.wakeups as f64 / lasted_s,
        "wakeup_mean_wait_ms": cron.waited_ns as f64 / 1e6 / cron.wakeups.max(1) as f64,
        "wakeup_longest_wait_ms": cron.longest_wait_ns as f64 / 1e6,
        "commands_per_s": commands as f64 / lasted_s,
        "command_longest_ms": longest_ns as f64 / 1e6,
        "kernel_thread_switches_per_s": kernel as f64 / lasted_s,
    }))
}

pub fn study() -> Result<Value, String> {
    let hogs = [Hog::Nowhere, Hog::Plan, Hog::Other, Hog::Fifo];
    let scenes: Vec<_> = hogs.into_iter().map(beside).collect::<Result<_, _>>()?;
    Ok(json!({
        "window_unallocated_percent": 100.0
            * pbs_core::Config::DEFAULT.window_unallocated_ns as f64
            / pbs_core::Config::DEFAULT.window_period_ns as f64,
        "scenes": scenes,
    }))
}
