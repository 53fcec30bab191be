// SPDX-License-Identifier: GPL-2.0
//! Linux's reports of pressure (PSI): a process that waits for its slot wants no CPU.

use std::fs;

use crate::harness::{fork, skip, sleep_ms, Context, Verdict};
use crate::linux::accounts::all_at_rest;
use crate::linux::scene::{set_affinity, SharedWords, Trio, Waits};
use crate::{check, check_eq};

const GROUP: &str = "/sys/fs/cgroup/pressed";

/// For how long threads of the group have waited for a CPU: of `cpu.pressure`,
/// `total` of `some`.
fn pressed_us() -> Result<u64, String> {
    let path = format!("{GROUP}/cpu.pressure");
    let text = fs::read_to_string(&path).context(&path)?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let total = some.and_then(|some| some.split_once("total="));
    total.ok_or_else(|| format!("{path}: {text}"))?.1.parse().context(&path)
}

fn press(pid: i32) -> Verdict {
    fs::write(format!("{GROUP}/cgroup.procs"), pid.to_string()).context("into the group")
}

/// Two threads that share a CPU: one of them always waits for it.
fn two_press_each_other() -> Result<u64, String> {
    let words = SharedWords::shared()?;
    let mut children = [fork(|| words.spin())?, fork(|| words.spin())?];
    let before_us = pressed_us()?;
    for child in &children {
        check_eq!(set_affinity(child.pid, &[0]), Ok(()), "affinity");
        press(child.pid)?;
    }
    sleep_ms(300);
    let after_us = pressed_us()?;
    words.release();
    for child in &mut children {
        check_eq!(child.wait()?, 0, "wait status");
    }
    Ok(after_us - before_us)
}

/// A thread that waits for its slot, at a call or in user code, does not press: it
/// sleeps.
pub fn waiting_is_no_pressure() -> Verdict {
    const WAIT_MS: u64 = 300;
    fs::create_dir(GROUP).context(GROUP)?;
    if !fs::exists(format!("{GROUP}/cpu.pressure")).is_ok_and(|there| there) {
        skip("nothing tells of pressure: the kernel is built without CONFIG_PSI");
    }
    let pressed = two_press_each_other()?;
    println!("two that share a CPU press for {pressed} us");
    check!(pressed > WAIT_MS * 1000 / 2, "only {pressed} us of pressure");
    for waits in [Waits::AtACall, Waits::InUserCode] {
        let mut trio = Trio::waiting(waits)?;
        press(trio.waiting.pid())?;
        // It may have to go to where it waits once more.
        sleep_ms(WAIT_MS);
        let before_us = pressed_us()?;
        sleep_ms(WAIT_MS);
        let pressed = pressed_us()? - before_us;
        println!("one that waits presses for {pressed} us");
        check!(pressed < WAIT_MS * 1000 / 20, "it presses for {pressed} us, {waits:?}");
        trio.running.ends()?;
        trio.waiting.ends()?;
        trio.blocked.ends()?;
        trio.scene.plan_ends()?;
    }
    all_at_rest()
}
