// SPDX-License-Identifier: GPL-2.0
//! Whether tasks wait for each other.

use pbs_text::{Problem, Problems};

use super::{listed, Net};

/// Maximum number of circles that are searched for; each costs a pass over all tasks.
const MOST: usize = Problems::MOST;

/// One message for each circle.
pub(super) fn check(net: &Net<'_>, problems: &mut Problems) {
    let tasks = net.process_of.len();
    let before = |task: usize| {
        let led = net.previous[task].iter().chain(&net.far_previous[task]);
        led.chain(&net.received[task]).chain(&net.awaits[task])
    };
    let after = |task: usize| {
        let led = net.next[task].iter().chain(&net.far_next[task]);
        led.chain(&net.sent[task]).chain(&net.awaited[task])
    };
    let mut waits_for: Vec<_> = (0..tasks).map(|task| before(task).count()).collect();
    let mut done = vec![false; tasks];
    let mut ready: Vec<_> = (0..tasks).filter(|&task| waits_for[task] == 0).collect();
    let mut seen_from = 0;
    for _ in 0..MOST {
        while let Some(task) = ready.pop() {
            done[task] = true;
            for &next in after(task) {
                waits_for[next] -= 1;
                if waits_for[next] == 0 && !done[next] {
                    ready.push(next);
                }
            }
        }
        // Whoever is left waits for another that is left.
        while seen_from < tasks && done[seen_from] {
            seen_from += 1;
        }
        if seen_from == tasks {
            return;
        }
        let circle = find(seen_from, &done, before);
        let first = net.task(circle[0]);
        let mut places = circle.iter().zip(circle.iter().cycle().skip(1));
        let has_message = places.any(|(&from, &to)| net.sent[from] == Some(to));
        let messages =
            if has_message { ", and a message is received after it is sent" } else { "" };
        problems.push(Problem::at(
            first.line,
            format!(
                "tasks {} wait for each other in a circle and can never start; lead one of them \
                 elsewhere, and join a process only after its fork task{messages}",
                listed(circle.iter().map(|&task| net.task(task).id))
            ),
        ));
        // Let it go, so that others are found.
        for &task in &circle {
            done[task] = true;
        }
        for &task in &circle {
            for &next in after(task) {
                waits_for[next] -= 1;
                if waits_for[next] == 0 && !done[next] {
                    ready.push(next);
                }
            }
        }
    }
}

/// The circle that one comes to by going back from a task that is left, in the
/// order of execution, beginning with the first of the file.
fn find<'a, I>(from: usize, done: &[bool], before: impl Fn(usize) -> I) -> Vec<usize>
where
    I: Iterator<Item = &'a usize>,
{
    let mut place = vec![None; done.len()];
    let mut way = Vec::new();
    let mut at = from;
    let start = loop {
        if let Some(start) = place[at] {
            break start;
        }
        place[at] = Some(way.len());
        way.push(at);
        let waits_for = before(at).find(|&&task| !done[task]);
        // There always is one; were there none, this would be its own circle.
        at = waits_for.copied().unwrap_or(at);
    };
    let mut circle = way.split_off(start);
    circle.reverse();
    let least = (0..circle.len()).min_by_key(|&place| circle[place]);
    circle.rotate_left(least.unwrap_or(0));
    circle
}
