// SPDX-License-Identifier: GPL-2.0
//! Memory that is not to be had: each single allocation of a call fails once.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use pbs_uapi::{Device, Refused, DEVICE_PATH};

use super::kit::{refused, Running};
use super::memory::available_bytes;
use crate::harness::{fork, skip, Context, Plan, Verdict};
use crate::linux::scene::{SharedWords, ENDLESS_INSNS, PLAN_CPU};
use crate::{check, check_eq};

/// More allocations than any call makes.
const MOST_ALLOCATIONS: u32 = 1000;

/// Scarcity of memory: allocations of this thread fail, by `fail-nth` of
/// Documentation/fault-injection/fault-injection.rst.
struct Scarcity(File);

impl Scarcity {
    fn new() -> Result<Self, String> {
        let path = "/proc/thread-self/fail-nth";
        if !Path::new(path).exists() {
            skip("no allocation fails here: the kernel is built without CONFIG_FAULT_INJECTION");
        }
        for (file, value) in [
            ("failslab/ignore-gfp-wait", "N"),
            ("failslab/verbose", "0"),
            ("fail_page_alloc/ignore-gfp-wait", "N"),
            ("fail_page_alloc/ignore-gfp-highmem", "N"),
            ("fail_page_alloc/min-order", "0"),
            ("fail_page_alloc/verbose", "0"),
        ] {
            fs::write(format!("/sys/kernel/debug/{file}"), value).context(file)?;
        }
        let file = File::options().read(true).write(true).open(path);
        Ok(Self(file.context(path)?))
    }

    /// Lets the `nth` allocation from now on fail; none if that is 0.
    fn fail(&self, nth: u32) -> Verdict {
        let text = nth.to_string();
        self.0.write_all_at(text.as_bytes(), 0).context("fail-nth")
    }

    /// Whether the allocation that was to fail has come.
    fn has_failed(&self) -> Result<bool, String> {
        let mut text = [0; 16];
        let bytes = self.0.read_at(&mut text, 0).context("fail-nth")?;
        Ok(text[..bytes].trim_ascii() == b"0")
    }

    /// Repeats `call`, the first time without the first of its allocations, and then without one
    /// later allocation each time, until no allocation fails. A failed call must fail for want of
    /// memory, and `unchanged` must hold. A call that succeeds although an allocation failed is
    /// undone.
    fn meets<T>(
        &self,
        what: &str,
        mut call: impl FnMut() -> Result<T, Refused>,
        mut unchanged: impl FnMut() -> Verdict,
        mut undo: impl FnMut(T) -> Verdict,
    ) -> Result<T, String> {
        let (mut failures, mut successes) = (0, 0);
        for nth in 1..=MOST_ALLOCATIONS {
            self.fail(nth)?;
            let result = call();
            let failed = self.has_failed()?;
            self.fail(0)?;
            match result {
                Ok(done) if failed => {
                    successes += 1;
                    undo(done)?;
                }
                Ok(done) => {
                    println!(
                        "{what}: fails without {failures} allocations, not without {successes}"
                    );
                    return Ok(done);
                }
                Err(refused) => {
                    let errno = refused.error.raw_os_error();
                    check_eq!(errno, Some(libc::ENOMEM), "errno of {what} ({refused})");
                    check!(failed, "{what}: {refused}, though no allocation failed");
                    failures += 1;
                    unchanged().map_err(|why| format!("{what}, allocation {nth}: {why}"))?;
                }
            }
        }
        Err(format!("{what}: never has all that it wants"))
    }
}

/// Memory that may be missing after failed calls: more than is lost by chance, and less than a plan
/// of [`large`] for each failure.
const LIMIT_BYTES: u64 = 32 << 20;

/// A plan of some MiB.
fn large(id: u64) -> Vec<u8> {
    let mut plan = Plan::new(id).cpu(0).slot(11, 0, 1000).cpu(PLAN_CPU);
    for task in 0..50_000 {
        plan = plan.slot(1, task, 1000);
    }
    plan.slot(2, 7, 1000).slot(3, 0, 1000).bytes()
}

/// Whatever can't be allocated while a plan is installed, replaced, read or dropped,
/// and while threads come and go: the call says so, and nothing has changed.
pub fn no_memory_changes_nothing() -> Verdict {
    let scarcity = Scarcity::new()?;
    let open = || Device::open_path(Path::new(DEVICE_PATH), true).map_err(Refused::from);
    let device = scarcity.meets("open", open, || Ok(()), |_| Ok(()))?;

    let first = large(1);
    let no_plan = || {
        for cpu in [0, PLAN_CPU] {
            refused("plan of a CPU without one", device.get_plan(cpu), libc::ENOENT)?;
        }
        Ok(())
    };
    let drop_both = || {
        for cpu in [0, PLAN_CPU] {
            device.drop_plan(cpu).context("drop")?;
        }
        Ok(())
    };
    let before = available_bytes()?;
    let install = || device.write_plan(&first);
    scarcity.meets("install", install, no_plan, |()| drop_both())?;
    let drop = |cpu| device.drop_plan(cpu);
    let still_there = |cpu| device.get_plan(cpu).map(|_| ()).context("plan");
    for cpu in [0, PLAN_CPU] {
        let again = |()| device.write_plan(&first).context("the plan again");
        scarcity.meets("drop", || drop(cpu), || still_there(cpu), again)?;
    }

    let running = Running::new()?;
    let untouched = || running.is_untouched();
    let get_plan = || device.get_plan(PLAN_CPU);
    scarcity.meets("get the plan", get_plan, untouched, |_| Ok(()))?;
    let words = SharedWords::shared()?;
    let child = fork(|| words.block())?;
    let attach = || device.attach(child.pid, 3, 0);
    let detach = || device.detach(child.pid);
    let detached = |()| detach().context("detach");
    scarcity.meets("attach", attach, untouched, detached)?;
    let attached = |()| attach().context("attach");
    scarcity.meets("detach", detach, untouched, attached)?;
    // The one that runs goes on, and the one that waits has no slot in it before.
    let other =
        Plan::new(2).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS).slot(2, 7, ENDLESS_INSNS).bytes();
    let swap = || device.write_plan(&other);
    let back = |()| device.write_plan(running.plan()).context("the plan again");
    scarcity.meets("swap", swap, untouched, back)?;
    device.drop_plan(PLAN_CPU).context("drop")?;

    let lost = before.saturating_sub(available_bytes()?);
    println!("{} KiB are gone", lost >> 10);
    check!(lost < LIMIT_BYTES, "{lost} bytes are gone");
    Ok(())
}
