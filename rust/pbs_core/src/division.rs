// SPDX-License-Identifier: GPL-2.0

//! Division of a slot among the processes that fill it.

/// Division of the present slot, if its own process can't run or there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// In turns, which end with the window.
    Turns,
    /// In pieces of plan time.
    Pieces {
        /// End of the present piece.
        until_plan_ns: u64,
        /// Length of the present piece, as the policy decided it; 0: no piece has begun.
        last_ns: u64,
    },
    /// The whole slot for one process alone.
    Whole(u32),
    /// In turns, for the candidates that the policy admits to idle slots.
    Admitted,
    /// For no process.
    Nobody,
}

impl Division {
    /// In pieces, none of which has begun.
    pub(super) const PIECES: Division = Division::Pieces {
        until_plan_ns: 0,
        last_ns: 0,
    };

    /// Whether the process that fills the slot keeps it at `plan_ns`.  `in_turn`: its turn began in
    /// this window.
    #[inline]
    pub(super) fn goes_on(&self, in_turn: bool, plan_ns: impl FnOnce() -> u64) -> bool {
        match *self {
            Division::Turns | Division::Admitted => in_turn,
            Division::Nobody => false,
            Division::Pieces { until_plan_ns, .. } => plan_ns() < until_plan_ns,
            Division::Whole(_) => true,
        }
    }
}

impl super::words::Saved for Division {
    fn save(&self, to: &mut impl FnMut(u64)) {
        match *self {
            Division::Turns => to(0),
            Division::Pieces {
                until_plan_ns,
                last_ns,
            } => {
                to(1);
                to(until_plan_ns);
                to(last_ns);
            }
            Division::Whole(p) => {
                to(2);
                to(p.into());
            }
            Division::Admitted => to(3),
            Division::Nobody => to(4),
        }
    }
}

#[cfg(any(test, feature = "std"))]
impl super::restored::Restored for Division {
    fn load(
        from: &mut super::restored::Words<'_>,
    ) -> Result<Division, super::restored::SnapshotError> {
        use super::restored::Restored;
        match u64::load(from)? {
            0 => Ok(Division::Turns),
            1 => Ok(Division::Pieces {
                until_plan_ns: Restored::load(from)?,
                last_ns: Restored::load(from)?,
            }),
            2 => Restored::load(from).map(Division::Whole),
            3 => Ok(Division::Admitted),
            4 => Ok(Division::Nobody),
            _ => Err(from.refusal()),
        }
    }
}
