// SPDX-License-Identifier: GPL-2.0
//! The records of the wire format, as they lie in memory.

use std::ffi::CStr;
use std::mem::{size_of, size_of_val};

/// Plain old data: made of integers only, without padding.
///
/// # Safety
///
/// The type must be `repr(C)`, hold nothing but integers and arrays of them,
/// and have no padding, so that every bit pattern is a value of it.
#[allow(unsafe_code)]
pub unsafe trait Record: Copy + Default {}

macro_rules! records {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct $name { $(pub $field: $type,)* }

        // Without padding the fields fill the structure.
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);

        // SAFETY: repr(C), integers only, and no padding by the assertion above.
        #[allow(unsafe_code)]
        unsafe impl Record for $name {}
    )*};
}

records! {
    /// `struct pbs_plan_header`
    PlanHeader {
        magic: u32,
        version: u16,
        header_bytes: u16,
        total_bytes: u64,
        plan_id: u64,
        nr_cpus: u32,
        config_bytes: u32,
        flags: u64,
        dealt_seq: u64,
        lease_ns: u64,
        memory_bytes: u64,
    }

    /// `struct pbs_config`: the numbers of the policy.
    Config {
        sigma_t1_permille: u64,
        preemption_limit_ns: u64,
        no_preemption_ns: u64,
        ceiling_factor_permille: u64,
        ceiling_extra_ns: u64,
        window_period_ns: u64,
        window_unallocated_ns: u64,
        sigma_t2_permille: u64,
        t2_spacer_ns: u64,
        t2_task_signaling_limit_ns: u64,
        max_preemptions: u64,
        capacity_buffer_permille: u64,
        available_plan_buffer_permille: u64,
        reschedule_time_ns: u64,
        t2_min_process_ns: u64,
        t2_node_lateness_cap_permille: u64,
        tm2_node_earliness_cap_permille: u64,
        stress_reset: u64,
        stress_gain_ns: u64,
        nominal_tick_ns: u64,
        thresholds: u64,
        idle_policy: u64,
        idle_is_lateness: u64,
        t1_spares_last_slot: u64,
        kernel_budget_permille: u64,
        tm2_node_lower_bound_ns: u64,
        sigma_memory_permille: u64,
        memory_spacer_bytes: u64,
        memory_signaling_limit_bytes: u64,
        preemption_way: u64,
        idle_piece_ns: u64,
        dispatch: u64,
        stress_cause: u64,
        reschedule_time_measured: u64,
        info_is_dealt: u64,
        least_progress_permille: u64,
        sigma_tm2_permille: u64,
        tm2_spacer_ns: u64,
        tm2_task_signaling_limit_ns: u64,
        t1_state: u64,
        suspends_failed: u64,
        t2_message_ns: u64,
        tm2_message_ns: u64,
        timeliness_ns: u64,
        volatile_interval_ns: u64,
    }

    /// `struct pbs_plan_cpu`
    PlanCpu {
        cpu: u32,
        nr_processes: u32,
        nr_slots: u64,
        nr_edges: u64,
        rate_insns_per_ms: u64,
    }

    /// `struct pbs_plan_process`
    PlanProcess {
        id: u32,
        flags: u32,
        buffer_insns: u64,
        memory_bytes: u64,
        rate_insns_per_ms: u64,
        deadline_ns: u64,
    }

    /// `struct pbs_plan_slot`
    PlanSlot {
        length_insns: u64,
        process: u32,
        task: u32,
    }

    /// `struct pbs_plan_edge`: `task` of `process` waits for the other one.
    PlanEdge {
        process: u32,
        task: u32,
        after_process: u32,
        after_task: u32,
    }

    /// `struct pbs_event`: what happened.
    Event {
        seq: u64,
        time_ns: u64,
        plan_id: u64,
        kind: u16,
        reason: u16,
        cpu: u32,
        process: u32,
        task: u32,
        slot: u64,
        planned_insns: u64,
        retired_insns: u64,
        lateness_insns: i64,
        value: u64,
        peak_vm_bytes: u64,
        peak_rss_bytes: u64,
        preemptions: u32,
        pid: i32,
        node_lateness_insns: i64,
        stress: u32,
        level_percent: u32,
        memory_bytes: u64,
    }

    /// `struct pbs_ring`: the head of a mapped ring of events.
    RingHeader {
        magic: u32,
        version: u16,
        record_bytes: u16,
        cpu: u32,
        records_offset_bytes: u32,
        capacity_records: u64,
        reserved: [u64; 5],
        head: u64,
        tail: u64,
    }

    /// `struct pbs_attach`
    Attach {
        pid: i32,
        process: u32,
        flags: u32,
        reserved: [u32; 5],
    }

    /// `struct pbs_task_end`
    TaskEnd {
        task: u32,
        next_task: u32,
        reserved: [u32; 6],
    }

    /// `struct pbs_info`
    Info {
        version: u32,
        tier: u32,
        max_slots: u32,
        max_processes: u32,
        max_slot_insns: u64,
        rate_insns_per_ms: u64,
        first_seq: u64,
        next_seq: u64,
        rate_spread_permille: u64,
        ring_bytes: u64,
        nr_cpu_ids: u32,
        nr_rings: u32,
        reserved: [u64; 7],
    }

    /// `struct pbs_process`: what is known of a process.
    Process {
        process: u32,
        cpu: u32,
        plan_id: u64,
        state: u32,
        task: u32,
        ended_tasks: u32,
        tasks: u32,
        planned_insns: u64,
        retired_insns: u64,
        lateness_insns: i64,
        buffer_insns: u64,
        preemptions: u32,
        after_process: u32,
        after_task: u32,
        reserved32: u32,
        task_peak_vm_bytes: u64,
        task_peak_rss_bytes: u64,
        peak_vm_bytes: u64,
        peak_rss_bytes: u64,
        next_seq: u64,
        memory_bytes: u64,
        t2_memory_bytes: u64,
        reserved: [u64; 4],
    }

    /// `struct pbs_get_plan`
    GetPlan {
        cpu: u32,
        generation: u32,
        buffer: u64,
        bytes: u64,
    }

    /// `struct pbs_configure`
    Configure {
        cpu: u32,
        config_bytes: u32,
        plan_id: u64,
        config: u64,
        generation: u32,
        reserved: u32,
    }

    /// `struct pbs_input`: one thing that the policy of a CPU was told.
    Input {
        time_ns: u64,
        value: u64,
        more: u64,
        process: u32,
        kind: u16,
        reason: u16,
    }

    /// `struct pbs_inputs_info`
    InputsInfo {
        version: u32,
        nr_cpu_ids: u32,
        ring_bytes: u64,
        next_plan: u64,
        reserved: [u64; 5],
    }

    /// `struct pbs_kept_plan`
    KeptPlan {
        number: u64,
        cpu: u32,
        reserved: u32,
        rate_insns_per_ms: u64,
        buffer: u64,
        bytes: u64,
    }

    /// `struct pbs_snapshot`
    Snapshot {
        cpu: u32,
        reserved: u32,
        next_input: u64,
        time_ns: u64,
        installed_ns: u64,
        plan_bytes: u64,
        buffer: u64,
        bytes: u64,
    }
}

/// `struct pbs_error`: why the last call was refused.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// An errno; 0: nothing was refused yet.
    pub error: i32,
    /// Must be 0.
    pub reserved: u32,
    /// Offset in the written plan; `u64::MAX`: no particular place.
    pub offset_bytes: u64,
    /// NUL-terminated.
    pub text: [u8; 240],
}

const _: () = assert!(size_of::<Error>() == 256);

// SAFETY: repr(C), integers only, and no padding by the assertion above.
#[allow(unsafe_code)]
unsafe impl Record for Error {}

impl Default for Error {
    fn default() -> Self {
        Self { error: 0, reserved: 0, offset_bytes: 0, text: [0; 240] }
    }
}

impl Error {
    /// The reason in words.
    pub fn message(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.text)
            .map_or_else(|_| self.text.as_slice(), CStr::to_bytes);
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The record's bytes, as they go over the wire.
#[allow(unsafe_code)]
pub fn bytes_of<T: Record>(record: &T) -> &[u8] {
    // SAFETY: a `Record` has no padding, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }
}

/// The memory of records, to be read into.
#[allow(unsafe_code)]
pub fn bytes_of_slice_mut<T: Record>(records: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; and whatever is written is a value of `T`.
    unsafe { std::slice::from_raw_parts_mut(records.as_mut_ptr().cast(), size_of_val(records)) }
}

/// The record at the start of `bytes`, or `None` if they are too few.
pub fn from_bytes<T: Record>(bytes: &[u8]) -> Option<T> {
    let mut record = T::default();
    bytes_of_slice_mut(std::slice::from_mut(&mut record))
        .copy_from_slice(bytes.get(..size_of::<T>())?);
    Some(record)
}
