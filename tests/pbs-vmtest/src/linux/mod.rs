// SPDX-License-Identifier: GPL-2.0
//! Plan processes are processes like others, and leave the others alone.

mod accounts;
mod around;
mod calls;
mod chaos;
mod children;
mod exec;
mod files;
mod hotplug;
mod inheritance;
mod kill;
pub mod policy;
mod pressure;
pub mod scene;
mod signal;
mod sleeps;
mod stop;
mod storm;
mod suites;

/// The tests by their names.
pub const TESTS: &[(&str, crate::Test)] = &[
    ("kill-running", kill::kill_running),
    ("kill-waiting", kill::kill_waiting),
    ("kill-preempted", kill::kill_preempted),
    ("kill-blocked", kill::kill_blocked),
    (
        "kill-beside-a-normal-process",
        kill::kill_beside_a_normal_process,
    ),
    ("stop-running", stop::stop_running),
    ("stop-waiting", stop::stop_waiting),
    ("stop-preempted", stop::stop_preempted),
    ("stop-beyond-the-slot", stop::stop_beyond_the_slot),
    ("ptrace-running", stop::ptrace_running),
    ("ptrace-waiting", stop::ptrace_waiting),
    ("ptrace-preempted", stop::ptrace_preempted),
    ("ptrace-beyond-the-slot", stop::ptrace_beyond_the_slot),
    ("freeze-running", stop::freeze_running),
    ("freeze-waiting", stop::freeze_waiting),
    ("freeze-preempted", stop::freeze_preempted),
    ("freeze-beyond-the-slot", stop::freeze_beyond_the_slot),
    ("old-freezer-running", stop::old_freezer_running),
    ("old-freezer-waiting", stop::old_freezer_waiting),
    (
        "old-freezer-beyond-the-slot",
        stop::old_freezer_beyond_the_slot,
    ),
    ("handler-while-waiting", signal::handler_while_waiting),
    ("handler-takes-no-slot", signal::handler_takes_no_slot),
    ("exec-running", exec::exec_running),
    ("exec-kills-waiting-thread", exec::exec_kills_waiting_thread),
    ("exec-kills-waiting-leader", exec::exec_kills_waiting_leader),
    (
        "program-ends-beside-waiting-thread",
        exec::program_ends_beside_waiting_thread,
    ),
    (
        "fifo-thread-avoids-a-plan",
        around::fifo_thread_avoids_a_plan,
    ),
    ("fair-loop-leaves-a-plan", around::fair_loop_leaves_a_plan),
    ("plan-is-shown", around::plan_is_shown),
    ("class-is-not-for-all", policy::class_is_not_for_all),
    ("policy-has-no-priorities", policy::policy_has_no_priorities),
    ("affinity-is-fixed", policy::affinity_is_fixed),
    ("cpuset-is-fixed", policy::cpuset_is_fixed),
    ("cpuset-shrinks", policy::cpuset_shrinks),
    (
        "isolated-cpu-takes-a-plan",
        policy::isolated_cpu_takes_a_plan,
    ),
    (
        "log-says-who-had-to-leave",
        policy::log_says_who_had_to_leave,
    ),
    ("policy-leads-away", policy::policy_leads_away),
    ("policy-leads-to-the-top", policy::policy_leads_to_the_top),
    ("attach-again", policy::attach_again),
    ("fork-bomb-stays-outside", children::fork_bomb_stays_outside),
    ("vfork-in-a-slot", children::vfork_in_a_slot),
    (
        "sibling-thread-is-outside",
        children::sibling_thread_is_outside,
    ),
    (
        "thread-exits-beside-another",
        children::thread_exits_beside_another,
    ),
    ("cpu-goes-and-comes", hotplug::cpu_goes_and_comes),
    (
        "cpu-goes-with-armed-timer",
        hotplug::cpu_goes_with_armed_timer,
    ),
    (
        "normal-task-waits-for-plan-process",
        inheritance::normal_task_waits_for_plan_process,
    ),
    (
        "plan-process-waits-for-normal-task",
        inheritance::plan_process_waits_for_normal_task,
    ),
    (
        "deadline-task-boosts-plan-process",
        inheritance::deadline_task_boosts_plan_process,
    ),
    (
        "boosted-beyond-its-slot",
        inheritance::boosted_beyond_its_slot,
    ),
    (
        "deadline-task-boosts-waiting-process",
        inheritance::deadline_task_boosts_waiting_process,
    ),
    ("yield-keeps-the-slot", calls::yield_keeps_the_slot),
    ("sleep-in-a-slot", calls::sleep_in_a_slot),
    (
        "talks-to-a-normal-process",
        calls::talks_to_a_normal_process,
    ),
    (
        "plan-processes-wake-each-other",
        calls::plan_processes_wake_each_other,
    ),
    (
        "shared-directory-is-never-held-up",
        calls::shared_directory_is_never_held_up,
    ),
    ("signals-meet-grants", storm::signals_meet_grants),
    ("stop-storm", storm::stop_storm),
    ("freezer-storm", storm::freezer_storm),
    ("ptrace-storm", storm::ptrace_storm),
    ("policy-storm", storm::policy_storm),
    ("plans-come-and-go", storm::plans_come_and_go),
    (
        "timer-signals-keep-the-count",
        storm::timer_signals_keep_the_count,
    ),
    ("wake-ups-meet-sleeps", sleeps::wake_ups_meet_sleeps),
    (
        "hand-overs-leave-the-counts",
        accounts::hand_overs_leave_the_counts,
    ),
    (
        "leaving-leaves-the-counts",
        accounts::leaving_leaves_the_counts,
    ),
    // Not of the list: see scripts/suites.
    ("beside-a-plan", suites::beside_a_plan),
    (
        "waits-for-input-are-counted",
        files::waits_for_input_are_counted,
    ),
    ("waiting-is-sleeping", accounts::waiting_is_sleeping),
    ("waiting-is-no-pressure", pressure::waiting_is_no_pressure),
    (
        "switches-and-wake-ups-are-told",
        accounts::switches_and_wake_ups_are_told,
    ),
    ("chaos", chaos::chaos),
    ("chaos-on-four-cpus", chaos::chaos),
];
