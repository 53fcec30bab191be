// SPDX-License-Identifier: GPL-2.0
//! The time of a model, and that of the manager.

use std::time::Duration;

use crate::{Step, View, FOREVER};
use pbs_rms_api::Cap;
use pbs_uapi::clock::unix_ns;

/// The time of a model is 0 at its begin, and goes so many times faster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begin_unix_ns: u64,
    speed: u64,
}

impl Clock {
    pub(crate) fn new(speed: u64) -> Self {
        Self { begin_unix_ns: unix_ns(), speed: speed.max(1) }
    }

    /// Returns the current time of the model.
    pub(crate) fn now_ns(self) -> u64 {
        self.of_unix_ns(unix_ns())
    }

    /// A time of the machine, for the model.
    pub(crate) fn of_unix_ns(self, unix_ns: u64) -> u64 {
        let since_ns = unix_ns.saturating_sub(self.begin_unix_ns);
        since_ns.saturating_mul(self.speed)
    }

    /// Returns the real time left until a time of the model.
    pub(crate) fn until(self, time_ns: u64) -> Duration {
        let left_ns = time_ns.saturating_sub(self.now_ns());
        Duration::from_nanos(left_ns.div_ceil(self.speed))
    }

    /// A duration of the model, for the manager.
    pub(crate) fn real_ns(self, ns: u64) -> Option<u64> {
        (ns != FOREVER).then(|| ns.div_ceil(self.speed))
    }

    /// A view of the manager, for the model.
    pub(crate) fn view(self, cap: &Cap) -> View {
        let steps = cap.steps.iter().map(|step| Step {
            duration_ns: step.duration_ns.map_or(FOREVER, |ns| ns.saturating_mul(self.speed)),
            nodes: step.nodes,
        });
        let steps: Vec<Step> = steps.collect();
        View::new(self.of_unix_ns(cap.from_unix_ns), &steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_model_asks_for_little_time() {
        let clock = Clock::new(1000);
        assert_eq!(clock.real_ns(5_000_001), Some(5001));
        assert_eq!(clock.real_ns(FOREVER), None);
        let cap = Cap {
            from_unix_ns: clock.begin_unix_ns + 7,
            steps: vec![
                pbs_rms_api::Step { duration_ns: Some(3), nodes: 4 },
                pbs_rms_api::Step { duration_ns: None, nodes: 2 },
            ],
        };
        let view = clock.view(&cap);
        assert_eq!([7000, 9999, 10_000].map(|ns| view.at(ns)), [4, 4, 2]);
        assert!(clock.until(FOREVER) > Duration::from_secs(3600));
    }
}
