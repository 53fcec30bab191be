// SPDX-License-Identifier: GPL-2.0
//! Names of tasks in their boxes, and large deviations below them.

use super::*;

/// Room for the letter of a process above an upright name.
const TAG: f64 = SMALL + 2.0;

impl Gantt<'_> {
    /// The name of the task, since its colour tells the process: in one line,
    /// a word a line, or upright, whichever fits. One without a name has that
    /// of its process and a number.
    pub(super) fn label(
        &mut self,
        (x, y, width, height): (f64, f64, f64, f64),
        process: u32,
        task: Option<u32>,
    ) {
        let Some(number) = task else { return };
        let name = self.task(process, task).and_then(|task| task.name.clone());
        let name = name.unwrap_or_else(|| format!("{} {number}", self.name(process)));
        let number = number.to_string();
        let look = self.look(process);
        let style = format!("fill=\"{}\" pointer-events=\"none\"", look.ink);
        let middle = x + width / 2.0;
        let room = width - 6.0;
        let words: Vec<_> = name.split_whitespace().collect();
        let fits = |text: &str| text_width(text, SMALL) <= room;
        let lines = if fits(&name) {
            vec![name.as_str()]
        } else if words.len() <= 4
            && height >= 14.0 * words.len() as f64
            && words.iter().all(|word| fits(word))
        {
            words
        } else if self.lanes.is_split() {
            // Too low for upright letters; and the lane tells the process.
            return;
        } else {
            let stands = |text: &str| text_width(text, SMALL) <= height - 6.0;
            // Upright letters could not be read on a pattern.
            let stands = |text: &str| look.pattern.is_none() && stands(text);
            let columns =
                [vec![name.as_str()], words, vec![number.as_str()]].into_iter().find(|texts| {
                    width >= (SMALL + 1.0) * texts.len() as f64
                        && texts.iter().all(|text| stands(text))
                });
            let Some(columns) = columns else {
                self.picture.tag((x, y, width, height), &look);
                return;
            };
            // Below the letter of the process, if both have room.
            let is_tagged =
                columns.iter().all(|text| text_width(text, SMALL) <= height - TAG - 6.0);
            if is_tagged {
                self.picture.tag((x, y, width, height), &look);
            }
            let down = if is_tagged { TAG / 2.0 } else { 0.0 };
            let first = middle + SMALL * 0.36 - (columns.len().max(1) - 1) as f64 * 6.5;
            for (column, text) in columns.iter().enumerate() {
                let at = (first + column as f64 * 13.0, y + height / 2.0 + down);
                self.picture.upright(at, SMALL, &style, text);
            }
            return;
        };
        if !self.lanes.is_split() {
            self.picture.tag((x, y, width, height), &look);
        }
        let first = y + height / 2.0 + 4.0 - (lines.len() - 1) as f64 * 7.0;
        for (row, line) in lines.iter().enumerate() {
            let at = (middle, first + row as f64 * 14.0);
            self.picture.in_box(at, SMALL, &look, line);
        }
    }

    /// Writes large deviations below where the task ended, the largest first,
    /// as far as there is room. The answer is how many rows were used.
    pub(super) fn deviations(&mut self, cpu: &CpuTimeline, y: f64) -> usize {
        let origin = self.origin_ns.get(&cpu.cpu).copied().unwrap_or(0);
        let mut notable: Vec<_> = self
            .report
            .tasks
            .iter()
            .filter(|task| task.cpu == cpu.cpu && is_notable(task))
            .collect();
        notable.sort_by_key(|task| -task.deviation_permille.abs());
        let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); ROWS];
        let mut used = 0;
        for task in notable {
            let Some(ended_ns) = task.ended_ns else {
                continue;
            };
            let x = self.x_of_ns(ended_ns.saturating_sub(origin) as f64);
            let name = task.name.clone().unwrap_or_else(|| task.label());
            let preempted = match task.preemptions {
                0 => String::new(),
                1 => ", preempted".into(),
                often => format!(", preempted {often} times"),
            };
            let deviation = percent(task.deviation_permille, 0);
            let text = format!("{name}: {deviation}{preempted}");
            // Bold letters are wider.
            let width = text_width(&text, TEXT) * 1.1;
            // Beside the line that comes down from the task's end, where
            // neither is in the way of what stands there.
            let right_of = (x + 6.0, x - 4.0, x + 12.0 + width, Anchor::Start);
            let left_of = (x - 6.0, x - 12.0 - width, x + 4.0, Anchor::End);
            let place = (0..ROWS).flat_map(|row| [(row, right_of), (row, left_of)]).find(
                |&(row, (_, left, right, _))| {
                    let is_free = |&(l, r): &(f64, f64)| right < l || r < left;
                    let is_clear = |&(l, r): &(f64, f64)| x < l || r < x;
                    left >= 0.0
                        && right <= WIDTH
                        && taken[row].iter().all(is_free)
                        && taken[..row].iter().flatten().all(is_clear)
                },
            );
            let Some((row, (at, left, right, anchor))) = place else {
                continue;
            };
            taken[row].push((left, right));
            used = used.max(row + 1);
            let base = y + 4.0 + (row + 1) as f64 * ROW;
            self.picture.line(
                (x, y),
                (x, base + 2.0),
                "class=\"rule\" stroke=\"#000000\" stroke-width=\"1.8\"",
            );
            self.picture.text((at, base), TEXT, anchor, "font-weight=\"bold\"", &text);
        }
        used
    }
}
