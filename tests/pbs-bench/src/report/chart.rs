// SPDX-License-Identifier: GPL-2.0
//! The picture: what round trips and switches cost, as bars.

use pbs_report::{bars, Bar, BarColour, Bars};

use super::{number, Measurement};

const AXES: &str = "Left to right: instructions that the kernel retires each time. Rows: what is \
                    measured, under which scheduling class. Blue: processes of a plan. Grey: the \
                    classes that Linux has already.";

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
    let bar = |name: &str, label: &str| {
        let value = rows.iter().find(|row| row.name == name)?.value;
        let is_own = label.starts_with("SCHED_PBS");
        Some(Bar {
            label: label.into(),
            value,
            text: number(value),
            colour: if is_own { BarColour::Subject } else { BarColour::Other },
        })
    };
    let groups = GROUPS.iter().map(|(title, known)| Bars {
        title: (*title).into(),
        bars: known.iter().filter_map(|(name, label)| bar(name, label)).collect(),
        limit: None,
    });
    let groups: Vec<Bars> = groups.collect();
    let description = "Kernel instructions of round trips through pipes, and of switches from one \
                       process to the next, by scheduling class.";
    bars("What round trips and switches cost", AXES, description, &groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_measured_have_a_bar_with_their_number() {
        let row = |name: &str, value: f64| Measurement::new(name.into(), value, "insns", None, "");
        let picture = of(&[row("pipe-pbs", 9684.0), row("pipe-fifo", 7619.0), row("other", 5.0)]);
        assert_eq!(picture.matches("class=\"bar\"").count(), 1);
        assert_eq!(picture.matches("class=\"other\"").count(), 1);
        for text in [">9,684<", ">SCHED_PBS, after the plan<", ">7,619<", ">SCHED_FIFO<"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        assert!(!picture.contains("SCHED_DEADLINE"), "{picture}");
    }
}
