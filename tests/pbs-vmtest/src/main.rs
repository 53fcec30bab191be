// SPDX-License-Identifier: GPL-2.0
//! Tests of the scheduling class, run inside the virtual machine.
//!
//! `pbs-vmtest NAME` runs one test: status 0 if it passed, 1 with the reason on
//! standard output if not, 77 with the reason if it proves nothing on this machine.
//! Without a name it lists all.

mod asked;
mod cosched;
mod evolving;
mod failure;
mod input;
mod jobs;
mod lease;
mod linux;
mod policy;
mod policy_ceiling;
mod policy_clock;
mod policy_cpus;
mod policy_events;
mod policy_fill;
mod policy_large;
mod policy_memory;
mod policy_neighbours;
mod policy_order;
mod policy_rate;
mod policy_rings;
mod policy_share;
mod policy_swap;
mod record;
mod service;
mod simulator;
mod tiers;
mod tracepoints;
mod watch;

use std::process::ExitCode;

use pbs_vmtest::{check, check_eq, harness};

type Test = fn() -> harness::Verdict;

/// Every test by its name; `tests.list` says on how many CPUs each runs.
const TESTS: &[(&str, Test)] = &[
    ("order-equals-plan", policy::order_equals_plan),
    ("states-of-processes", asked::states_of_processes),
    ("state-and-events-join", asked::state_and_events_join),
    ("loop-is-counted", policy::loop_is_counted),
    (
        "late-task-ends-in-next-slot",
        policy::late_task_ends_in_next_slot,
    ),
    (
        "early-end-starts-next-slot",
        policy::early_end_starts_next_slot,
    ),
    (
        "one-task-threads-in-order",
        policy::one_task_threads_in_order,
    ),
    ("plan-ends-once", policy::plan_ends_once),
    (
        "blocked-slot-is-filled",
        policy_fill::blocked_slot_is_filled,
    ),
    (
        "blocked-slot-ends-at-ceiling",
        policy_fill::blocked_slot_ends_at_ceiling,
    ),
    (
        "absent-process-comes-late",
        policy_fill::absent_process_comes_late,
    ),
    (
        "idle-slot-goes-to-latest",
        policy_fill::idle_slot_goes_to_latest,
    ),
    (
        "idle-slot-goes-to-least-slack",
        policy_fill::idle_slot_goes_to_least_slack,
    ),
    (
        "behind-runs-after-plan",
        policy_fill::behind_runs_after_plan,
    ),
    (
        "getppid-ends-at-ceiling",
        policy_ceiling::getppid_ends_at_ceiling,
    ),
    (
        "zero-reader-ends-at-ceiling",
        policy_ceiling::zero_reader_ends_at_ceiling,
    ),
    (
        "zero-reader-takes-no-slot",
        policy_neighbours::zero_reader_takes_no_slot,
    ),
    (
        "mapper-takes-no-slot",
        policy_neighbours::mapper_takes_no_slot,
    ),
    (
        "giant-mapper-takes-no-slot",
        policy_neighbours::giant_mapper_takes_no_slot,
    ),
    (
        "syncer-takes-no-slot",
        policy_neighbours::syncer_takes_no_slot,
    ),
    (
        "forker-takes-no-slot",
        policy_neighbours::forker_takes_no_slot,
    ),
    (
        "signalled-takes-no-slot",
        policy_neighbours::signalled_takes_no_slot,
    ),
    (
        "kernel-hog-starves-nobody-after-plan",
        policy_neighbours::kernel_hog_starves_nobody_after_plan,
    ),
    (
        "hog-out-of-turn-can-be-killed",
        policy_neighbours::hog_out_of_turn_can_be_killed,
    ),
    ("swap-under-load", policy_swap::swap_under_load),
    ("recording-replays", record::recording_replays),
    (
        "recording-of-four-cpus-replays",
        record::recording_of_four_cpus_replays,
    ),
    ("recording-tells-overruns", record::recording_tells_overruns),
    (
        "recording-is-of-who-records",
        record::recording_is_of_who_records,
    ),
    ("recording-is-for-root", record::recording_is_for_root),
    ("two-cpus-at-once", policy_cpus::two_cpus_at_once),
    (
        "comings-and-goings-keep-the-count",
        policy_cpus::comings_and_goings_keep_the_count,
    ),
    ("four-cpus-at-once", policy_cpus::four_cpus_at_once),
    (
        "late-stage-holds-the-next",
        policy_order::late_stage_holds_the_next,
    ),
    ("cpus-take-turns", policy_order::cpus_take_turns),
    ("cpus-meet", policy_order::cpus_meet),
    (
        "dead-are-not-waited-for",
        policy_order::dead_are_not_waited_for,
    ),
    (
        "plans-change-on-one-side",
        policy_order::plans_change_on_one_side,
    ),
    ("waiter-goes-offline", policy_order::waiter_goes_offline),
    ("circles-are-refused", policy_order::circles_are_refused),
    (
        "hog-leaves-four-percent",
        policy_share::hog_leaves_four_percent,
    ),
    (
        "hog-that-wakes-during-server",
        policy_share::hog_that_wakes_during_server,
    ),
    (
        "hog-that-enters-during-server",
        policy_share::hog_that_enters_during_server,
    ),
    ("windows-of-the-plan", policy_share::windows_of_the_plan),
    (
        "process-without-tasks-is-ejected",
        policy_swap::process_without_tasks_is_ejected,
    ),
    ("other-cpus-plan-stays", policy_swap::other_cpus_plan_stays),
    (
        "cpu-without-slots-is-cleared",
        policy_swap::cpu_without_slots_is_cleared,
    ),
    (
        "large-plans-replace-each-other",
        policy_large::large_plans_replace_each_other,
    ),
    ("t1-by-the-configuration", policy::t1_by_the_configuration),
    ("rate-as-it-is-said", policy_rate::rate_as_it_is_said),
    (
        "said-rate-outlives-offline",
        policy_rate::said_rate_outlives_offline,
    ),
    ("cputime-is-sane", policy_share::cputime_is_sane),
    ("memory-peaks-by-task", policy_memory::memory_peaks_by_task),
    (
        "memory-beyond-the-planned-peak-is-told",
        policy_memory::memory_beyond_the_planned_peak_is_told,
    ),
    (
        "memory-of-the-node-is-that-of-all-cpus",
        policy_memory::memory_of_the_node_is_that_of_all_cpus,
    ),
    (
        "dealt-memory-is-silent",
        policy_memory::dealt_memory_is_silent,
    ),
    ("readers-get-the-same", policy_events::readers_get_the_same),
    ("slow-reader-is-told", policy_events::slow_reader_is_told),
    (
        "mapped-readers-get-the-same",
        policy_rings::mapped_readers_get_the_same,
    ),
    (
        "slow-mapped-reader-is-told",
        policy_rings::slow_mapped_reader_is_told,
    ),
    ("rings-are-read-only", policy_rings::rings_are_read_only),
    (
        "mapping-outlives-file-and-plan",
        policy_rings::mapping_outlives_file_and_plan,
    ),
    (
        "rings-of-two-cpus-are-one-stream",
        policy_rings::rings_of_two_cpus_are_one_stream,
    ),
    ("top-shows-the-node", policy_events::top_shows_the_node),
    (
        "kernel-equals-simulator",
        simulator::kernel_equals_simulator,
    ),
    ("generated-plans-run", simulator::generated_plans_run),
    (
        "without-pmu-clock-counts",
        policy_clock::without_pmu_clock_counts,
    ),
    (
        "tracepoints-tell-the-events",
        tracepoints::tracepoints_tell_the_events,
    ),
    (
        "tracepoints-off-tell-nothing",
        tracepoints::tracepoints_that_are_off_tell_nothing,
    ),
    (
        "tracepoints-can-be-counted",
        tracepoints::tracepoints_can_be_counted,
    ),
    (
        "trace-pipe-while-a-plan-runs",
        tracepoints::trace_pipe_is_read_while_a_plan_runs,
    ),
    ("live-trace-of-a-run", tracepoints::live_trace_of_a_run),
    ("job-is-learnt", jobs::job_is_learnt),
    ("job-is-profiled", jobs::job_is_profiled),
    ("run-keeps-the-order", jobs::run_keeps_the_order),
    (
        "who-waits-for-the-dead-is-cancelled",
        jobs::who_waits_for_the_dead_is_cancelled,
    ),
    ("submitted-jobs-are-run", jobs::submitted_jobs_are_run),
    ("job-comes-to-others", jobs::job_comes_to_others),
    ("service-takes-jobs", service::takes_jobs),
    ("service-is-for-all-users", service::is_for_all_users),
    ("service-has-allocations", service::has_allocations),
    ("service-is-killed", service::is_killed),
    ("service-answers-many", service::answers_many),
    ("service-has-no-room", service::has_no_room),
    ("service-has-no-device", service::has_no_device),
    (
        "service-survives-the-watchdog",
        service::survives_the_watchdog,
    ),
    ("service-is-handed-a-socket", service::is_handed_a_socket),
    (
        "service-carries-out-a-cluster",
        service::carries_out_a_cluster,
    ),
    (
        "applications-evolve-under-plans",
        evolving::applications_evolve_under_plans,
    ),
    (
        "what-is-left-behind-is-cancelled",
        evolving::what_is_left_behind_is_cancelled,
    ),
    (
        "task-graphs-run-under-plans",
        cosched::task_graphs_run_under_plans,
    ),
    (
        "who-slows-whom-is-planned",
        cosched::who_slows_whom_is_planned,
    ),
    ("planner-dies", jobs::planner_dies),
    ("planner-oversleeps", jobs::planner_oversleeps),
    ("two-planners", jobs::two_planners),
    ("bad-histories", jobs::bad_histories),
    ("full-disk", jobs::full_disk),
];

/// Tests that count memory, or have none: of a recorder plans are kept. Nor are those
/// recorded that look who records.
const UNRECORDED: [&str; 3] = [
    "plans-are-freed",
    "writer-is-charged",
    "no-memory-changes-nothing",
];

fn main() -> ExitCode {
    let mut tests = TESTS
        .iter()
        .chain(failure::TESTS)
        .chain(linux::TESTS)
        .chain(input::TESTS)
        .chain(tiers::TESTS)
        .chain(watch::TESTS)
        .chain(lease::TESTS);
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in tests {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, test)) = tests.find(|(known, _)| *known == name) else {
        println!("no test is called {name}");
        return ExitCode::from(2);
    };
    // It is not looked at before the end: a process that runs meanwhile would be another
    // one beside the test's.
    let is_recorded = !name.starts_with("recording-") && !UNRECORDED.contains(&name.as_str());
    let recorder = is_recorded.then(record::begin).flatten();
    match test() {
        Ok(()) => {
            println!("ok: {name}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("FAIL: {name}: {why}");
            if let Some(recorder) = recorder {
                record::keep(recorder);
            }
            ExitCode::FAILURE
        }
    }
}
