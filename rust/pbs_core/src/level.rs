// SPDX-License-Identifier: GPL-2.0

//! Levels of a threshold, and the ones that were reported.

/// Level of a failure, in percent of the threshold.
pub(super) const FAILURE: u32 = 100;

/// The level of a threshold that was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The greatest level since the plan arrived; 0: none.
    percent: u32,
    /// Number of the last event of a failure, until a plan deals with it.
    failure_seq: Option<u64>,
    /// The greatest level that was reported as information; 0: none.
    info_percent: u32,
    /// Number of the event of that information.
    info_seq: u64,
}

impl Level {
    pub(super) const NOTHING: Level = Level {
        percent: 0,
        failure_seq: None,
        info_percent: 0,
        info_seq: 0,
    };

    /// `percent` of the threshold was reported, and the failure by the event `seq`.
    pub(super) const fn reported(self, percent: u32, seq: u64) -> Level {
        match percent {
            FAILURE => Level {
                percent,
                failure_seq: Some(seq),
                ..self
            },
            _ => Level {
                percent,
                info_percent: percent,
                info_seq: seq,
                ..self
            },
        }
    }

    /// Whether less than `percent` was reported.
    pub(super) const fn is_below(&self, percent: u32) -> bool {
        self.percent < percent
    }

    pub(super) const fn failure(seq: u64) -> Level {
        Level {
            percent: FAILURE,
            failure_seq: Some(seq),
            ..Level::NOTHING
        }
    }

    pub(super) const fn is_failure(&self) -> bool {
        self.percent == FAILURE
    }

    /// Whether a plan that deals with the events before `dealt_seq` deals with the failure.
    pub(super) fn is_dealt(&self, dealt_seq: u64) -> bool {
        self.failure_seq.is_some_and(|seq| seq < dealt_seq)
    }

    /// The level as if the failure were reported already.
    pub(super) const fn silenced(&self) -> Level {
        Level {
            percent: FAILURE,
            ..*self
        }
    }

    /// The level under a plan that does not deal with the failure: all is reported again,
    /// but a plan after that one may still deal with the failure.
    ///
    /// Information of the events before `info_dealt_seq` is not reported again.
    pub(super) fn reopened(&self, info_dealt_seq: u64) -> Level {
        let info_percent = if self.info_seq < info_dealt_seq {
            self.info_percent
        } else {
            0
        };
        Level {
            percent: info_percent,
            info_percent,
            ..*self
        }
    }
}

/// The levels that were reported of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    /// t2_task, of the current task.
    pub(super) task: Level,
    /// t2_preemptions, of the current task.
    pub(super) preemptions: Level,
    /// t2_process.
    pub(super) process: Level,
    /// t2_memory.
    pub(super) memory: Level,
    /// Whether the current task was reported as untimely.
    pub(super) untimely: bool,
}

impl Reported {
    pub(super) const NOTHING: Reported = Reported {
        task: Level::NOTHING,
        preemptions: Level::NOTHING,
        process: Level::NOTHING,
        memory: Level::NOTHING,
        untimely: false,
    };

    /// Whether a plan that deals with the events before `dealt_seq` deals with a failure of the
    /// lateness of the process or its task.
    pub(super) fn is_dealt(&self, dealt_seq: u64) -> bool {
        [self.task, self.preemptions, self.process]
            .iter()
            .any(|level| level.is_dealt(dealt_seq))
    }

    /// Forgets the levels of the current task, as another one begins.
    pub(super) fn forget_task(&mut self) {
        self.task = Level::NOTHING;
        self.preemptions = Level::NOTHING;
        self.untimely = false;
    }
}

saved!([super] Level {
    percent,
    failure_seq,
    info_percent,
    info_seq,
});
saved!([super] Reported {
    task,
    preemptions,
    process,
    memory,
    untimely,
});
