// SPDX-License-Identifier: GPL-2.0
//! Everything that can be done to plans and their threads, in any order.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use pbs_core::wire::encode;
use pbs_core::{Config, Dispatch, IdlePolicy, PreemptionWay};
use pbs_uapi::ATTACH_ONE_TASK;

use crate::harness::{
    burn, cvt, fork, setting, sleep_ms, Child, Context, Node, Plan, Random, Verdict, CONFIG,
};
use crate::linux::accounts::all_at_rest;
use crate::linux::policy::{set_attr, SchedAttr};
use crate::linux::scene::{
    dies, ends_well, eventually, futex, policy_of, set_affinity, Scene, SharedWords,
};
use crate::linux::stop::Freezer;
use crate::{check, check_eq};

const CHILDREN: usize = 8;
const PROCESSES: u32 = 6;
/// Plans are for the CPUs from 1 on, so that the test itself gets on.
const FIRST_CPU: u32 = 1;

extern "C" fn nothing(_signal: i32) {}

/// Runs, sleeps, makes threads, forks and ends tasks, until it is killed.
fn live(words: &'static SharedWords, seed: u64) {
    let Ok(node) = Node::open() else { return };
    let mut dice = Random::new(seed);
    loop {
        words.progress.fetch_add(1, SeqCst);
        match dice.below(8) {
            0 => sleep_ms(dice.roll() % 20),
            1 => {
                let _ = node.device.task_end(None);
            }
            2 => {
                let process = dice.roll() as u32 % PROCESSES;
                let _ = node.device.attach(0, process, dice.roll() as u32 & ATTACH_ONE_TASK);
            }
            3 => {
                let _ = fork(|| burn(10_000)).map(|mut child| child.wait());
            }
            4 => {
                // Both sides lock the same word, in the kernel.
                if futex(&words.other, libc::FUTEX_LOCK_PI, 0) == 0 {
                    burn(dice.roll() % 100_000);
                    futex(&words.other, libc::FUTEX_UNLOCK_PI, 0);
                }
            }
            5 => {
                let _ = std::thread::spawn(|| burn(10_000)).join();
            }
            _ => burn(dice.roll() % 1_000_000),
        }
    }
}

/// A plan of either order, and whether tasks wait for others in it.
fn random_plan(dice: &mut Random, cpus: u32) -> (Plan, bool) {
    let dispatch = dice.one_of(&Dispatch::ALL) as u64;
    let mut plan = Plan::new(dice.roll()).config(Config { dispatch, ..CONFIG });
    for process in 0..PROCESSES {
        if dice.below(3) != 0 {
            plan = plan.deadline(process, dice.roll() % 50_000_000);
        }
    }
    // A task waits for those before it alone: nobody waits for himself that way.
    let mut before = Vec::new();
    let mut is_net = false;
    // A process belongs to one CPU; the rest of the division says to which.
    for cpu in FIRST_CPU..cpus {
        if dice.below(4) == 0 && cpu + 1 != cpus {
            continue;
        }
        plan = plan.cpu(cpu);
        let mine = cpu % (cpus - FIRST_CPU);
        for task in 0..=dice.roll() as u32 % 12 {
            let process = dice.roll() as u32 % PROCESSES;
            let process = process - process % (cpus - FIRST_CPU) + mine;
            plan = plan.slot(process, task, 1 + dice.roll() % 3_000_000);
            if !before.is_empty() && dice.below(4) == 0 {
                let (after_process, after_task) = dice.one_of(&before);
                if after_process != process {
                    plan = plan.edge(process, task, after_process, after_task);
                    is_net = true;
                }
            }
            before.push((process, task));
            if dice.below(3) == 0 {
                plan = plan.idle(1 + dice.roll() % 1_000_000);
            }
        }
    }
    (plan, is_net)
}

struct Chaos {
    node: Node,
    dice: Random,
    words: Vec<&'static SharedWords>,
    children: Vec<Child>,
    /// The old one and the new one; all children are in the groups of both.
    freezers: [Freezer; 2],
    cpus: u32,
    turns: u64,
    /// Plans taken, and those of them in which tasks wait for others.
    plans: u32,
    nets: u32,
    /// Changes of the configuration of a plan in force.
    changes: u32,
}

impl Chaos {
    fn new_child(&mut self, number: usize) -> Result<Child, String> {
        let (words, seed) = (self.words[number % 2], self.dice.roll());
        let child = fork(|| live(words, seed))?;
        for freezer in &self.freezers {
            freezer.add(child.pid)?;
        }
        Ok(child)
    }

    /// Holds all children, and does something to plans meanwhile.
    fn freeze(&mut self) -> Verdict {
        let number = self.dice.below(self.freezers.len());
        self.freezers[number].freeze_stopping()?;
        for _ in 0..self.dice.below(4) {
            self.plan_or_attach()?;
        }
        self.freezers[number].thaw()
    }

    /// Stops a child where it is, and lets it go on.
    fn trace(&mut self, number: usize) -> Verdict {
        let pid = self.children[number].pid;
        let ptrace = |request: libc::c_uint| {
            // SAFETY: these requests access no memory.
            cvt(unsafe { libc::ptrace(request, pid, 0, 0) } as i32)
        };
        ptrace(libc::PTRACE_SEIZE).context("seize")?;
        ptrace(libc::PTRACE_INTERRUPT).context("interrupt")?;
        eventually("a child stops for its tracer", || {
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::__WALL) == pid }
        })?;
        if self.dice.below(2) == 0 {
            self.plan_or_attach()?;
        }
        ptrace(libc::PTRACE_DETACH).context("detach")?;
        Ok(())
    }

    /// Makes a child one of real time for a moment, where it does not keep the test from
    /// running.
    fn make_real_time(&mut self, pid: i32, cpu: u32) {
        let policy = |policy: i32, priority| {
            let attr = SchedAttr { policy: policy as u32, priority, ..SchedAttr::default() };
            let _ = set_attr(pid, attr);
        };
        // In a plan it is not on the test's CPU either.
        if matches!(set_affinity(pid, &[cpu as usize]), Ok(()) | Err(libc::EBUSY)) {
            policy(libc::SCHED_FIFO, 1 + self.dice.below(99) as u32);
            sleep_ms(self.dice.roll() % 3);
            policy(libc::SCHED_OTHER, 0);
        }
    }

    fn some_cpu(&mut self) -> u32 {
        FIRST_CPU + self.dice.roll() as u32 % (self.cpus - FIRST_CPU)
    }

    /// A new plan or none, a thread more or less in it.
    fn plan_or_attach(&mut self) -> Verdict {
        let number = self.dice.below(CHILDREN);
        let pid = self.children[number].pid;
        match self.dice.below(10) {
            0..=2 => {
                let (plan, is_net) = random_plan(&mut self.dice, self.cpus);
                if self.node.device.write_plan(&plan.bytes()).is_ok() {
                    self.plans += 1;
                    self.nets += u32::from(is_net);
                }
            }
            3..=6 => {
                let process = self.dice.roll() as u32 % PROCESSES;
                let flags = self.dice.roll() as u32 & ATTACH_ONE_TASK;
                let _ = self.node.device.attach(pid, process, flags);
            }
            7 => {
                let _ = self.node.device.detach(pid);
            }
            8 => self.change_config(),
            _ => {
                let cpu = self.some_cpu();
                let _ = self.node.device.drop_plan(cpu);
            }
        }
        Ok(())
    }

    /// Another configuration for the plan of a CPU, if it has one; one in four has another dispatch
    /// than the plan may have.
    fn change_config(&mut self) {
        let cpu = self.some_cpu();
        let read = self.node.device.get_plan_and_generation(cpu);
        let Ok((bytes, generation)) = read else { return };
        let Ok(plan) = pbs_plan::wire::decode(&bytes) else { return };
        let Some(before) = plan.config else { return };
        let period_ns = self.dice.one_of(&[5_000_000, 20_000_000, 100_000_000]);
        let mut config = Config {
            idle_policy: self.dice.one_of(&IdlePolicy::ALL) as u64,
            preemption_way: self.dice.one_of(&PreemptionWay::ALL) as u64,
            window_period_ns: period_ns,
            window_unallocated_ns: period_ns / 10,
            suspends_failed: self.dice.roll() % 2,
            idle_is_lateness: self.dice.roll() % 2,
            ..before
        };
        if self.dice.below(4) == 0 {
            config.dispatch = self.dice.one_of(&Dispatch::ALL) as u64;
        }
        let bytes = encode::config(&config);
        let changed = self.node.device.configure(cpu, plan.plan_id, generation, &bytes);
        self.changes += u32::from(changed.is_ok());
    }

    /// One thing out of all that can happen.
    fn step(&mut self) -> Verdict {
        let number = self.dice.below(CHILDREN);
        let pid = self.children[number].pid;
        let cpu = self.some_cpu();
        match self.dice.below(22) {
            0..=8 => self.plan_or_attach()?,
            9 => self.children[number].kill(libc::SIGSTOP)?,
            10 | 11 => {
                for child in &self.children {
                    child.kill(libc::SIGCONT)?;
                }
            }
            12 => {
                self.children[number].kill(libc::SIGKILL)?;
                dies(&mut self.children[number], "a killed child")?;
                // Nobody else gives back the lock that it may have had.
                let lock = &self.words[number % 2].other;
                let _ = lock.compare_exchange(pid as u32, 0, SeqCst, SeqCst);
                self.children[number] = self.new_child(number)?;
            }
            13 => {
                let policy = self.dice.one_of(&[libc::SCHED_OTHER, libc::SCHED_BATCH]);
                let attr = SchedAttr { policy: policy as u32, ..SchedAttr::default() };
                let _ = set_attr(pid, attr);
            }
            14 => {
                let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
                let online = self.dice.below(3) != 0;
                let _ = fs::write(path, if online { "1" } else { "0" });
            }
            15 => {
                let _ = set_affinity(pid, &[self.dice.below(self.cpus as usize)]);
            }
            16 | 17 => {
                for child in &self.children {
                    child.kill(libc::SIGUSR1)?;
                }
            }
            18 => self.trace(number)?,
            19 => self.freeze()?,
            20 => self.make_real_time(pid, cpu),
            _ => {
                // In the middle of what it is stopped for.
                self.children[number].kill(libc::SIGSTOP)?;
                self.children[number].kill(libc::SIGCONT)?;
            }
        }
        sleep_ms(self.dice.roll() % 8);
        self.turns += 1;
        Ok(())
    }
}

/// Number of steps, unless the environment sets it.
const STEPS: u32 = 3000;

/// The machine lives through it, nobody is counted as what it is not, everybody can be
/// killed after it, and a plan runs as ever.
pub fn chaos() -> Verdict {
    let steps = setting("PBS_CHAOS_STEPS", STEPS)?;
    let cpus = std::thread::available_parallelism().map_or(2, |n| n.get()) as u32;
    // Another one lets other things happen.
    let seed = setting("PBS_SEED", cpus)?;
    // The children have it from their begin: one may be sent the signal before it runs.
    //
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
    let mut scene = Scene::new()?;
    let mut chaos = Chaos {
        node: Node::open()?,
        dice: Random::new(u64::from(seed)),
        words: vec![SharedWords::shared()?, SharedWords::shared()?],
        children: Vec::new(),
        freezers: [Freezer::old()?, Freezer::new()?],
        cpus,
        turns: 0,
        plans: 0,
        nets: 0,
        changes: 0,
    };
    for number in 0..CHILDREN {
        let child = chaos.new_child(number)?;
        chaos.children.push(child);
    }
    for step in 0..steps {
        chaos.step().map_err(|why| format!("step {step}: {why}"))?;
        if step % 64 == 0 {
            chaos.node.read()?;
            chaos.node.events.clear();
        }
    }
    for child in &mut chaos.children {
        child.kill(libc::SIGKILL)?;
        check_eq!(dies(child, "a child")?, libc::SIGKILL, "wait status");
    }
    for cpu in FIRST_CPU..cpus {
        let _ = fs::write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1");
        let _ = chaos.node.device.drop_plan(cpu);
    }
    let turns: u32 = chaos.words.iter().map(|words| words.progress()).sum();
    println!(
        "{} steps, {} plans, {} of them nets, {} changes of their configuration, the children made \
         {turns} turns",
        chaos.turns, chaos.plans, chaos.nets, chaos.changes
    );
    check!(chaos.changes > 0, "no plan in force got another configuration");
    check!(
        chaos.nets > chaos.plans / 4,
        "hardly a net was taken: {} of {} plans",
        chaos.nets,
        chaos.plans
    );
    check!(turns > steps, "the children hardly ran: {turns} turns");

    let words = SharedWords::shared()?;
    scene.node.load(&Plan::new(1).cpu(1).slot(1, 0, 10_000_000))?;
    let mut child = scene.spawn(1, || words.spin())?;
    words.runs("the process of the last plan")?;
    words.release();
    ends_well(&mut child, "the process of the last plan")?;
    check_eq!(policy_of(0)?, libc::SCHED_OTHER, "policy of the test");
    all_at_rest()
}

/// The list has more CPUs for it, and so it has another seed.
pub fn chaos_on_four_cpus() -> Verdict {
    chaos()
}
