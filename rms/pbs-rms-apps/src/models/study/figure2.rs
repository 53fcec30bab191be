// SPDX-License-Identifier: GPL-2.0
//! Figure 2: how long a step takes. What the model was fitted to is in another paper, so that
//! the 15 % by which it misses no point can't be held against anything: there are only the
//! values of the fit.

use serde::Serialize;

use super::{Tolerance, Verdict, TARGET};
use crate::{SpeedUp, MOST_MIB};

/// Amounts of data, over S_max.
const FACTORS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];
const NODES: [u64; 8] = [1, 4, 16, 64, 256, 1024, 4096, 16_384];
/// The most nodes with which the most data are worked on at 75 %, and how long a step takes
/// then: what follows from the published constants, to as many digits as are given here.
const MOST_NODES: f64 = 1511.0;
const SECONDS: f64 = 21.2307;
const SECONDS_WITHIN: f64 = 5e-5;

/// Times on one number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpeedUpRow {
    /// n.
    pub nodes: u64,
    /// t(n, S) in seconds, with a thousandth, a hundredth, a tenth and all of S_max.
    pub seconds: [f64; 4],
}

/// The values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure2 {
    /// Rows by growing number of nodes.
    pub rows: Vec<SpeedUpRow>,
}

/// Makes the data of the figure.
pub fn figure2() -> Figure2 {
    let model = SpeedUp::default();
    let row = |nodes| SpeedUpRow {
        nodes,
        seconds: FACTORS.map(|factor| model.seconds(nodes as f64, factor * MOST_MIB)),
    };
    Figure2 { rows: NODES.map(row).to_vec() }
}

impl Figure2 {
    /// The model is the published one (2.2).
    pub fn verdicts(&self) -> Vec<Verdict> {
        let model = SpeedUp::default();
        vec![
            Verdict::new(
                "Figure 2: the most nodes for 75 % with S_max; what it was fitted to is not here",
                model.nodes(TARGET, MOST_MIB) as f64,
                Tolerance::Between(MOST_NODES, MOST_NODES),
            ),
            Verdict::new(
                "Figure 2: seconds that a step takes then",
                model.seconds(MOST_NODES, MOST_MIB),
                Tolerance::Between(SECONDS - SECONDS_WITHIN, SECONDS + SECONDS_WITHIN),
            ),
        ]
    }
}
