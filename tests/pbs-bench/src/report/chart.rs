// SPDX-License-Identifier: GPL-2.0
//! The picture: what round trips and switches cost, as bars.

use std::fmt::Write;

use super::{number, Measurement};

const WIDTH: f64 = 760.0;
/// Left edge of bars, and the length of the longest.
const LEFT: f64 = 250.0;
const LONGEST: f64 = 420.0;
const LINE: f64 = 26.0;
const BAR: f64 = 16.0;

/// Groups of bars: title, and row and label of each bar. Plan processes first.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Pipe round trip, kernel instructions",
        &[
            ("pipe-pbs", "SCHED_PBS, after the plan"),
            ("pipe-pbs-slot", "SCHED_PBS, in a slot"),
            ("pipe-fifo", "SCHED_FIFO"),
            ("pipe-deadline", "SCHED_DEADLINE"),
            ("pipe-other", "SCHED_OTHER"),
        ],
    ),
    (
        "From one process to the next, kernel instructions",
        &[
            ("task-end", "SCHED_PBS, end of a task"),
            ("task-end-near", "SCHED_PBS, end near lateness"),
            ("preemption", "SCHED_PBS, t1"),
            ("yield-fifo-threads", "SCHED_FIFO, yield, threads"),
            ("yield-fifo", "SCHED_FIFO, yield, processes"),
            ("yield-other", "SCHED_OTHER, yield, processes"),
        ],
    ),
];

/// An SVG file of the rows that are there.
pub fn of(rows: &[Measurement]) -> String {
    let mut body = String::new();
    let mut y = 16.0;
    for (title, bars) in GROUPS {
        let found = |name: &str| rows.iter().find(|row| row.name == name);
        let bars: Vec<_> =
            bars.iter().filter_map(|(name, label)| Some((*label, found(name)?.value))).collect();
        let most = bars.iter().map(|(_, value)| *value).fold(1.0, f64::max);
        y += 16.0;
        let _ = writeln!(body, "<text x=\"16\" y=\"{y:.0}\" font-weight=\"bold\">{title}</text>");
        y += 12.0;
        for (label, value) in bars {
            let (length, middle) = (value / most * LONGEST, y + BAR / 2.0 + 5.0);
            let color = if label.starts_with("SCHED_PBS") { "#1f6fb4" } else { "#9aa5b1" };
            let end = LEFT + length + 6.0;
            let start = LEFT - 8.0;
            let _ = writeln!(
                body,
                "<text x=\"{start:.0}\" y=\"{middle:.1}\" text-anchor=\"end\">{label}</text>\n\
                 <rect x=\"{LEFT:.0}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR:.0}\" \
                 fill=\"{color}\"/>\n\
                 <text x=\"{end:.1}\" y=\"{middle:.1}\">{}</text>",
                number(value)
            );
            y += LINE;
        }
        y += 12.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{y:.0}\" \
         viewBox=\"0 0 {WIDTH:.0} {y:.0}\" font-size=\"14\" \
         font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\">\n\
         <title>What round trips and switches cost</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}
