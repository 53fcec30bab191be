# SPDX-License-Identifier: GPL-2.0
"""Numbers of the policy: ``[config]`` of a plan.

Sections are those of Leppert 2021.  Documentation/prediction-failures.rst has the formulas, and
Documentation/plan-format.rst the ranges.
"""

import dataclasses
from typing import Any, Self

from .record import FileError, Record

# Thresholds by name; each can be switched off.
THRESHOLDS = (
    "t1",
    "t2_task",
    "t2_process",
    "t2_node",
    "t2_preemptions",
    "tm2_task",
    "tm2_node",
    "info",
    "t2_memory",
    "t2_message",
    "tm2_message",
)
# Policies of idle slots (3.2.3), in the order of their numbers.
IDLE_POLICIES = (
    "latest",
    "least_slack",
    "pieces",
    "equal_shares",
    "by_state",
    "round_robin",
    "closest_deadline",
    "nobody",
    "preempted",
    "strict",
)
# Treatments of a task that is preempted again (3.2.3), in the order of their numbers.
PREEMPTION_WAYS = ("capped", "once", "next_slot", "every_slot")
# Orders in which processes run, in the order of their numbers.
DISPATCHES = ("thesis", "deadline")
# Plans that set stress (6.2.3), in the order of their numbers.
STRESS_CAUSES = ("every", "new_lengths", "failed_lengths")
# States of the node that make t1 smaller (3.1.2), in the order of their numbers.
T1_STATES = ("ignored", "lateness", "load")

_WORDS = {
    "idle_policy": IDLE_POLICIES,
    "preemption_way": PREEMPTION_WAYS,
    "dispatch": DISPATCHES,
    "t1_state": T1_STATES,
    "stress_cause": STRESS_CAUSES,
}
_FLAGS = (
    "idle_is_lateness",
    "t1_spares_last_slot",
    "reschedule_time_measured",
    "info_is_dealt",
    "suspends_failed",
)


@dataclasses.dataclass
class Config(Record):
    """Numbers of the policy that differ from the defaults; None: the default."""

    sigma_t1_permille: int | None = None
    """Share of a slot's length at which t1 ends it (SIGMA_T1, 3.2.2). Default 1050."""
    preemption_limit_ns: int | None = None
    """Greatest time by which a slot exceeds its length (3.2.2). Default 50 ms."""
    no_preemption_ns: int | None = None
    """Time by which a slot may always exceed its length (3.2.2). Default 4 ms."""
    ceiling_factor_permille: int | None = None
    """Ceiling of a slot on the clock, as a share of its planned time. Default 2000."""
    ceiling_extra_ns: int | None = None
    """Constant part of the ceiling. Default 10 ms."""
    window_period_ns: int | None = None
    """Execution time and unallocated time together (2.4.3). Default 100 ms."""
    window_unallocated_ns: int | None = None
    """Unallocated time at the end of each period (2.4.3). Default 5 ms."""
    sigma_t2_permille: int | None = None
    """Share of its length at which a task signals (SIGMA_T2, 3.3.6). Default 1500."""
    t2_spacer_ns: int | None = None
    """Time by which a task may always be late, or early (3.3.6). Default 20 ms."""
    t2_task_signaling_limit_ns: int | None = None
    """Greatest lateness or earliness of a task without a signal (3.3.6). Default 1 s."""
    max_preemptions: int | None = None
    """Number of preemptions of a task that is signalled (3.2.3, 3.3.6). Default 5."""
    capacity_buffer_permille: int | None = None
    """Capacity of the node, as a share of the planned one (3.3.6). Default 1111."""
    available_plan_buffer_permille: int | None = None
    """Share of its plan buffer that a process may use up (3.3.6). Default 500."""
    reschedule_time_ns: int | None = None
    """Time from a prediction failure to the plan that answers it (3.3.6). Default 10 ms."""
    t2_min_process_ns: int | None = None
    """Least t2_process (T2_MIN_PROCESS, 3.3.6). Default 20 ms."""
    t2_node_lateness_cap_permille: int | None = None
    """One plus the share by which a node may be late (3.3.6). Default 1100."""
    tm2_node_earliness_cap_permille: int | None = None
    """Share by which a node may be early (3.3.8). Default 100."""
    stress_reset: int | None = None
    """Points of stress after a plan has arrived (3.3.6). Default 50."""
    stress_gain_ns: int | None = None
    """Time that a point of stress adds to t2_process and t2_node (3.3.6). Default 4 ms."""
    nominal_tick_ns: int | None = None
    """Time in which stress falls by one point (A.1). Default 4 ms."""
    thresholds: list[str] | None = None
    """Thresholds that are switched on, of ``THRESHOLDS``. Default: all."""
    idle_policy: str | None = None
    """Process that gets an idle slot, of ``IDLE_POLICIES`` (3.2.3). Default latest."""
    idle_is_lateness: bool | None = None
    """Whether waiting for processes reduces the earliness of the node (3.3.8). Default false."""
    t1_spares_last_slot: bool | None = None
    """Whether t1 spares the last slot of a process. Default true; false in the thesis."""
    kernel_budget_permille: int | None = None
    """Share of a window for threads on their way out of the kernel. Default 20."""
    tm2_node_lower_bound_ns: int | None = None
    """Time by which a node may always be early (3.3.8). Default 100 ms."""
    sigma_memory_permille: int | None = None
    """Share of its planned peak of memory that a process may use. Default 1100."""
    memory_spacer_bytes: int | None = None
    """Memory that a process may always use beyond its planned peak. Default 1 MiB."""
    memory_signaling_limit_bytes: int | None = None
    """Greatest excess over the planned peak without a signal. Default 256 MiB."""
    preemption_way: str | None = None
    """Treatment of a task that is preempted again, of ``PREEMPTION_WAYS``. Default capped."""
    idle_piece_ns: int | None = None
    """Length of the pieces of idle slots (3.2.3); 0: whole slots. Default 10 ms."""
    dispatch: str | None = None
    """Order in which processes run, of ``DISPATCHES``. Default thesis."""
    stress_cause: str | None = None
    """Plans that set stress, of ``STRESS_CAUSES`` (6.2.3). Default every."""
    reschedule_time_measured: bool | None = None
    """Whether the node measures RESCHEDULE_TIME itself (3.3.3). Default false."""
    info_is_dealt: bool | None = None
    """Whether a plan deals with information, too (6.2.3). Default false."""
    least_progress_permille: int | None = None
    """Least progress of a process in t2_process (3.3.6). Default 0."""
    sigma_tm2_permille: int | None = None
    """Share of its length that a task must retire (SIGMA_TM2, 3.3.8); 0: 2 - SIGMA_T2. Default 0."""
    tm2_spacer_ns: int | None = None
    """Time by which a task may always be early (3.3.8); 0: t2_spacer_ns. Default 0."""
    tm2_task_signaling_limit_ns: int | None = None
    """Greatest earliness of a task without a signal (3.3.8); 0: that of t2_task. Default 0."""
    t1_state: str | None = None
    """State of the node that makes t1 smaller, of ``T1_STATES`` (3.1.2). Default ignored."""
    suspends_failed: bool | None = None
    """Whether a process that is too late waits for the next plan (3.3.9). Default false."""
    t2_message_ns: int | None = None
    """Lateness of a missed message without a signal (6.2.1). Default 20000000."""
    tm2_message_ns: int | None = None
    """Earliness of a message without a signal (6.2.1). Default 100000000."""
    timeliness_ns: int | None = None
    """Deviation of a task's start or end without information (3.3.2). Default 0: none is told."""
    volatile_interval_ns: int | None = None
    """Average time between plans below which a plan sets more stress (3.3.3). Default 0: off."""

    @classmethod
    def from_json(cls, value: object, where: str = "") -> Self:
        """Configuration with names as in a plan, or with numbers as in a recording."""
        if isinstance(value, dict):
            value = {key: _by_name(key, number) for key, number in value.items()}
        return super().from_json(value, where or "config")

    def options(self, option: str = "--config", before: str = "") -> list[str]:
        """Options of ``pbsctl sim`` that set these numbers; ``before`` precedes each."""
        out = []
        for key, value in self.to_json().items():
            if isinstance(value, list):
                text = ",".join(value) or "none"
            else:
                text = str(value).lower() if isinstance(value, bool) else str(value)
            out += [option, f"{before}{key}={text}"]
        return out


def _by_name(key: str, value: Any) -> Any:
    """Value of a key, by its name where it is a number of a recording."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if key in _WORDS and is_number and value >= 0:
        if value < len(_WORDS[key]):
            return _WORDS[key][value]
        raise FileError(
            f"{key} of config is {value}, for which this package has no name; add it to the tuple "
            f"of its names in sched_pbs/config.py"
        )
    if key in _FLAGS and value in (0, 1):
        return bool(value)
    if key == "thresholds" and is_number:
        return [name for bit, name in enumerate(THRESHOLDS) if value >> bit & 1]
    return value
