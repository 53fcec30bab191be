// SPDX-License-Identifier: GPL-2.0
//! Signals, stops, tracers, changes of policy and plans that come one after the other, on
//! processes that take turns in short slots: each meets them where they run, wait, fall
//! asleep or are just granted the CPU. All go on in the end, and nothing is lost.

use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

use pbs_uapi::{EventKind, Grant};

use crate::harness::{
    burn, cvt, kernel_is_watched, needs_counter, sleep_ms, Context, Counting, Node, Plan, Random,
    Scene as Stage, Verdict,
};
use crate::linux::accounts::all_at_rest;
use crate::linux::policy::{set_attr, set_policy, SchedAttr};
use crate::linux::scene::{
    eventually, policy_of, reaches_state, set_affinity, Actor, SharedWords, Turns, PLAN_CPU,
    SCHED_PBS,
};
use crate::linux::stop::{ptrace, registers_can_be_read, Freezer};
use crate::{check, check_eq};

/// Less than a hand-over takes.
const SLOT_INSNS: u64 = 5_000;

/// The words of the process whose handler this is.
static WORDS: AtomicPtr<SharedWords> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn count(_signal: i32) {
    // SAFETY: null, or shared words, which live for ever.
    if let Some(words) = unsafe { WORDS.load(SeqCst).as_ref() } {
        words.note.fetch_add(1, SeqCst);
    }
}

/// Makes this process count a signal in `note`.
fn count_signals(words: &'static SharedWords, signal: i32) {
    WORDS.store(std::ptr::from_ref(words).cast_mut(), SeqCst);
    // SAFETY: the handler uses atomics alone.
    unsafe { libc::signal(signal, count as *const () as libc::sighandler_t) };
}

/// A stretch that is another one each time, so that the next step finds the others at
/// another point.
fn pass_time(dice: &mut Random) {
    burn(dice.between(1, 4 * SLOT_INSNS));
}

/// Each queued signal is handled once, whatever its process does when it arrives: falls asleep, is
/// granted the CPU, or runs.
pub fn signals_meet_grants() -> Verdict {
    const SIGNALS: u32 = 1000;
    let queued = libc::SIGRTMIN();
    let mut dice = Random::new(1);
    let turns = Turns::new(3, 4000, SLOT_INSNS, |words| {
        count_signals(words, queued);
        words.spin();
    })?;
    let mut sent = [0; 3];
    for _ in 0..SIGNALS {
        let number = dice.below(3);
        let pid = turns.actors[number].pid();
        if dice.below(2) == 0 {
            turns.actors[number].child.kill(queued)?;
        } else {
            // SAFETY: no memory is involved.
            let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, queued) };
            cvt(result as i32).context("tgkill")?;
        }
        sent[number] += 1;
        pass_time(&mut dice);
    }
    for (actor, sent) in turns.actors.iter().zip(sent) {
        let handled = || actor.words.note.load(SeqCst);
        eventually("all signals are handled", || handled() >= sent)
            .map_err(|why| format!("{why}: {} of {sent}", handled()))?;
        check_eq!(handled(), sent, "signals handled");
    }
    turns.go_on_to_the_end()?;
    all_at_rest()
}

/// A process that is stopped and continued in quick succession is held when it must be, and
/// continues.
pub fn stop_storm() -> Verdict {
    const STEPS: u32 = 1000;
    let mut dice = Random::new(2);
    let turns = Turns::new(3, 4000, SLOT_INSNS, SharedWords::spin)?;
    for step in 0..STEPS {
        let actor = &turns.actors[dice.below(3)];
        let signal = dice.one_of(&[libc::SIGSTOP, libc::SIGCONT]);
        actor.child.kill(signal)?;
        pass_time(&mut dice);
        if step % 100 == 99 {
            actor.child.kill(libc::SIGSTOP)?;
            reaches_state(actor.pid(), 'T')?;
            actor.rests()?;
            actor.child.kill(libc::SIGCONT)?;
        }
    }
    for actor in &turns.actors {
        actor.child.kill(libc::SIGCONT)?;
    }
    turns.go_on_to_the_end()?;
    all_at_rest()
}

/// Waits until a traced process stands still, and looks into it.
fn look_into(actor: &Actor) -> Verdict {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    cvt(unsafe { libc::waitpid(actor.pid(), &mut status, libc::__WALL) }).context("waitpid")?;
    check!(libc::WIFSTOPPED(status), "wait status {status:#x}");
    let seen = actor.words.progress();
    registers_can_be_read(actor)?;
    let address = std::ptr::from_ref(&actor.words.progress) as usize;
    // SAFETY: the page of words is where it is here in the child, too. Each machine that is
    // tested is little-endian.
    let word = unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, actor.pid(), address, 0) };
    check_eq!(word as u32, seen, "the word that it counts in");
    check_eq!(actor.words.progress(), seen, "it stands still");
    Ok(())
}

/// Tracers seize, interrupt, look and let go, or attach and detach.
pub fn ptrace_storm() -> Verdict {
    const STEPS: u32 = 150;
    let mut dice = Random::new(3);
    let turns = Turns::new(3, 8000, SLOT_INSNS, SharedWords::spin)?;
    for _ in 0..STEPS {
        let actor = &turns.actors[dice.below(3)];
        if dice.below(2) == 0 {
            ptrace(libc::PTRACE_SEIZE, actor, 0, 0)?;
            for _ in 0..=dice.below(3) {
                pass_time(&mut dice);
                ptrace(libc::PTRACE_INTERRUPT, actor, 0, 0)?;
                look_into(actor)?;
                ptrace(libc::PTRACE_CONT, actor, 0, 0)?;
            }
            ptrace(libc::PTRACE_INTERRUPT, actor, 0, 0)?;
        } else {
            ptrace(libc::PTRACE_ATTACH, actor, 0, 0)?;
        }
        look_into(actor)?;
        ptrace(libc::PTRACE_DETACH, actor, 0, 0)?;
        pass_time(&mut dice);
    }
    turns.go_on_to_the_end()?;
    all_at_rest()
}

/// Both freezers hold all who take turns, each wherever it is: some of them are granted the
/// CPU while they are held.
pub fn freezer_storm() -> Verdict {
    const STEPS: u32 = 200;
    let mut dice = Random::new(6);
    let freezers = [Freezer::old()?, Freezer::new()?];
    let turns = Turns::new(3, 4000, SLOT_INSNS, SharedWords::spin)?;
    for actor in &turns.actors {
        for freezer in &freezers {
            freezer.add(actor.pid())?;
        }
    }
    for step in 0..STEPS {
        let freezer = &freezers[dice.below(2)];
        freezer.freeze()?;
        if step % 20 == 0 {
            for actor in &turns.actors {
                let before = actor.words.progress();
                sleep_ms(3);
                check_eq!(actor.words.progress(), before, "turns of one that is held");
            }
        }
        pass_time(&mut dice);
        freezer.thaw()?;
        pass_time(&mut dice);
    }
    turns.go_on_to_the_end()?;
    all_at_rest()
}

/// Processes leave the class, by each way there is, and come back.
pub fn policy_storm() -> Verdict {
    const STEPS: u32 = 400;
    let mut dice = Random::new(4);
    let mut turns = Turns::new(3, 4000, SLOT_INSNS, SharedWords::spin)?;
    let deadline = SchedAttr {
        policy: libc::SCHED_DEADLINE as u32,
        runtime_ns: 1_000_000,
        deadline_ns: 10_000_000,
        period_ns: 10_000_000,
        ..SchedAttr::default()
    };
    for step in 0..STEPS {
        let (pid, process) = {
            let actor = &turns.actors[dice.below(3)];
            (actor.pid(), actor.process)
        };
        let device = &turns.scene.node.device;
        let away = match dice.below(5) {
            0 => set_policy(pid, libc::SCHED_FIFO, 1 + dice.below(99) as u32),
            1 => set_policy(pid, libc::SCHED_OTHER, 0),
            2 => set_policy(pid, libc::SCHED_BATCH, 0),
            3 => {
                // It wants all CPUs, and a plan process has one.
                check_eq!(set_attr(pid, deadline), Err(libc::EPERM), "to the deadline class");
                check_eq!(policy_of(pid)?, SCHED_PBS, "policy after that");
                device.detach(pid).context("detach")?;
                set_affinity(pid, &[0, 1]).and_then(|()| set_attr(pid, deadline))
            }
            _ => {
                device.detach(pid).context("detach")?;
                Ok(())
            }
        };
        check_eq!(away, Ok(()), "way out in step {step}");
        pass_time(&mut dice);
        if policy_of(pid)? == libc::SCHED_DEADLINE {
            check_eq!(set_policy(pid, libc::SCHED_OTHER, 0), Ok(()), "to OTHER");
        }
        device.attach(pid, process, 0).context("attach")?;
        pass_time(&mut dice);
        turns.scene.node.read()?;
    }
    let count = |kind| turns.scene.node.of(kind).len();
    check_eq!(count(EventKind::Ejected), STEPS as usize, "threads that left");
    check_eq!(count(EventKind::Attached), STEPS as usize + 3, "threads that came");
    turns.go_on_to_the_end()?;
    all_at_rest()
}

/// Plans with some of the processes and without the others come and go while these take
/// turns.
pub fn plans_come_and_go() -> Verdict {
    const STEPS: u64 = 120;
    let mut dice = Random::new(5);
    let mut turns = Turns::new(4, 4000, SLOT_INSNS, SharedWords::spin)?;
    for step in 0..STEPS {
        let device = &turns.scene.node.device;
        if dice.below(4) == 0 {
            // Nothing is lost if there is none.
            let _ = device.drop_plan(PLAN_CPU);
        } else {
            let chosen = 1 + dice.roll() % 15;
            let mut plan = Plan::new(100 + step).config(Turns::config()).cpu(PLAN_CPU);
            for task in 0..200 {
                for process in (1..=4).filter(|process| chosen & 1 << (process - 1) != 0) {
                    plan = plan.slot(process, task, SLOT_INSNS);
                }
            }
            // A process that is done with all tasks of the new plan is none for it.
            let _ = device.write_plan(&plan.bytes());
        }
        pass_time(&mut dice);
        for actor in &turns.actors {
            if policy_of(actor.pid())? != SCHED_PBS {
                let _ = device.attach(actor.pid(), actor.process, 0);
            }
        }
        pass_time(&mut dice);
        turns.scene.node.read()?;
        turns.scene.node.events.clear();
    }
    turns.scene.node.device.drop_plan(PLAN_CPU).context("drop")?;
    for actor in &turns.actors {
        check_eq!(policy_of(actor.pid())?, libc::SCHED_OTHER, "policy without a plan");
        actor.runs()?;
    }
    for actor in &mut turns.actors {
        actor.ends()?;
    }
    all_at_rest()
}

/// The clock of each process sends it signals, from its interrupt, all the time: when it
/// waits and when it runs. Not an instruction is lost, nor counted to another.
pub fn timer_signals_keep_the_count() -> Verdict {
    const TASKS: u32 = 30;
    // Of the handler and the call that returns from it.
    const SIGNAL_INSNS: u64 = 200;
    // On a watched kernel a signal takes longer than others have between two.
    let slower = if kernel_is_watched() { 20 } else { 1 };
    let task_insns = 200_000 * slower;
    let period_us = 150 * slower as i64;
    needs_counter("the interrupts of the clock are not charged to who is interrupted");
    let words = [SharedWords::shared()?, SharedWords::shared()?];
    let mut plan = Plan::new(1).config(Turns::config()).lead_in();
    // Each task takes the slots of two and a half.
    for task in 0..TASKS * 5 / 2 {
        for process in 1..=2 {
            plan = plan.slot(process, task, task_insns * 2 / 5);
        }
    }
    let mut stage = Stage::new()?;
    for (process, words) in (1..).zip(words) {
        stage.process(process, |device| {
            count_signals(words, libc::SIGALRM);
            let period = libc::timeval { tv_sec: 0, tv_usec: period_us };
            let timer = libc::itimerval { it_interval: period, it_value: period };
            // SAFETY: `timer` is valid, and the old one is not asked for.
            unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
            for _ in 1..TASKS {
                burn(task_insns);
                device.task_end(None).expect("task end");
            }
            burn(task_insns);
        })?;
    }
    let node = stage.run(&plan)?;
    for (process, words) in (1..).zip(words) {
        let signals = u64::from(words.note.load(SeqCst));
        let retired_insns = retired_insns(&node, process);
        let burned_insns = task_insns * u64::from(TASKS);
        println!(
            "process {process}: {signals} signals, burned {burned_insns}, counted {retired_insns}"
        );
        check!(signals > 100, "{signals} signals only");
        let over_insns = 2_000 * u64::from(TASKS) + signals * SIGNAL_INSNS;
        check!(
            Counting::here().agrees_within(over_insns, retired_insns, burned_insns),
            "process {process} burned {burned_insns} beside {signals} signals, \
             {retired_insns} were counted"
        );
    }
    let grants = node.grants(Grant::Slot).len();
    check!(grants > TASKS as usize, "slots granted: {grants}");
    all_at_rest()
}

/// Instructions that all tasks of a process retired.
fn retired_insns(node: &Node, process: u32) -> u64 {
    let ended = node.of(EventKind::TaskEnded);
    let mine = ended.iter().filter(|event| event.process == process);
    mine.map(|event| event.retired_insns).sum()
}
