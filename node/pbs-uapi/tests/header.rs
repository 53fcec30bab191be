// SPDX-License-Identifier: GPL-2.0
//! Compares the Rust side with what a C compiler makes of the header.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use pbs_uapi::record::{
    Attach, Config, Configure, Error, Event, GetPlan, Info, Input, InputsInfo, KeptPlan, PlanCpu,
    PlanEdge, PlanHeader, PlanProcess, PlanSlot, Process, RingHeader, Snapshot, TaskEnd,
};
use pbs_uapi::{ioc, Cause, Drop, Eject, EventKind, Grant, ProcessState, Tier, TierCause, Wait};

/// Expression in C and what it must be.
type Expected = BTreeMap<String, u64>;

macro_rules! layout {
    ($expected:ident, $($c:literal $rust:ident { $($field:ident)* })*) => {$(
        $expected.insert(format!("sizeof(struct {})", $c), size_of::<$rust>() as u64);
        $($expected.insert(
            format!("offsetof(struct {}, {})", $c, stringify!($field)),
            offset_of!($rust, $field) as u64,
        );)*
    )*};
}

fn expected() -> Expected {
    let mut expected = Expected::new();
    layout! { expected,
        "pbs_plan_header" PlanHeader {
            magic version header_bytes total_bytes plan_id nr_cpus config_bytes flags dealt_seq
            lease_ns memory_bytes
        }
        "pbs_config" Config {
            sigma_t1_permille preemption_limit_ns no_preemption_ns ceiling_factor_permille
            ceiling_extra_ns window_period_ns window_unallocated_ns sigma_t2_permille
            t2_spacer_ns t2_task_signaling_limit_ns max_preemptions capacity_buffer_permille
            available_plan_buffer_permille reschedule_time_ns t2_min_process_ns
            t2_node_lateness_cap_permille tm2_node_earliness_cap_permille stress_reset
            stress_gain_ns nominal_tick_ns thresholds idle_policy idle_is_lateness
            t1_spares_last_slot kernel_budget_permille tm2_node_lower_bound_ns
            sigma_memory_permille memory_spacer_bytes memory_signaling_limit_bytes preemption_way
            idle_piece_ns dispatch
            stress_cause
            reschedule_time_measured
            info_is_dealt
            least_progress_permille
            sigma_tm2_permille
            tm2_spacer_ns
            tm2_task_signaling_limit_ns
            t1_state
            suspends_failed
            t2_message_ns
            tm2_message_ns
            timeliness_ns
            volatile_interval_ns
        }
        "pbs_plan_cpu" PlanCpu { cpu nr_processes nr_slots nr_edges rate_insns_per_ms }
        "pbs_plan_process" PlanProcess {
            id flags buffer_insns memory_bytes rate_insns_per_ms deadline_ns
        }
        "pbs_plan_slot" PlanSlot { length_insns process task }
        "pbs_plan_edge" PlanEdge { process task after_process after_task }
        "pbs_event" Event {
            seq time_ns plan_id kind reason cpu process task slot planned_insns retired_insns
            lateness_insns value peak_vm_bytes peak_rss_bytes preemptions pid
            node_lateness_insns stress level_percent memory_bytes
        }
        "pbs_ring" RingHeader {
            magic version record_bytes cpu records_offset_bytes capacity_records reserved head tail
        }
        "pbs_attach" Attach { pid process flags reserved }
        "pbs_task_end" TaskEnd { task next_task reserved }
        "pbs_info" Info {
            version tier max_slots max_processes max_slot_insns rate_insns_per_ms first_seq
            next_seq rate_spread_permille ring_bytes nr_cpu_ids nr_rings reserved
        }
        "pbs_error" Error { error reserved offset_bytes text }
        "pbs_process" Process {
            process cpu plan_id state task ended_tasks tasks planned_insns retired_insns
            lateness_insns buffer_insns preemptions after_process after_task reserved32
            task_peak_vm_bytes task_peak_rss_bytes peak_vm_bytes peak_rss_bytes next_seq memory_bytes
            t2_memory_bytes reserved
        }
        "pbs_get_plan" GetPlan { cpu generation buffer bytes }
        "pbs_configure" Configure { cpu config_bytes plan_id config generation reserved }
        "pbs_input" Input { time_ns value more process kind reason }
        "pbs_inputs_info" InputsInfo { version nr_cpu_ids ring_bytes next_plan reserved }
        "pbs_kept_plan" KeptPlan { number cpu reserved rate_insns_per_ms buffer bytes }
        "pbs_snapshot" Snapshot {
            cpu reserved next_input time_ns installed_ns plan_bytes buffer bytes
        }
    }
    for (name, value) in [
        ("PBS_VERSION", u64::from(pbs_uapi::VERSION)),
        ("PBS_PLAN_MAGIC", pbs_uapi::PLAN_MAGIC.into()),
        ("PBS_RING_MAGIC", pbs_uapi::RING_MAGIC.into()),
        ("PBS_IDLE", pbs_uapi::IDLE.into()),
        ("PBS_NO_TASK", pbs_uapi::NO_TASK.into()),
        ("PBS_NO_SLOT", pbs_uapi::NO_SLOT),
        ("PBS_NO_DEADLINE", pbs_uapi::NO_DEADLINE),
        ("PBS_NO_ARRIVAL", pbs_uapi::NO_ARRIVAL),
        ("PBS_PLAN_ARRIVALS", pbs_uapi::PLAN_ARRIVALS),
        ("PBS_MAX_SLOTS", pbs_uapi::MAX_SLOTS.into()),
        ("PBS_RING_VERSION", pbs_uapi::RING_VERSION.into()),
        ("PBS_MAX_EDGES", pbs_uapi::MAX_EDGES.into()),
        ("PBS_MAX_PROCESSES", pbs_uapi::MAX_PROCESSES.into()),
        ("PBS_MAX_SLOT_INSNS", pbs_uapi::MAX_SLOT_INSNS),
        ("PBS_MAX_BUFFER_INSNS", pbs_uapi::MAX_BUFFER_INSNS),
        ("PBS_ATTACH_ONE_TASK", pbs_uapi::ATTACH_ONE_TASK.into()),
        ("PBS_IOC_INFO", ioc::INFO.into()),
        ("PBS_IOC_ATTACH", ioc::ATTACH.into()),
        ("PBS_IOC_TASK_END", ioc::TASK_END.into()),
        ("PBS_IOC_DETACH", ioc::DETACH.into()),
        ("PBS_IOC_DROP", ioc::DROP.into()),
        ("PBS_IOC_SEEK", ioc::SEEK.into()),
        ("PBS_IOC_ERROR", ioc::ERROR.into()),
        ("PBS_IOC_GET_PLAN", ioc::GET_PLAN.into()),
        ("PBS_IOC_RENEW", ioc::RENEW.into()),
        ("PBS_IOC_GET_PROCESS", ioc::GET_PROCESS.into()),
        ("PBS_IOC_CONFIGURE", ioc::CONFIGURE.into()),
        ("PBS_INPUTS_MAGIC", pbs_uapi::INPUTS_MAGIC.into()),
        ("PBS_INPUTS_VERSION", pbs_uapi::INPUTS_VERSION.into()),
        ("PBS_MAX_KEPT_PLANS", pbs_uapi::MAX_KEPT_PLANS.into()),
        ("PBS_IN_EVENT", pbs_core::Input::EVENT.into()),
        ("PBS_IOC_INPUTS_INFO", ioc::INPUTS_INFO.into()),
        ("PBS_IOC_KEPT_PLAN", ioc::KEPT_PLAN.into()),
        ("PBS_IOC_SNAPSHOT", ioc::SNAPSHOT.into()),
        ("PBS_MAX_SNAPSHOT_WORDS", pbs_uapi::MAX_SNAPSHOT_WORDS.into()),
    ] {
        expected.insert(name.into(), value);
    }
    let c_name = |prefix: &str, name: &str| format!("PBS_{prefix}_{}", constant_case(name));
    for &kind in EventKind::ALL {
        expected.insert(c_name("EV", &format!("{kind:?}")), kind as u64);
    }
    for &grant in Grant::ALL {
        expected.insert(c_name("GRANT", &format!("{grant:?}")), grant as u64);
    }
    for &cause in Cause::ALL {
        expected.insert(c_name("CAUSE", &format!("{cause:?}")), cause as u64);
    }
    for &wait in Wait::ALL {
        expected.insert(c_name("WAIT", &format!("{wait:?}")), wait as u64);
    }
    for &eject in Eject::ALL {
        expected.insert(c_name("EJECT", &format!("{eject:?}")), eject as u64);
    }
    for &drop in Drop::ALL {
        expected.insert(c_name("DROP", &format!("{drop:?}")), drop as u64);
    }
    // These are numbers of the policy, and so in the policy core.
    for kind in pbs_core::InputKind::ALL {
        expected.insert(format!("PBS_IN_{}", kind.name().to_uppercase()), kind as u64);
    }
    for threshold in pbs_core::Threshold::ALL {
        let name = threshold.name().to_uppercase();
        expected.insert(format!("PBS_{name}"), threshold as u64);
    }
    for policy in pbs_core::IdlePolicy::ALL {
        let name = policy.name().to_uppercase();
        expected.insert(format!("PBS_IDLE_{name}"), policy as u64);
    }
    for way in pbs_core::PreemptionWay::ALL {
        let name = way.name().to_uppercase();
        expected.insert(format!("PBS_PREEMPTION_{name}"), way as u64);
    }
    for dispatch in pbs_core::Dispatch::ALL {
        let name = dispatch.name().to_uppercase();
        expected.insert(format!("PBS_DISPATCH_{name}"), dispatch as u64);
    }
    for state in pbs_core::T1State::ALL {
        let name = state.name().to_uppercase();
        expected.insert(format!("PBS_T1_STATE_{name}"), state as u64);
    }
    for cause in pbs_core::StressCause::ALL {
        let name = cause.name().to_uppercase();
        expected.insert(format!("PBS_STRESS_{name}"), cause as u64);
    }
    for &state in ProcessState::ALL {
        expected.insert(c_name("PROCESS", &format!("{state:?}")), state as u64);
    }
    for &tier in Tier::ALL {
        expected.insert(c_name("TIER", &format!("{tier:?}")), tier as u64);
    }
    for &cause in TierCause::ALL {
        expected.insert(c_name("TIER", &format!("{cause:?}")), cause as u64);
    }
    expected
}

/// `PlanEnded` to `PLAN_ENDED`.
fn constant_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

fn header_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/uapi"))
}

#[test]
fn rust_side_is_the_header() {
    let expected = expected();
    let mut source = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <linux/pbs.h>\nint main(void)\n{\n",
    );
    for expression in expected.keys() {
        writeln!(
            source,
            "printf(\"%s\\t%llu\\n\", \"{expression}\", (unsigned long long)({expression}));"
        )
        .unwrap();
    }
    source.push_str("return 0;\n}\n");

    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (c, program) = (dir.join("header.c"), dir.join("header"));
    std::fs::write(&c, source).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    // The system's own <linux/pbs.h> does not exist, so -idirafter will do, and
    // leaves <linux/types.h> to the C library's kernel headers.
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-idirafter"])
        .arg(header_dir())
        .arg("-o")
        .args([&program, &c])
        .status()
        .expect("a C compiler is needed (set CC)");
    assert!(status.success(), "the header does not compile");
    let output = Command::new(&program).output().unwrap();
    let actual: Expected = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, value)| (name.to_string(), value.parse().unwrap()))
        .collect();
    for (expression, value) in &expected {
        assert_eq!(actual.get(expression), Some(value), "{expression}");
    }
}

/// The test above names what it compares; this one finds what it forgot.
#[test]
fn no_constant_of_the_header_is_missing() {
    let header = std::fs::read_to_string(header_dir().join("linux/pbs.h")).unwrap();
    let expected = expected();
    let constants = header.lines().filter_map(|line| {
        let line = line.trim_start();
        let name =
            line.strip_prefix("#define ").or_else(|| line.starts_with("PBS_").then_some(line))?;
        let name = name.split(|c: char| c.is_whitespace() || c == ',').next()?;
        (name.starts_with("PBS_") && name != "PBS_IOC_MAGIC").then_some(name)
    });
    let mut seen = 0;
    for name in constants {
        assert!(expected.contains_key(name), "{name} has no Rust side");
        seen += 1;
    }
    assert!(seen > 40, "found only {seen} constants in the header");
}
