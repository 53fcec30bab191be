// SPDX-License-Identifier: GPL-2.0
//! A waiting plan process handles its signals, and then waits again.

use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

use crate::harness::{sleep_ms, Verdict};
use crate::linux::scene::{eventually, reaches_state, SharedWords, Trio};
use crate::{check, check_eq};

/// The words of the process whose handler this is.
static WORDS: AtomicPtr<SharedWords> = AtomicPtr::new(std::ptr::null_mut());

fn words() -> Option<&'static SharedWords> {
    // SAFETY: null, or shared words, which live for ever.
    unsafe { WORDS.load(SeqCst).as_ref() }
}

fn handle(words: &'static SharedWords, handler: extern "C" fn(i32)) {
    WORDS.store(std::ptr::from_ref(words).cast_mut(), SeqCst);
    // SAFETY: the handlers of this file use atomics alone.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
}

extern "C" fn count(_signal: i32) {
    if let Some(words) = words() {
        words.note.fetch_add(1, SeqCst);
    }
}

/// Facts about the waiting process, for the message of a failure.
fn about(trio: &Trio) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", trio.waiting.pid()));
    let status: Vec<String> = status
        .unwrap_or_default()
        .lines()
        .filter(|line| line.starts_with("State") || line.starts_with("Sig"))
        .map(|line| line.replace('\t', " "))
        .collect();
    let handled = trio.waiting.words.note.load(SeqCst);
    format!("the handler ran {handled} times, {}", status.join(", "))
}

/// A short handler runs to its end, each time.
pub fn handler_while_waiting() -> Verdict {
    let trio = Trio::with(|words| handle(words, count))?;
    const SIGNALS: u32 = 20;
    for sent in 1..=SIGNALS {
        trio.waiting.child.kill(libc::SIGUSR1)?;
        eventually(&format!("the handler runs {sent} times"), || {
            trio.waiting.words.note.load(SeqCst) == sent
        })
        .map_err(|why| format!("{why}; {}", about(&trio)))?;
        reaches_state(trio.waiting.pid(), 'S')?;
        trio.waiting.rests()?;
    }
    // It is sent to wait again by the clock; what it does before that is little.
    let turns = trio.waiting.words.progress();
    println!("{SIGNALS} signals: {turns} turns outside the handler and before the slot");
    check!(turns < SIGNALS * 10_000, "{turns} turns before its slot");
    trio.goes_on_to_the_end()
}

extern "C" fn count_for_ever(_signal: i32) {
    let Some(words) = words() else { return };
    while words.go.load(SeqCst) == 0 {
        words.note.fetch_add(1, SeqCst);
    }
}

/// A handler without end does not take the CPU from the one whose slot it is:
/// it is sent to wait like other user code.
pub fn handler_takes_no_slot() -> Verdict {
    let mut trio = Trio::with(|words| handle(words, count_for_ever))?;
    let words = trio.waiting.words;
    let note = || words.note.load(SeqCst);
    for _ in 0..3 {
        let before = note();
        trio.waiting.child.kill(libc::SIGUSR1)?;
        if before == 0 {
            eventually("the handler begins", || note() != 0)?;
        }
        trio.running.runs()?;
        reaches_state(trio.waiting.pid(), 'S')?;
        let at_rest = note();
        sleep_ms(120);
        check_eq!(note(), at_rest, "turns of the handler out of its slot");
    }
    // In its slot the handler goes on.
    trio.running.ends()?;
    let before = note();
    eventually("the handler goes on in its slot", || note() != before)?;
    trio.waiting.ends()?;
    trio.blocked.ends()?;
    trio.scene.plan_ends()
}
