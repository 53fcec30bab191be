// SPDX-License-Identifier: GPL-2.0
//! exec(2) of plan processes: the thread stays what it is in the plan.

use std::ffi::CString;
use std::sync::atomic::Ordering::SeqCst;

use pbs_uapi::EventKind;

use crate::harness::{Context, Counting, Plan, Verdict};
use crate::linux::scene::{
    ends_well, eventually, policy_of, reaches_state, Scene, Words, ENDLESS_INSNS, PLAN_CPU,
    SCHED_PBS,
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
    eventually("the new program begins", || {
        std::fs::metadata(&path).is_ok()
    })?;
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
    scene
        .node
        .load(&Plan::new(21).cpu(PLAN_CPU).slot(1, 0, ENDLESS_INSNS))?;
    let mut child = scene.spawn(1, || exec_shell("exec"))?;
    check_eq!(
        told_pid("exec")?,
        child.pid,
        "process id of the new program"
    );
    check_eq!(policy_of(child.pid)?, SCHED_PBS, "policy after exec");
    end("exec")?;
    ends_well(&mut child, "the new program")?;
    let ended = scene.wait_kind(EventKind::TaskEnded, 1)?;
    check!(
        ended.retired_insns > 30_000,
        "a shell in {} instructions",
        ended.retired_insns
    );
    check_eq!(scene.count(EventKind::TaskEnded)?, 1, "tasks ended");
    check_eq!(scene.count(EventKind::Ejected)?, 0, "threads ejected");
    scene.plan_ends()
}

/// A waiting plan process whose program is replaced by a sibling thread: the
/// waiting thread dies, and with it its process of the plan.
fn sibling_execs(waiter_is_leader: bool, name: &'static str) -> Verdict {
    let mut scene = Scene::new()?;
    let plan = Plan::new(22)
        .cpu(PLAN_CPU)
        .slot(1, 0, ENDLESS_INSNS)
        .slot(2, 0, 1_000_000);
    scene.node.load(&plan)?;
    let holder_words = Words::shared()?;
    let mut holder = scene.spawn(1, || holder_words.spin())?;
    holder_words.runs("the running process")?;

    let words = Words::shared()?;
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
    check_eq!(
        attached.pid as u32,
        words.note.load(SeqCst),
        "the waiting thread"
    );
    check_eq!(
        attached.pid == child.pid,
        waiter_is_leader,
        "it is the leader"
    );
    reaches_state(attached.pid, 'S')?;

    words.other.store(1, SeqCst);
    check_eq!(told_pid(name)?, child.pid, "process id of the new program");
    check_eq!(words.progress(), 0, "user code of the waiting thread");
    check_eq!(
        policy_of(child.pid)?,
        libc::SCHED_OTHER,
        "policy of the new program"
    );
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
