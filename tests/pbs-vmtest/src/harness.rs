// SPDX-License-Identifier: GPL-2.0
//! Common parts of the tests: plans made in code, children that do exact work, and the resulting
//! events.
//!
//! The test itself is a normal process and, with one CPU, only runs in idle slots, in unallocated
//! time and after the plan. Therefore it forks its children up front, releases them in one call,
//! and checks the events afterwards.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use pbs_core::wire::{encode, NO_ARRIVAL, NO_DEADLINE};
use pbs_core::Rate;
pub use pbs_random::Xorshift as Random;
pub use pbs_uapi::clock::{boottime_ns, monotonic_ns as now_ns, process_cpu_ns as cputime_ns};
use pbs_uapi::{Device, Event, EventKind, Grant, Tier};

/// Result of a test: success, or the reason of its failure.
pub type Verdict = Result<(), String>;

/// Fails the test with what was seen, unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr, $($what:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err(format!("{} ({}:{})", format!($($what)+), file!(), line!()));
        }
    };
}

/// Fails the test with both values, unless they are equal.
#[macro_export]
macro_rules! check_eq {
    ($left:expr, $right:expr, $($what:tt)+) => {{
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err(format!(
                "{}: got {left:?}, expected {right:?} ({}:{})",
                format!($($what)+), file!(), line!()
            ));
        }
    }};
}

/// Turns an error into a reason with what was tried in front.
pub trait Context<T> {
    fn context(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

/// The result of a system call that gives -1 and an errno.
pub fn cvt(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The part of a plan that is for one CPU.
#[derive(Clone, Default)]
struct CpuPlan {
    cpu: u32,
    /// (process, task, length); process `IDLE` for an idle slot.
    slots: Vec<(u32, u32, u64)>,
    /// (process, task, the process it waits for, its task).
    edges: Vec<[u32; 4]>,
    /// Edges that are messages, and their planned arrivals.
    arrivals: Vec<([u32; 4], u64)>,
}

/// A plan in the making: `Plan::new(1).slot(7, 0, 1_000_000).idle(500_000)`.
#[derive(Clone)]
pub struct Plan {
    id: u64,
    config: Option<pbs_core::Config>,
    /// (process, plan buffer)
    buffers: Vec<(u32, u64)>,
    /// (process, planned peak of memory)
    peaks: Vec<(u32, u64)>,
    /// (process, its rate)
    rates: Vec<(u32, u64)>,
    /// (process, its deadline)
    deadlines: Vec<(u32, u64)>,
    memory_bytes: u64,
    dealt_seq: u64,
    lease_ns: u64,
    cpus: Vec<CpuPlan>,
}

/// The defaults, but with t1 close to the length of each slot, and a stress that is
/// soon over: so tests need only few instructions to see what they are about.
pub const CONFIG: pbs_core::Config = pbs_core::Config {
    window_period_ns: 100_000_000,
    window_unallocated_ns: 5_000_000,
    no_preemption_ns: 10_000,
    stress_gain_ns: 400_000,
    t1_spares_last_slot: 0,
    capacity_buffer_permille: 1100,
    ..pbs_core::Config::DEFAULT
};

impl Plan {
    /// A plan for CPU 0, without slots yet, with [`CONFIG`].
    pub fn new(id: u64) -> Self {
        let cpus = vec![CpuPlan::default()];
        Self {
            id,
            config: Some(CONFIG),
            buffers: Vec::new(),
            peaks: Vec::new(),
            rates: Vec::new(),
            deadlines: Vec::new(),
            memory_bytes: 0,
            dealt_seq: 0,
            lease_ns: 0,
            cpus,
        }
    }

    /// Continues with CPU `cpu`.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpus.retain(|cpu| !cpu.slots.is_empty());
        self.cpus.push(CpuPlan { cpu, ..CpuPlan::default() });
        self
    }

    /// On the CPU that was named last, `task` of `process` waits for `after_task`
    /// of `after_process`.
    pub fn edge(mut self, process: u32, task: u32, after_process: u32, after_task: u32) -> Self {
        if let Some(cpu) = self.cpus.last_mut() {
            cpu.edges.push([process, task, after_process, after_task]);
        }
        self
    }

    /// Gives the edge that was named last a planned arrival: it is a message.
    pub fn arrival(mut self, arrival_ns: u64) -> Self {
        if let Some(cpu) = self.cpus.last_mut() {
            let edge = cpu.edges.last().copied();
            cpu.arrivals.extend(edge.map(|edge| (edge, arrival_ns)));
        }
        self
    }

    /// Runs with this configuration instead of the node's.
    pub fn config(mut self, config: pbs_core::Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Gives `process` a plan buffer.
    pub fn buffer(mut self, process: u32, buffer_insns: u64) -> Self {
        self.buffers.push((process, buffer_insns));
        self
    }

    /// Plans that `process` uses no more memory than this.
    pub fn peak(mut self, process: u32, memory_bytes: u64) -> Self {
        self.peaks.push((process, memory_bytes));
        self
    }

    /// Plans `process` at a rate of its own.
    pub fn rate(mut self, process: u32, insns_per_ms: u64) -> Self {
        self.rates.push((process, insns_per_ms));
        self
    }

    /// The process is to have ended when the plan has been in force for so long.
    pub fn deadline(mut self, process: u32, deadline_ns: u64) -> Self {
        self.deadlines.push((process, deadline_ns));
        self
    }

    /// The plan may use so much memory on the node.
    pub fn memory(mut self, memory_bytes: u64) -> Self {
        self.memory_bytes = memory_bytes;
        self
    }

    /// With the numbers of the node.
    pub fn without_config(mut self) -> Self {
        self.config = None;
        self
    }

    /// Deals with the prediction failures of all events before this number.
    pub fn dealt(mut self, dealt_seq: u64) -> Self {
        self.dealt_seq = dealt_seq;
        self
    }

    /// Sets the lease: the plan is dropped if so much time passes without a renewal.
    pub fn lease(mut self, lease_ns: u64) -> Self {
        self.lease_ns = lease_ns;
        self
    }

    /// Adds a slot of `process` for its task `task`.
    pub fn slot(mut self, process: u32, task: u32, length_insns: u64) -> Self {
        if let Some(cpu) = self.cpus.last_mut() {
            cpu.slots.push((process, task, length_insns));
        }
        self
    }

    /// An idle slot in front, to attach children in.
    pub fn lead_in(self) -> Self {
        self.idle(LEAD_IN_INSNS)
    }

    /// Adds an idle slot.
    pub fn idle(self, length_insns: u64) -> Self {
        self.slot(pbs_uapi::IDLE, pbs_uapi::NO_TASK, length_insns)
    }

    /// The plan as the kernel returns it for CPU `cpu`.
    pub fn read_back(&self, cpu: u32) -> Vec<u8> {
        let mut plan = self.clone();
        plan.cpus.retain(|part| part.cpu == cpu);
        plan.config.get_or_insert(pbs_core::Config::DEFAULT);
        // What a plan has dealt with is over.
        plan.dealt_seq = 0;
        plan.bytes()
    }

    /// The plan in the wire format.
    pub fn bytes(&self) -> Vec<u8> {
        let ids = |cpu: &CpuPlan| {
            let mut ids: Vec<u32> = cpu.slots.iter().map(|slot| slot.0).collect();
            ids.retain(|&id| id != pbs_uapi::IDLE);
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let processes: usize = self.cpus.iter().map(|cpu| ids(cpu).len()).sum();
        let slots: usize = self.cpus.iter().map(|cpu| cpu.slots.len()).sum();
        let edges: usize = self.cpus.iter().map(|cpu| cpu.edges.len()).sum();
        let with_arrivals = self.cpus.iter().any(|cpu| !cpu.arrivals.is_empty());
        let arrivals = if with_arrivals { edges as u64 } else { 0 };
        let header = encode::Header {
            plan_id: self.id,
            total_bytes: encode::total_bytes(
                self.config.is_some(),
                self.cpus.len() as u64,
                processes as u64,
                slots as u64,
                edges as u64,
            ) + encode::arrivals_bytes(arrivals),
            with_arrivals,
            nr_cpus: self.cpus.len() as u32,
            with_config: self.config.is_some(),
            dealt_seq: self.dealt_seq,
            lease_ns: self.lease_ns,
            memory_bytes: self.memory_bytes,
        };
        let mut bytes = header.bytes().to_vec();
        if let Some(config) = &self.config {
            bytes.extend(encode::config(config));
        }
        for cpu in &self.cpus {
            let ids = ids(cpu);
            let record = encode::Cpu {
                cpu: cpu.cpu,
                nr_processes: ids.len() as u32,
                nr_slots: cpu.slots.len() as u64,
                nr_edges: cpu.edges.len() as u64,
                ..encode::Cpu::default()
            };
            bytes.extend(record.bytes());
            for id in ids {
                let buffer = self.buffers.iter().find(|buffer| buffer.0 == id);
                let peak = self.peaks.iter().find(|peak| peak.0 == id);
                let rate = self.rates.iter().find(|rate| rate.0 == id);
                let deadline = self.deadlines.iter().find(|deadline| deadline.0 == id);
                let record = encode::Process {
                    id,
                    buffer_insns: buffer.map_or(0, |buffer| buffer.1),
                    memory_bytes: peak.map_or(0, |peak| peak.1),
                    rate_insns_per_ms: rate.map_or(0, |rate| rate.1),
                    deadline_ns: deadline.map_or(NO_DEADLINE, |deadline| deadline.1),
                };
                bytes.extend(record.bytes());
            }
            for &(process, task, length_insns) in &cpu.slots {
                bytes.extend(encode::slot(length_insns, process, task));
            }
            let mut edges = cpu.edges.clone();
            edges.sort_unstable();
            for &[process, task, after_process, after_task] in &edges {
                bytes.extend(encode::edge(process, task, after_process, after_task));
            }
            for edge in edges.into_iter().filter(|_| with_arrivals) {
                let arrival = cpu.arrivals.iter().find(|arrival| arrival.0 == edge);
                let arrival_ns = arrival.map_or(NO_ARRIVAL, |arrival| arrival.1);
                bytes.extend(arrival_ns.to_ne_bytes());
            }
        }
        bytes
    }
}

/// Retires exactly `insns` instructions, but for the few of the call itself.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
pub fn burn(insns: u64) {
    let turns = (insns / 2).max(1);
    // SAFETY: counts a register down.
    unsafe {
        std::arch::asm!("2: subs {n}, {n}, #1", "b.ne 2b", n = inout(reg) turns => _,
            options(nomem, nostack));
    }
}

/// Retires exactly `insns` instructions, but for the few of the call itself.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn burn(insns: u64) {
    let turns = (insns / 2).max(1);
    // SAFETY: counts a register down.
    unsafe {
        std::arch::asm!("2: dec {n}", "jnz 2b", n = inout(reg) turns => _,
            options(nomem, nostack));
    }
}

/// Sleeps in the guest's time, which costs next to none of the host's.
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(std::time::Duration::from_millis(ms));
}

/// New memory, every page of it written to. It is given back when it is dropped.
pub struct Mapping(*mut libc::c_void);

impl Mapping {
    /// Size of the mapping.
    pub const BYTES: usize = 64 << 20;

    pub fn touched() -> Self {
        // SAFETY: new memory; every byte that is written lies in it.
        unsafe {
            let memory = libc::mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(memory, libc::MAP_FAILED, "mmap");
            for offset in (0..Self::BYTES).step_by(4096) {
                memory.cast::<u8>().add(offset).write_volatile(1);
            }
            Self(memory)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what was mapped, and is used no more.
        let result = unsafe { libc::munmap(self.0, Self::BYTES) };
        assert_eq!(result, 0, "munmap");
    }
}

/// One value of `/sys/kernel/pbs/`.
pub fn sysfs(file: &str) -> Result<String, String> {
    let path = format!("/sys/kernel/pbs/{file}");
    let text = fs::read_to_string(&path).context(&path)?;
    Ok(text.trim_end().to_owned())
}

/// Writes one value of `/sys/kernel/pbs/`.
pub fn set_sysfs(file: &str, value: &str) -> Verdict {
    let path = format!("/sys/kernel/pbs/{file}");
    fs::write(&path, value).context(&path)
}

/// One value of `/sys/kernel/pbs/` that is a number.
pub fn sysfs_number(file: &str) -> Result<i64, String> {
    sysfs(file)?.parse().context(file)
}

/// The rate of CPU 0.
pub fn rate() -> Rate {
    let insns_per_ms = sysfs_number("cpu0/rate_insns_per_ms").expect("a rate");
    Rate::new(insns_per_ms as u64)
}

/// The time in which CPU 0 retires as many instructions; in a configuration it
/// becomes as many again.
pub fn ns(insns: u64) -> u64 {
    rate().length_ns(insns)
}

/// Holds children until the test lets all of them go in one call.
pub struct Gate {
    hold: Pipe,
    ready: Pipe,
    /// Number of children that wait there.
    children: Cell<usize>,
}

/// The two ends of a pipe.
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Pipe {
    pub fn new() -> Result<Self, String> {
        let mut fds = [0; 2];
        // SAFETY: `fds` has room for two descriptors.
        cvt(unsafe { libc::pipe(fds.as_mut_ptr()) }).context("pipe")?;
        // SAFETY: both were just opened and are nobody else's.
        let [read, write] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Self { read, write })
    }
}

impl Gate {
    pub fn new() -> Result<Self, String> {
        Ok(Self { hold: Pipe::new()?, ready: Pipe::new()?, children: Cell::new(0) })
    }

    /// Forks a child that does `work` when the gate opens, then exits with 0.
    /// Returns when the child is at the gate.
    pub fn child(&self, work: impl FnOnce()) -> Result<Child, String> {
        let child = fork(|| {
            let mut byte = 0u8;
            // SAFETY: descriptors of this process, and one byte of its memory.
            unsafe {
                libc::write(self.ready.write.as_raw_fd(), (&raw const byte).cast(), 1);
                while libc::read(self.hold.read.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 {}
            }
            work();
        })?;
        let mut byte = 0u8;
        // SAFETY: one byte of this process.
        cvt(unsafe { libc::read(self.ready.read.as_raw_fd(), (&raw mut byte).cast(), 1) }
            as libc::c_int)
        .context("child at the gate")?;
        self.children.set(self.children.get() + 1);
        Ok(child)
    }

    /// Lets all children go: there is a byte for each. To close the pipe would
    /// not do, as children of other gates have it too.
    pub fn open(&self) -> Verdict {
        let bytes = vec![0u8; self.children.take()];
        // SAFETY: the memory of `bytes`.
        let written =
            unsafe { libc::write(self.hold.write.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        check_eq!(written, bytes.len() as isize, "opening the gate");
        Ok(())
    }
}

/// Time that a killed child may take to die when the test has forgotten it.
const DEATH_MS: u64 = 1000;

/// A child process. It is killed when the test forgets it.
#[derive(Debug)]
pub struct Child {
    pub pid: i32,
    status: Option<i32>,
}

/// Forks a child that does `work` at once, then exits with 0.
pub fn fork(work: impl FnOnce()) -> Result<Child, String> {
    use std::io::Write;
    // What is buffered would come out twice.
    let _ = io::stdout().flush();
    // SAFETY: the test has one thread, so its child may do anything.
    let pid = cvt(unsafe { libc::fork() }).context("fork")?;
    if pid == 0 {
        work();
        // SAFETY: ends the child without what the parent would do at its exit.
        unsafe { libc::_exit(0) };
    }
    Ok(Child { pid, status: None })
}

impl Child {
    pub fn kill(&self, signal: i32) -> Verdict {
        // SAFETY: no memory is involved.
        cvt(unsafe { libc::kill(self.pid, signal) }).context("kill")?;
        Ok(())
    }

    /// Waits for its end; the answer is the status as waitpid(2) gives it.
    pub fn wait(&mut self) -> Result<i32, String> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let mut status = 0;
        // SAFETY: `status` is a valid place for it.
        cvt(unsafe { libc::waitpid(self.pid, &mut status, 0) }).context("waitpid")?;
        self.status = Some(status);
        Ok(status)
    }

    /// Whether it has ended by now.
    pub fn has_ended(&mut self) -> Result<bool, String> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: `status` is a valid place for it.
            let ended = cvt(unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) });
            self.status = (ended.context("waitpid")? != 0).then_some(status);
        }
        Ok(self.status.is_some())
    }

    /// Waits for its end, which must be an exit with 0.
    pub fn wait_ok(&mut self) -> Verdict {
        let status = self.wait()?;
        check_eq!(status, 0, "wait status of child {}", self.pid);
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        // SAFETY: no memory is involved.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // One that a failed test has left frozen does not die, and must not keep the test from
        // saying so.
        for _ in 0..DEATH_MS {
            // SAFETY: the null pointer may be one.
            if unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) } != 0 {
                return;
            }
            sleep_ms(1);
        }
    }
}

/// The device with all events since it was opened.
pub struct Node {
    pub device: Device,
    pub events: Vec<Event>,
}

impl Node {
    /// Opens the device, to read what happens from now on.
    pub fn open() -> Result<Self, String> {
        let path = Path::new(pbs_uapi::DEVICE_PATH);
        let device = Device::open_path(path, true).context(pbs_uapi::DEVICE_PATH)?;
        Ok(Self { device, events: Vec::new() })
    }

    /// Puts a plan into force.
    pub fn load(&self, plan: &Plan) -> Verdict {
        self.device.write_plan(&plan.bytes()).context("write the plan")
    }

    pub fn attach(&self, child: &Child, process: u32) -> Verdict {
        self.device.attach(child.pid, process, 0).context("attach")
    }

    /// Reads what there is.
    pub fn read(&mut self) -> Verdict {
        let mut batch = [Event::default(); 64];
        loop {
            let count = self.device.read_events(&mut batch).context("read events")?;
            if count == 0 {
                return Ok(());
            }
            self.events.extend_from_slice(&batch[..count]);
        }
    }

    /// Reads until there are `count` events of `kind`; fails after three minutes of
    /// the guest's time, which passes while the host runs others.
    pub fn read_until(&mut self, kind: EventKind, count: usize) -> Verdict {
        let deadline_ns = now_ns() + 180_000_000_000;
        let (mut looked_at, mut found) = (0, 0);
        loop {
            self.read()?;
            // Each event is looked at once: on one core of the host, a reader that looks at all of
            // 90,000 again after each new one takes the time of the CPU that it watches.
            found +=
                self.events[looked_at..].iter().filter(|event| event.kind == kind as u16).count();
            looked_at = self.events.len();
            if found >= count {
                return Ok(());
            }
            check!(
                now_ns() < deadline_ns,
                "only {found} of {count} events {}:\n{}",
                kind.name(),
                self.log()
            );
            self.device.poll(1000).context("poll")?;
        }
    }

    /// The events of one kind, in order.
    pub fn of(&self, kind: EventKind) -> Vec<Event> {
        self.events.iter().filter(|event| event.kind == kind as u16).copied().collect()
    }

    /// The first event of `kind` that is about `process`.
    pub fn first(&self, kind: EventKind, process: u32) -> Result<Event, String> {
        let found = self.of(kind).into_iter().find(|event| event.process == process);
        found.ok_or_else(|| {
            format!("no event {} of process {process}:\n{}", kind.name(), self.log())
        })
    }

    /// The end of a task.
    pub fn task_ended(&self, process: u32, task: u32) -> Result<Event, String> {
        let found = self
            .of(EventKind::TaskEnded)
            .into_iter()
            .find(|event| (event.process, event.task) == (process, task));
        found
            .ok_or_else(|| format!("task {task} of process {process} did not end:\n{}", self.log()))
    }

    /// Each task of the process from 0 on has ended, with the instructions that it burned.
    pub fn ended_as_burned(
        &self,
        counting: Counting,
        process: u32,
        tasks: u32,
        burn_insns: u64,
    ) -> Verdict {
        for task in 0..tasks {
            let retired_insns = self.task_ended(process, task)?.retired_insns;
            check!(
                counting.agrees(retired_insns, burn_insns),
                "process {process} lost counts of task {task}: {retired_insns}\n{}",
                self.log()
            );
        }
        Ok(())
    }

    /// Grants for one reason: (process, slot), in order.
    pub fn grants(&self, reason: Grant) -> Vec<(u32, u64)> {
        self.of(EventKind::Grant)
            .iter()
            .filter(|event| event.reason == reason as u16)
            .map(|event| (event.process, event.slot))
            .collect()
    }

    /// Overshoot beyond t1 of a slot that ended there. Instructions that its task had retired
    /// before the slot began, on its way to where it waited, are not the slot's.
    pub fn overshoot_insns(&self, preempted: &Event) -> u64 {
        let grants = self.of(EventKind::Grant);
        let grant = grants.iter().find(|grant| {
            (grant.process, grant.slot, grant.task)
                == (preempted.process, preempted.slot, preempted.task)
        });
        let before_insns = grant.map_or(0, |grant| grant.retired_insns);
        (preempted.retired_insns - before_insns).wrapping_sub(preempted.value)
    }

    /// The prediction failures, and the information on the way to them.
    pub fn signals(&self) -> Vec<Event> {
        let kinds = [EventKind::Late, EventKind::Early, EventKind::Info];
        let is_signal = |event: &&Event| kinds.iter().any(|&kind| event.kind == kind as u16);
        self.events.iter().filter(is_signal).copied().collect()
    }

    /// All events, one a line, for the message of a failure.
    pub fn log(&self) -> String {
        self.events.iter().map(|event| line(event) + "\n").collect()
    }
}

/// Length of an idle slot in front of a plan, in which the test attaches its children before the
/// first of them may run.
pub const LEAD_IN_INSNS: u64 = 5_000_000;

/// Children that are processes of a plan, and what came of them.
pub struct Scene {
    pub node: Node,
    pub children: Vec<Child>,
    gate: Gate,
    /// Process and flags, in the order of the children.
    attach: Vec<(u32, u32)>,
}

impl Scene {
    pub fn new() -> Result<Self, String> {
        Ok(Self {
            node: Node::open()?,
            children: Vec::new(),
            gate: Gate::new()?,
            attach: Vec::new(),
        })
    }

    /// A child that does `work` as `process`; it ends its tasks by the device.
    pub fn process(&mut self, process: u32, work: impl FnOnce(&Device)) -> Verdict {
        self.thread(process, 0, work)
    }

    /// Like [`process`](Scene::process), with flags of the attachment.
    pub fn thread(&mut self, process: u32, flags: u32, work: impl FnOnce(&Device)) -> Verdict {
        let device = &self.node.device;
        let child = self.gate.child(|| work(device))?;
        self.children.push(child);
        self.attach.push((process, flags));
        Ok(())
    }

    /// A child that burns these numbers of instructions, one a task.
    pub fn tasks(&mut self, process: u32, burns: &[u64]) -> Verdict {
        self.process(process, |device| work_tasks(device, burns))
    }

    /// Loads the plan, attaches the children, and lets them go.
    pub fn start(self, plan: &Plan) -> Result<Self, String> {
        self.node.load(plan)?;
        self.attach_and_open()
    }

    /// Attaches the children to the plan in force, and lets them go.
    pub fn attach_and_open(self) -> Result<Self, String> {
        for (child, &(process, flags)) in self.children.iter().zip(&self.attach) {
            self.node
                .device
                .attach(child.pid, process, flags)
                .context(&format!("attach to process {process}"))?;
        }
        self.gate.open()?;
        Ok(self)
    }

    /// Reads on to the end of the plan and of all children, each with status 0.
    pub fn finish(mut self) -> Result<Node, String> {
        self.node.read_until(EventKind::PlanEnded, 1)?;
        for child in &mut self.children {
            child.wait_ok()?;
        }
        self.node.read()?;
        Ok(self.node)
    }

    /// `start` and `finish`.
    pub fn run(self, plan: &Plan) -> Result<Node, String> {
        self.start(plan)?.finish()
    }
}

/// Burns, and ends a task between each two.
pub fn work_tasks(device: &Device, burns: &[u64]) {
    for (index, &insns) in burns.iter().enumerate() {
        if index != 0 {
            device.task_end(None).expect("task end");
        }
        burn(insns);
    }
}

/// Way in which the machine counts, which determines the accuracy of counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// The PMU counts the instructions of user code, and no others.
    Exact,
    /// No PMU: a task is charged for its time at the calibrated rate. Its time in
    /// the kernel is counted, and that of interrupts that come meanwhile.
    Clock,
}

impl Counting {
    /// Way of this machine.
    pub fn here() -> Self {
        let device = Device::open().expect(pbs_uapi::DEVICE_PATH);
        let info = device.info().expect("info");
        match Tier::from_raw(info.tier).expect("tier") {
            Tier::PmuOverflow | Tier::Pmu => Self::Exact,
            Tier::Clock => Self::Clock,
        }
    }

    /// Whether a task that burned `burned_insns` can have been counted so.
    pub fn agrees(self, retired_insns: u64, burned_insns: u64) -> bool {
        self.agrees_within(OVERHEAD_INSNS, retired_insns, burned_insns)
    }

    /// Like [`agrees`](Counting::agrees), for several tasks, or for one that does more than burn:
    /// `over_insns` are retired beside the loops.
    pub fn agrees_within(self, over_insns: u64, retired_insns: u64, burned_insns: u64) -> bool {
        let over_insns = match self {
            Self::Exact => over_insns,
            Self::Clock => self.over_insns(burned_insns),
        };
        (self.least_insns(burned_insns)..burned_insns + over_insns).contains(&retired_insns)
    }

    /// The least that it is charged with: the rate is known to a hundredth. A watched kernel has
    /// measured it with its own long interrupts.
    pub fn least_insns(self, burned_insns: u64) -> u64 {
        match self {
            Self::Exact => burned_insns,
            Self::Clock => burned_insns - burned_insns / if kernel_is_watched() { 10 } else { 100 },
        }
    }

    /// Greatest excess of a task's charge over the instructions that it burned.
    pub fn over_insns(self, burned_insns: u64) -> u64 {
        match self {
            Self::Exact => OVERHEAD_INSNS,
            Self::Clock => {
                // The interrupts of a watched kernel are charged, too.
                let share = if kernel_is_watched() { 4 } else { 100 };
                burned_insns / share + CLOCK_OVERHEAD_INSNS
            }
        }
    }

    /// Factor by which tasks must be longer to make the charges beside their loops as small a share
    /// of them.
    pub fn scale(self) -> u64 {
        match self {
            Self::Exact => 1,
            Self::Clock => 10,
        }
    }

    /// Whether a process that dies while it waits for its first slot leaves its
    /// one task unended. Its way out of the kernel is not the task's, unless it is
    /// the clock that counts: then the task has begun, and ends with it.
    pub fn unended_by_death(self) -> u64 {
        match self {
            Self::Exact => 1,
            Self::Clock => 0,
        }
    }

    /// Number of instructions to burn that is counted as less than `insns`, but not by far.
    pub fn below(self, insns: u64) -> u64 {
        insns - self.over_insns(insns).max(10_000)
    }
}

/// Instructions that a child retires beside its loop: on its way from the gate, and around the call
/// that ends a task.
pub const OVERHEAD_INSNS: u64 = 2_000;
/// Charge for that by the clock, including the kernel's part and the work of interrupts meanwhile:
/// now and then one has a quarter of a millisecond of work.
pub const CLOCK_OVERHEAD_INSNS: u64 = 400_000;

/// Ends the test as skipped where nothing counts instructions: `why` says what
/// it would prove that the clock can't show.
pub fn needs_counter(why: &str) {
    if Counting::here() == Counting::Clock {
        skip(&format!("nothing counts instructions here: {why}"));
    }
}

/// The status of a test that has not passed and not failed.
pub const SKIPPED: i32 = 77;

/// A number that the environment may say: how far a test goes, or its seed.
pub fn setting(name: &str, otherwise: u32) -> Result<u32, String> {
    match std::env::var(name) {
        Ok(text) => text.parse().context(name),
        Err(_) => Ok(otherwise),
    }
}

/// Ends the test as one that proves nothing on this machine.
pub fn skip(why: &str) -> ! {
    println!("SKIP: {why}");
    std::process::exit(SKIPPED)
}

/// Whether the kernel watches itself (`make kernel DEBUG=1`). An interrupt takes
/// it so long that what depends on that is only roughly so.
pub fn kernel_is_watched() -> bool {
    Path::new("/proc/lockdep").exists()
}

/// Greatest delay with which a count may be noticed. The way to user space that was learned can be
/// longer than the one that is taken, by another interrupt. A watched kernel delays the timer when
/// it makes no progress, by a millisecond at most.
pub fn overshoot_limit_insns() -> u64 {
    if kernel_is_watched() {
        250_000
    } else {
        match Counting::here() {
            Counting::Exact => 2_500,
            // The interrupt that notices it is counted as well.
            Counting::Clock => 20_000,
        }
    }
}

/// An event in words.
pub fn line(event: &Event) -> String {
    let kind = EventKind::from_raw(event.kind).map_or("?", EventKind::name);
    let number = |value: u32| {
        if value == u32::MAX {
            "-".into()
        } else {
            value.to_string()
        }
    };
    let slot = if event.slot == pbs_uapi::NO_SLOT { "-".into() } else { event.slot.to_string() };
    format!(
        "{:>4} {:>12} us cpu {} {kind} reason {} process {} task {} slot {slot} planned {} \
         retired {} late {} node late {} value {} level {} stress {} preemptions {} pid {}",
        event.seq,
        event.time_ns / 1000,
        event.cpu,
        event.reason,
        number(event.process),
        number(event.task),
        event.planned_insns,
        event.retired_insns,
        event.lateness_insns,
        event.node_lateness_insns,
        event.value,
        event.level_percent,
        event.stress,
        event.preemptions,
        event.pid,
    )
}
