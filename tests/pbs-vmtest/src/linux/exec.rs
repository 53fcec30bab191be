// SPDX-License-Identifier: GPL-2.0
//! exec(2) of plan processes: the thread stays what it is in the plan.

use std::ffi::CString;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::EventKind;

use crate::harness::{Context, Counting, Plan, Verdict, LEAD_IN_INSNS};
use crate::linux::accounts::all_at_rest;
use crate::linux::scene::{
    dies, ends_well, eventually, policy_of, reaches_state, Scene, SharedWords, Waits,
    ENDLESS_INSNS, PLAN_CPU, SCHED_PBS,
};
use crate::{check, check_eq};

/// Replaces the program by a shell that leaves its process id in `/tmp/NAME`
/// and ends when `/tmp/NAME.end` is there. Only comes back if it fails.
fn exec_shell(name: &str) {
    let script = format!(
        "echo $$ >/tmp/{name}.new; mv /tmp/{name}.new /tmp/{name}; \
         while ! [ -e /tmp/{name}.end ]; do :; done"
    );
    let words = ["sh", "-c", &script];
    let words: Vec<CString> = words.iter().filter_map(|&w| CString::new(w).ok()).collect();
    let mut argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(std::ptr::null());
    // SAFETY: a program's name and a list of words that ends with null.
    unsafe {
        libc::execv(c"/bin/sh".as_ptr(), argv.as_ptr());
        libc::_exit(98);
    }
}

/// The process id that the new program has told, once it has.
fn told_pid(name: &str) -> Result<i32, String> {
    let path = format!("/tmp/{name}");
    eventually("the new program begins", || std::fs::metadata(&path).is_ok())?;
    let text = std::fs::read_to_string(&path).context(&path)?;
    text.trim().parse().context(&path)
}

fn end(name: &str) -> Verdict {
    std::fs::write(format!("/tmp/{name}.end"), "").context("end file")
}

/// A running plan process becomes another program in its slot: same task, and
/// its instructions count.
pub fn exec_running() -> Verdict {
    let mut scene = Scene::new()?;
    scene.node.load(&Plan::new(21).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let mut child = scene.spawn(1, || exec_shell("exec"))?;
    check_eq!(told_pid("exec")?, child.pid, "process id of the new program");
    check_eq!(policy_of(child.pid)?, SCHED_PBS, "policy after exec");
    end("exec")?;
    ends_well(&mut child, "the new program")?;
    let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
    check!(ended.retired_insns > 30_000, "a shell in {} instructions", ended.retired_insns);
    check_eq!(scene.count(EventKind::TaskEnded)?, 1, "tasks ended");
    check_eq!(scene.count(EventKind::Ejected)?, 0, "threads ejected");
    scene.plan_ends()
}

/// A waiting plan process whose program is replaced by a sibling thread: the
/// waiting thread dies, and with it its process of the plan.
fn sibling_execs(waiter_is_leader: bool, name: &'static str) -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(22).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS).slot(2, 0, 1_000_000);
    scene.node.load(&plan)?;
    let holder_words = SharedWords::shared()?;
    let mut holder = scene.spawn(1, || holder_words.spin())?;
    holder_words.runs("the running process")?;

    let words = SharedWords::shared()?;
    let device = &scene.node.device;
    let mut child = crate::harness::fork(|| {
        let wait_in_plan = || {
            // SAFETY: no memory is involved.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            words.note.store(tid as u32, SeqCst);
            if device.attach(0, 2, 0).is_err() {
                // SAFETY: ends the child.
                unsafe { libc::_exit(99) };
            }
            words.spin();
        };
        let exec_when_told = || {
            while words.other.load(SeqCst) == 0 {
                crate::harness::sleep_ms(1);
            }
            exec_shell(name);
        };
        std::thread::scope(|scope| {
            if waiter_is_leader {
                scope.spawn(exec_when_told);
                wait_in_plan();
            } else {
                scope.spawn(wait_in_plan);
                exec_when_told();
            }
        });
    })?;
    let attached = scene.wait_kind(EventKind::Attached, 2)?;
    check_eq!(attached.pid as u32, words.note.load(SeqCst), "the waiting thread");
    check_eq!(attached.pid == child.pid, waiter_is_leader, "it is the leader");
    reaches_state(attached.pid, 'S')?;

    words.other.store(1, SeqCst);
    check_eq!(told_pid(name)?, child.pid, "process id of the new program");
    check_eq!(words.progress(), 0, "user code of the waiting thread");
    check_eq!(policy_of(child.pid)?, libc::SCHED_OTHER, "policy of the new program");
    let ended = scene.wait_kind(EventKind::ProcessEnded, 2)?;
    check_eq!(
        ended.value,
        Counting::here().unended_by_death(),
        "tasks that the waiting thread did not end"
    );
    end(name)?;
    ends_well(&mut child, "the new program")?;

    holder_words.runs("the running process")?;
    holder_words.release();
    ends_well(&mut holder, "the running process")?;
    scene.plan_ends()
}

pub fn exec_kills_waiting_thread() -> Verdict {
    sibling_execs(false, "sibling")
}

pub fn exec_kills_waiting_leader() -> Verdict {
    sibling_execs(true, "leader")
}

/// Ways in which another thread ends a program with a waiting thread.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// The other thread exits with this status.
    Exits(i32),
    /// The other thread fails, and its memory is written to a file while all threads stand still.
    DumpsCore,
}

/// The waiting thread of a program dies with it, without a turn.
pub fn program_ends_beside_waiting_thread() -> Verdict {
    for ends in [Ends::Exits(7), Ends::DumpsCore] {
        for waits in [Waits::AtACall, Waits::InUserCode] {
            program_ends(ends, waits).map_err(|why| format!("{ends:?}, {waits:?}: {why}"))?;
        }
    }
    all_at_rest()
}

fn program_ends(ends: Ends, waits: Waits) -> Verdict {
    std::env::set_current_dir("/tmp").context("/tmp")?;
    let mut scene = Scene::new()?;
    let mut plan = Plan::new(23).cpu(PLAN_CPU).idle(LEAD_IN_INSNS);
    let mut last_task = 0;
    if waits == Waits::InUserCode {
        plan = plan.slot(2, 0, 1_000_000);
        last_task = 1;
    }
    let plan = plan.slot(1, 0, ENDLESS_INSNS).slot(2, last_task, 1_000_000);
    scene.node.load(&plan)?;
    let words = SharedWords::shared()?;
    let device = &scene.node.device;
    let mut program = crate::harness::fork(|| {
        let unlimited =
            libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &unlimited) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if device.attach(0, 2, 0).is_ok() {
                    words.spin();
                }
            });
            while words.other.load(SeqCst) == 0 {
                crate::harness::sleep_ms(1);
            }
            // SAFETY: both end the program.
            unsafe {
                match ends {
                    Ends::Exits(status) => libc::_exit(status),
                    Ends::DumpsCore => libc::abort(),
                }
            }
        });
    })?;
    let attached = scene.wait_kind(EventKind::Attached, 2)?;
    let owners = SharedWords::shared()?;
    let mut owner = scene.spawn(1, || owners.spin())?;
    owners.runs("the running process")?;
    reaches_state(attached.pid, 'S')?;
    let before = words.progress();
    words.rests("the waiting thread")?;

    words.other.store(1, SeqCst);
    let status = dies(&mut program, "the program")?;
    match ends {
        Ends::Exits(wanted) => {
            check_eq!(libc::WEXITSTATUS(status), wanted, "status {status:#x}");
        }
        Ends::DumpsCore => {
            check_eq!(libc::WTERMSIG(status), libc::SIGABRT, "status {status:#x}");
            check!(libc::WCOREDUMP(status), "no core was dumped");
        }
    }
    check_eq!(words.progress(), before, "user code of the waiting thread");
    scene.wait_kind(EventKind::ProcessEnded, 2)?;
    owners.runs("the running process")?;
    owners.release();
    ends_well(&mut owner, "the running process")?;
    scene.plan_ends()
}
