// SPDX-License-Identifier: GPL-2.0
//! SIGSTOP, ptrace and the freezer hold plan processes, and let them go again.

use std::fs;

use crate::harness::{cvt, Context, Verdict};
use crate::linux::scene::{eventually, reaches_state, Actor, Trio, Waits};
use crate::{check, check_eq};

/// A way to hold a process and to let it go.
trait Hold {
    fn hold(&self, actor: &Actor) -> Verdict;
    fn let_go(&self, actor: &Actor) -> Verdict;
}

/// A running process keeps its slot while it is held, and goes on in it.
fn hold_running(how: &impl Hold) -> Verdict {
    let trio = Trio::new()?;
    for _ in 0..3 {
        how.hold(&trio.running)?;
        trio.running.rests()?;
        check_eq!(trio.waiting.words.progress(), 0, "the slot of the held one was given away");
        how.let_go(&trio.running)?;
        trio.running.runs()?;
    }
    trio.goes_on_to_the_end()
}

/// Instructions that a process may retire that is woken up like by a signal and had none to handle,
/// before it waits again: it is noticed at an interrupt (pbs.rst, Signals).
const LET_THROUGH_INSNS: u32 = 20_000;

/// A waiting process waits again when it is let go.
fn hold_waiting(how: &impl Hold, waits: Waits) -> Verdict {
    let trio = Trio::waiting(waits)?;
    for _ in 0..3 {
        let before = trio.waiting.words.progress();
        how.hold(&trio.waiting)?;
        trio.running.runs()?;
        how.let_go(&trio.waiting)?;
        reaches_state(trio.waiting.pid(), 'S')?;
        trio.waiting.rests()?;
        let turns = trio.waiting.words.progress() - before;
        // A turn is an instruction at least.
        check!(turns < LET_THROUGH_INSNS, "it ran before its slot: {turns} turns");
    }
    trio.goes_on_to_the_end()
}

/// A process that is held when its slot comes does not run in it before it is
/// let go.
fn hold_beyond_the_slot(how: &impl Hold) -> Verdict {
    let mut trio = Trio::new()?;
    how.hold(&trio.waiting)?;
    trio.running.ends()?;
    trio.waiting.rests()?;
    check_eq!(trio.waiting.words.progress(), 0, "it ran although it was held");
    how.let_go(&trio.waiting)?;
    trio.waiting.runs()?;
    trio.waiting.ends()?;
    trio.blocked.ends()?;
    trio.scene.plan_ends()
}

struct Stop;

impl Hold for Stop {
    fn hold(&self, actor: &Actor) -> Verdict {
        actor.child.kill(libc::SIGSTOP)?;
        reaches_state(actor.pid(), 'T')
    }

    fn let_go(&self, actor: &Actor) -> Verdict {
        actor.child.kill(libc::SIGCONT)
    }
}

pub fn stop_running() -> Verdict {
    hold_running(&Stop)
}

pub fn stop_waiting() -> Verdict {
    hold_waiting(&Stop, Waits::AtACall)
}

pub fn stop_preempted() -> Verdict {
    hold_waiting(&Stop, Waits::InUserCode)
}

pub fn stop_beyond_the_slot() -> Verdict {
    hold_beyond_the_slot(&Stop)
}

struct Ptrace;

pub fn ptrace(request: libc::c_uint, actor: &Actor, address: usize, data: usize) -> Verdict {
    // SAFETY: `data` is a number, or a place that the request may write to.
    let result = unsafe { libc::ptrace(request, actor.pid(), address, data) };
    cvt(result as i32).context(&format!("ptrace {request:#x}"))?;
    Ok(())
}

/// The registers of a traced process can be read: it really stands still.
pub fn registers_can_be_read(actor: &Actor) -> Verdict {
    let mut registers = [0u64; 64];
    let mut place =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of_val(&registers) };
    const NT_PRSTATUS: usize = 1;
    ptrace(libc::PTRACE_GETREGSET, actor, NT_PRSTATUS, &raw mut place as usize)?;
    check!(registers.iter().any(|&register| register != 0), "no registers");
    Ok(())
}

impl Hold for Ptrace {
    fn hold(&self, actor: &Actor) -> Verdict {
        ptrace(libc::PTRACE_ATTACH, actor, 0, 0)?;
        let mut status = 0;
        eventually("the tracer is told of the stop", || {
            // SAFETY: `status` is a valid place.
            unsafe { libc::waitpid(actor.pid(), &mut status, libc::WNOHANG | libc::__WALL) > 0 }
        })?;
        check!(libc::WIFSTOPPED(status), "wait status {status:#x} is no stop");
        registers_can_be_read(actor)?;
        reaches_state(actor.pid(), 't')
    }

    fn let_go(&self, actor: &Actor) -> Verdict {
        ptrace(libc::PTRACE_DETACH, actor, 0, 0)
    }
}

pub fn ptrace_running() -> Verdict {
    hold_running(&Ptrace)
}

pub fn ptrace_waiting() -> Verdict {
    hold_waiting(&Ptrace, Waits::AtACall)
}

pub fn ptrace_preempted() -> Verdict {
    hold_waiting(&Ptrace, Waits::InUserCode)
}

pub fn ptrace_beyond_the_slot() -> Verdict {
    hold_beyond_the_slot(&Ptrace)
}

/// The freezer of a control group, which the process is moved into.
pub struct Freezer {
    group: &'static str,
    /// File that freezes and thaws the group, and the texts written to it.
    control: &'static str,
    frozen: &'static str,
    thawed: &'static str,
    /// File that shows whether that is done, and its lines.
    said: &'static str,
    says_frozen: &'static str,
    says_thawed: &'static str,
}

impl Freezer {
    /// The present freezer.
    pub fn new() -> Result<Self, String> {
        Self::made(Self {
            group: "/sys/fs/cgroup/frozen",
            control: "cgroup.freeze",
            frozen: "1",
            thawed: "0",
            said: "cgroup.events",
            says_frozen: "frozen 1",
            says_thawed: "frozen 0",
        })
    }

    /// The freezer of the first version of control groups: threads are held where they sleep, as
    /// they are when the machine is suspended.
    pub fn old() -> Result<Self, String> {
        let root = "/tmp/freezer";
        fs::create_dir(root).context(root)?;
        // SAFETY: texts that end with a null byte.
        let mounted = unsafe {
            libc::mount(
                c"freezer".as_ptr(),
                c"/tmp/freezer".as_ptr(),
                c"cgroup".as_ptr(),
                0,
                c"freezer".as_ptr().cast(),
            )
        };
        cvt(mounted).context("mount the old freezer")?;
        Self::made(Self {
            group: "/tmp/freezer/frozen",
            control: "freezer.state",
            frozen: "FROZEN",
            thawed: "THAWED",
            said: "freezer.state",
            says_frozen: "FROZEN",
            says_thawed: "THAWED",
        })
    }

    fn made(self) -> Result<Self, String> {
        fs::create_dir(self.group).context(self.group)?;
        Ok(self)
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.group)
    }

    fn ask(&self, value: &str) -> Verdict {
        fs::write(self.path(self.control), value).context(self.control)
    }

    fn says(&self, wanted: &str) -> bool {
        fs::read_to_string(self.path(self.said))
            .is_ok_and(|text| text.lines().any(|found| found == wanted))
    }

    fn set(&self, value: &str, says: &str) -> Verdict {
        self.ask(value)?;
        eventually(&format!("{} says {says}", self.said), || self.says(says))
    }

    pub fn add(&self, pid: i32) -> Verdict {
        fs::write(self.path("cgroup.procs"), pid.to_string()).context("cgroup.procs")
    }

    /// Returns when all of the group are held.
    pub fn freeze(&self) -> Verdict {
        self.set(self.frozen, self.says_frozen)
    }

    /// Like [`freeze`](Freezer::freeze), where signals may be about to stop some threads. The old
    /// freezer asks each thread once, which a thread on its way to stop does not notice any more:
    /// only another request freezes it.
    pub fn freeze_stopping(&self) -> Verdict {
        eventually(&format!("{} says {}", self.said, self.says_frozen), || {
            self.ask(self.frozen).is_ok() && self.says(self.says_frozen)
        })
    }

    pub fn thaw(&self) -> Verdict {
        self.set(self.thawed, self.says_thawed)
    }
}

impl Hold for Freezer {
    fn hold(&self, actor: &Actor) -> Verdict {
        self.add(actor.pid())?;
        self.freeze()
    }

    fn let_go(&self, _actor: &Actor) -> Verdict {
        self.thaw()
    }
}

pub fn freeze_running() -> Verdict {
    hold_running(&Freezer::new()?)
}

pub fn freeze_waiting() -> Verdict {
    hold_waiting(&Freezer::new()?, Waits::AtACall)
}

pub fn freeze_preempted() -> Verdict {
    hold_waiting(&Freezer::new()?, Waits::InUserCode)
}

pub fn freeze_beyond_the_slot() -> Verdict {
    hold_beyond_the_slot(&Freezer::new()?)
}

pub fn old_freezer_running() -> Verdict {
    hold_running(&Freezer::old()?)
}

/// The place where the process waits makes no difference, and one machine tests both.
pub fn old_freezer_waiting() -> Verdict {
    let freezer = Freezer::old()?;
    hold_waiting(&freezer, Waits::AtACall)?;
    hold_waiting(&freezer, Waits::InUserCode)
}

pub fn old_freezer_beyond_the_slot() -> Verdict {
    hold_beyond_the_slot(&Freezer::old()?)
}
