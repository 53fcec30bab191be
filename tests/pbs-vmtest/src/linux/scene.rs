// SPDX-License-Identifier: GPL-2.0
//! The scene of the tests of how plan processes live with the rest of Linux.
//!
//! The plan is on CPU 1 and the test on CPU 0, so the test can watch while a
//! plan process runs. Parent and children share a page of words: a child counts
//! in its own there as long as it runs user code, and ends when told to.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pbs_core::Config;
use pbs_uapi::{Event, EventKind};

use crate::harness::{
    cvt, fork, now_ns, sleep_ms, Child, Context, Node, Plan, Verdict, CONFIG, LEAD_IN_INSNS,
};
use crate::{check, check_eq};

/// The CPU that has the plan.
pub const PLAN_CPU: u32 = 1;
/// The policy's number in `include/uapi/linux/sched.h`.
pub const SCHED_PBS: i32 = 8;
/// Long enough that a slot does not end by itself while a test looks.
pub const ENDLESS_INSNS: u64 = 1 << 36;
/// Time that the guest may take for events that should be immediate.
const PATIENCE_NS: u64 = 30_000_000_000;

/// Words that the test and its children share.
#[derive(Default)]
pub struct SharedWords {
    /// Counts while the child runs user code.
    pub progress: AtomicU32,
    /// Not 0: the child may end.
    pub go: AtomicU32,
    /// Report of the child, whose meaning depends on the test.
    pub note: AtomicU32,
    /// A second part of the report.
    pub other: AtomicU32,
}

impl SharedWords {
    /// Four zeroes that a fork does not separate. Never given back.
    pub fn shared() -> Result<&'static Self, String> {
        // SAFETY: a new mapping, which nothing else knows of.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Self>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        check!(page != libc::MAP_FAILED, "no shared page");
        // SAFETY: page-aligned, large enough, zero, and mapped for ever.
        Ok(unsafe { &*page.cast::<Self>() })
    }

    pub fn progress(&self) -> u32 {
        self.progress.load(SeqCst)
    }

    /// Lets the child end.
    pub fn release(&self) {
        self.go.store(1, SeqCst);
        futex(&self.go, libc::FUTEX_WAKE, i32::MAX as u32);
    }

    /// For the child: runs until it is released.
    pub fn spin(&self) {
        while self.go.load(SeqCst) == 0 {
            self.progress.fetch_add(1, SeqCst);
        }
    }

    /// For the child: sleeps in the kernel until it is released.
    pub fn block(&self) {
        self.progress.fetch_add(1, SeqCst);
        while self.go.load(SeqCst) == 0 {
            futex(&self.go, libc::FUTEX_WAIT, 0);
        }
    }

    /// The child goes on running user code.
    pub fn runs(&self, who: &str) -> Verdict {
        let before = self.progress();
        eventually(&format!("{who} goes on running"), || self.progress() != before)
    }

    /// The child runs no user code for a while.
    pub fn rests(&self, who: &str) -> Verdict {
        let before = self.progress();
        sleep_ms(120);
        check_eq!(self.progress(), before, "progress of {who}, which must not run");
        Ok(())
    }
}

/// A futex call on a shared word, without a timeout.
pub fn futex(word: &AtomicU32, operation: i32, value: u32) -> i32 {
    // SAFETY: the word outlives the call; there is no timeout.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            std::ptr::null::<libc::timespec>(),
        )
    };
    result as i32
}

/// Fails unless the condition becomes true in time.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Verdict {
    let deadline_ns = now_ns() + PATIENCE_NS;
    while !condition() {
        check!(now_ns() < deadline_ns, "this did not happen: {what}");
        sleep_ms(1);
    }
    Ok(())
}

/// The state letter of a thread in `/proc`.
pub fn state_of(pid: i32) -> Result<char, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).context(&path)?;
    let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.ok_or_else(|| format!("{path}: no state in {text}"))
}

/// Waits until a thread has this state.
pub fn reaches_state(pid: i32, state: char) -> Verdict {
    let mut seen = ' ';
    eventually(&format!("thread {pid} gets the state {state}"), || {
        seen = state_of(pid).unwrap_or('?');
        seen == state
    })
    .map_err(|why| format!("{why}; its state is {seen}"))
}

/// The policy of a thread.
pub fn policy_of(pid: i32) -> Result<i32, String> {
    // SAFETY: no memory is involved.
    cvt(unsafe { libc::sched_getscheduler(pid) }).context("sched_getscheduler")
}

/// Lets a thread run on these CPUs; the errno if not.
pub fn set_affinity(pid: i32, cpus: &[usize]) -> Result<(), i32> {
    // SAFETY: a set of CPUs is plain memory, and zero is the empty one.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &set)
    };
    cvt(result).map(|_| ()).map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// Lets this process run on those CPUs alone, and the children that it forks from now on.
pub fn move_to(cpus: &[usize]) -> Verdict {
    set_affinity(0, cpus).map_err(|errno| format!("sched_setaffinity: errno {errno}"))
}

/// The CPUs that a thread may run on.
pub fn affinity_of(pid: i32) -> Result<Vec<usize>, String> {
    // SAFETY: a set of CPUs is plain memory, which the call fills.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let bytes = size_of::<libc::cpu_set_t>();
        cvt(libc::sched_getaffinity(pid, bytes, &mut set)).context("sched_getaffinity")?;
        set
    };
    // SAFETY: it looks at the set.
    Ok((0..8).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// The device and its events, seen from CPU 0.
pub struct Scene {
    pub node: Node,
}

impl Scene {
    pub fn new() -> Result<Self, String> {
        move_to(&[0])?;
        Ok(Self { node: Node::open()? })
    }

    /// Forks a child that attaches itself, does `work` and exits with 0. It is
    /// attached when this returns.
    pub fn spawn(&mut self, process: u32, work: impl FnOnce()) -> Result<Child, String> {
        let device = &self.node.device;
        let child = fork(|| {
            if let Err(refused) = device.attach(0, process, 0) {
                println!("attach to process {process}: {refused}");
                // SAFETY: ends the child.
                unsafe { libc::_exit(99) };
            }
            work();
        })?;
        let pid = child.pid;
        self.wait_for("the child is attached", |event| {
            event.kind == EventKind::Attached as u16 && event.pid == pid
        })?;
        Ok(child)
    }

    /// Waits for an event, or finds it among those that came already.
    pub fn wait_for(
        &mut self,
        what: &str,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event, String> {
        let deadline_ns = now_ns() + PATIENCE_NS;
        loop {
            self.node.read()?;
            if let Some(event) = self.node.events.iter().find(|event| wanted(event)) {
                return Ok(*event);
            }
            check!(now_ns() < deadline_ns, "no event that {what}:\n{}", self.node.log());
            self.node.device.poll(20).context("poll")?;
        }
    }

    /// Waits for an event of that kind about that process.
    pub fn wait_kind(&mut self, kind: EventKind, process: u32) -> Result<Event, String> {
        let what = format!("says {} of process {process}", kind.name());
        self.wait_for(&what, |event| event.kind == kind as u16 && event.process == process)
    }

    /// Number of events of that kind.
    pub fn count(&mut self, kind: EventKind) -> Result<usize, String> {
        self.node.read()?;
        Ok(self.node.of(kind).len())
    }

    /// The plan comes to its end, and does so once.
    pub fn plan_ends(&mut self) -> Verdict {
        self.wait_for("says that the plan ended", |event| {
            event.kind == EventKind::PlanEnded as u16
        })?;
        let ends = self.count(EventKind::PlanEnded)?;
        check_eq!(ends, 1, "events that the plan ended");
        Ok(())
    }
}

/// Waits for the end of a child; fails where `Child::wait` would hang.
pub fn dies(child: &mut Child, who: &str) -> Result<i32, String> {
    let pid = child.pid;
    eventually(&format!("{who} dies"), || matches!(state_of(pid), Ok('Z' | 'X') | Err(_)))
        .map_err(|why| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            format!("{why}; policy {:?}, {stat:?}", policy_of(pid))
        })?;
    child.wait()
}

/// Waits for the end of a child, which must be an exit with 0.
pub fn ends_well(child: &mut Child, who: &str) -> Verdict {
    check_eq!(dies(child, who)?, 0, "wait status of {who}");
    Ok(())
}

/// Plan processes that take turns, slot by slot: t1 ends each slot, and who is preempted
/// waits for its next one.
pub struct Turns {
    pub scene: Scene,
    pub actors: Vec<Actor>,
}

impl Turns {
    /// A configuration in which nothing but t1 ends a slot, and every slot does end there.
    pub fn config() -> Config {
        Config {
            sigma_t1_permille: 1001,
            no_preemption_ns: 0,
            max_preemptions: 1_000_000,
            ceiling_factor_permille: 100_000,
            ..CONFIG
        }
    }

    /// `processes` of them do `work`, each with so many slots. Slots of who has ended are
    /// passed at once.
    pub fn new(
        processes: u32,
        slots: u32,
        slot_insns: u64,
        work: impl Fn(&'static SharedWords),
    ) -> Result<Self, String> {
        let mut scene = Scene::new()?;
        // Nobody runs before all are there.
        let mut plan = Plan::new(12).config(Self::config()).cpu(PLAN_CPU).idle(LEAD_IN_INSNS);
        for task in 0..slots {
            for process in 1..=processes {
                plan = plan.slot(process, task, slot_insns);
            }
        }
        scene.node.load(&plan)?;
        let mut actors = Vec::new();
        for process in 1..=processes {
            let words = SharedWords::shared()?;
            actors.push(Actor {
                child: scene.spawn(process, || work(words))?,
                words,
                process,
                name: "a process that takes turns",
            });
        }
        for actor in &actors {
            actor.runs()?;
        }
        Ok(Self { scene, actors })
    }

    /// All go on, and end when they are told to; so does the plan.
    pub fn go_on_to_the_end(mut self) -> Verdict {
        for actor in &self.actors {
            actor.runs()?;
        }
        for actor in &mut self.actors {
            actor.ends()?;
        }
        for actor in &self.actors {
            self.scene.wait_kind(EventKind::ProcessEnded, actor.process)?;
        }
        self.scene.plan_ends()
    }
}

/// Three plan processes: one blocked in the kernel, one running in its slot and
/// one waiting for its slot, which comes after that.
pub struct Trio {
    pub scene: Scene,
    pub blocked: Actor,
    pub running: Actor,
    pub waiting: Actor,
}

/// A plan process and the words it shares with the test.
pub struct Actor {
    pub child: Child,
    pub words: &'static SharedWords,
    pub process: u32,
    pub name: &'static str,
}

impl Actor {
    pub fn runs(&self) -> Verdict {
        self.words.runs(self.name)
    }

    pub fn rests(&self) -> Verdict {
        self.words.rests(self.name)
    }

    pub fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Tells it to end, and sees that it does.
    pub fn ends(&mut self) -> Verdict {
        self.words.release();
        ends_well(&mut self.child, self.name)
    }
}

/// State of the waiting process of a [`Trio`] before it was sent to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// The process attached itself, by a system call, and has not run in the plan yet.
    AtACall,
    /// The process computed, and t1 ended its slot.
    InUserCode,
}

impl Trio {
    pub fn new() -> Result<Self, String> {
        Self::with(|_| ())
    }

    /// `prepare` is done by the waiting child before it is attached.
    pub fn with(prepare: impl FnOnce(&'static SharedWords)) -> Result<Self, String> {
        Self::make(Waits::AtACall, prepare)
    }

    pub fn waiting(waits: Waits) -> Result<Self, String> {
        Self::make(waits, |_| ())
    }

    fn make(waits: Waits, prepare: impl FnOnce(&'static SharedWords)) -> Result<Self, String> {
        let mut scene = Scene::new()?;
        let mut plan = Plan::new(11).cpu(PLAN_CPU).slot(1, 0, 50_000_000);
        let (mut order, mut last_task) = ([1, 2, 3], 0);
        if waits == Waits::InUserCode {
            plan = plan.slot(3, 0, 1_000_000);
            // It has to be there when its first slot comes.
            (order, last_task) = ([1, 3, 2], 1);
        }
        plan = plan.slot(2, 0, ENDLESS_INSNS).slot(3, last_task, 50_000_000);
        scene.node.load(&plan)?;
        let mut prepare = Some(prepare);
        let mut children = Vec::new();
        for process in order {
            let words = SharedWords::shared()?;
            let prepare = if process == 3 { prepare.take() } else { None };
            let device = &scene.node.device;
            let child = fork(|| {
                if let Some(prepare) = prepare {
                    prepare(words);
                }
                if let Err(refused) = device.attach(0, process, 0) {
                    println!("attach to process {process}: {refused}");
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(99) };
                }
                match process {
                    1 => words.block(),
                    _ => words.spin(),
                }
            })?;
            scene.wait_kind(EventKind::Attached, process)?;
            children.push((child, words, process));
            if process == 1 {
                eventually("the first process runs in its slot", || words.progress() != 0)?;
            }
        }
        if waits == Waits::InUserCode {
            scene.wait_kind(EventKind::Preempted, 3)?;
        }
        children.sort_by_key(|&(_, _, process)| process);
        let mut actors = children
            .into_iter()
            .zip(["the blocked process", "the running process", "the waiting process"])
            .map(|((child, words, process), name)| Actor { child, words, process, name });
        let (Some(blocked), Some(running), Some(waiting)) =
            (actors.next(), actors.next(), actors.next())
        else {
            return Err("three actors".into());
        };
        let trio = Self { scene, blocked, running, waiting };
        trio.running.runs()?;
        reaches_state(trio.blocked.pid(), 'S')?;
        reaches_state(trio.waiting.pid(), 'S')?;
        check_eq!(trio.blocked.words.progress(), 1, "the blocked process got to its sleep");
        check_eq!(
            trio.waiting.words.progress() != 0,
            waits == Waits::InUserCode,
            "the waiting process has run"
        );
        trio.is_in_class()?;
        Ok(trio)
    }

    /// All three are run by the class.
    pub fn is_in_class(&self) -> Verdict {
        for actor in [&self.blocked, &self.running, &self.waiting] {
            check_eq!(policy_of(actor.pid())?, SCHED_PBS, "policy of {}", actor.name);
        }
        Ok(())
    }

    /// Runs the rest of the plan: the running process ends its task, the waiting one runs in its
    /// slot, the blocked one wakes up after the plan.
    pub fn goes_on_to_the_end(mut self) -> Verdict {
        let before = self.waiting.words.progress();
        self.running.runs()?;
        check_eq!(self.waiting.words.progress(), before, "the waiting process ran before its slot");
        self.running.ends()?;
        self.waiting.runs()?;
        self.waiting.ends()?;
        self.blocked.ends()?;
        for process in 1..=3 {
            self.scene.wait_kind(EventKind::TaskEnded, process)?;
            self.scene.wait_kind(EventKind::ProcessEnded, process)?;
        }
        self.scene.plan_ends()
    }
}
