// SPDX-License-Identifier: GPL-2.0
//! The enumerations of the wire format, with the names people read.

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident: $repr:ty {
        $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal;)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($repr)]
        pub enum $name { $($(#[$vmeta])* $variant = $value,)* }

        impl $name {
            /// Every value, in the order of the header.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// `None` for a number that this version does not know.
            pub fn from_raw(raw: $repr) -> Option<Self> {
                match raw {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// `None` for a name that this version does not know.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }

            /// The name used in tables and in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    )*};
}

numbers! {
    /// `enum pbs_event_kind`
    EventKind: u16 {
        /// A plan is in force; `value`: number of slots.
        PlanInstalled = 1, "plan_installed";
        /// `value`: processes that still have tasks.
        PlanEnded = 2, "plan_ended";
        /// `reason`: [`Drop`].
        PlanDropped = 3, "plan_dropped";
        /// `pid` became a thread of `process`.
        Attached = 4, "attached";
        /// `process` may run from now on; `reason`: [`Grant`].
        Grant = 5, "grant";
        TaskEnded = 6, "task_ended";
        /// The slot reached t1; `value`: t1 in instructions.
        Preempted = 7, "preempted";
        /// The slot reached its ceiling; `value`: it, in ns.
        Ceiling = 8, "ceiling";
        /// Prediction failure, beyond a t2; `reason`: [`Cause`]; `value`: it.
        Late = 9, "late";
        /// Prediction failure, below a t-2; `reason`: [`Cause`]; `value`: it.
        Early = 10, "early";
        /// On the way to a t2, by `level_percent`; `reason`: [`Cause`];
        /// `value`: the t2.
        Info = 11, "info";
        /// The slot of `process` came, and the process has no thread.
        Absent = 12, "absent";
        /// `value`: tasks of the plan it did not end.
        ProcessEnded = 13, "process_ended";
        /// `pid` left the class before its end; `reason`: [`Eject`].
        Ejected = 14, "ejected";
        CpuGone = 15, "cpu_gone";
        /// `value`: ns from the request to wait until it waited.
        StopLong = 16, "stop_long";
        /// This reader was too slow; `value`: events lost.
        Overrun = 17, "overrun";
        /// The CPU counts in another way; `value`: [`Tier`]; `reason`:
        /// [`TierCause`].
        Tier = 18, "tier";
        /// The slot of `process` came, and `task` waits for another one's end;
        /// `reason`: [`Wait`]; `value`: the process that is waited for, and in
        /// its lower half the task.
        Waits = 19, "waits";
        /// The plan continues with another configuration; `value`: numbers that changed.
        Configured = 20, "configured";
    }

    /// `enum pbs_wait`: why a task waits for another one's end.
    Wait: u16 {
        /// The awaited task has not ended yet.
        Task = 1, "task";
        /// The awaited task can never end: its process has ended.
        Gone = 2, "gone";
    }

    /// `enum pbs_grant`: why a process may run.
    Grant: u16 {
        Slot = 1, "slot";
        IdleSlot = 2, "idle_slot";
        BlockedSlot = 3, "blocked_slot";
        AfterPlan = 4, "after_plan";
        None = 5, "none";
    }

    /// `enum pbs_cause`: which threshold a signal is about.
    Cause: u16 {
        Task = 1, "task";
        Process = 2, "process";
        Node = 3, "node";
        Preemptions = 4, "preemptions";
        Memory = 5, "memory";
        NodeMemory = 6, "node_memory";
        Message = 7, "message";
        Start = 8, "start";
        End = 9, "end";
    }

    /// `enum pbs_eject`: why a thread left the class.
    Eject: u16 {
        Detached = 1, "detached";
        Policy = 2, "policy";
        Plan = 3, "plan";
        Dropped = 4, "dropped";
        CpuGone = 5, "cpu_gone";
        Fault = 6, "fault";
        /// The thread's cpuset no longer contains the CPU.
        Cpuset = 7, "cpuset";
    }

    /// `enum pbs_drop`: why a plan was dropped.
    Drop: u16 {
        Call = 1, "call";
        Sysrq = 2, "sysrq";
        Lease = 3, "lease";
        Decision = 4, "decision";
        WakeUp = 5, "wake_up";
        Progress = 6, "progress";
        State = 7, "state";
    }

    /// `enum pbs_process_state`: what a process does.
    ProcessState: u32 {
        /// The process has tasks left and no thread.
        Absent = 1, "absent";
        /// The thread can't run.
        Blocked = 2, "blocked";
        /// The thread can run.
        Ready = 3, "ready";
        /// The process has ended: all its tasks, or before them.
        Done = 4, "done";
        /// The thread could run, but its task waits for another task.
        Waits = 5, "waits";
    }

    /// `enum pbs_tier`: how instructions are counted.
    Tier: u32 {
        PmuOverflow = 1, "pmu_overflow";
        Pmu = 2, "pmu";
        Clock = 3, "clock";
    }

    /// `enum pbs_tier_cause`: why a CPU counts in another way than before.
    TierCause: u16 {
        Stopped = 1, "stopped";
        Taken = 2, "taken";
        Multiplexed = 3, "multiplexed";
        Silent = 4, "silent";
        Returned = 5, "returned";
    }
}
