// SPDX-License-Identifier: GPL-2.0
//! Improvement of the plan, from `[optimise]`.

use pbs_text::reader::{Reader, Table};

use super::values::{duration_s, plain, texts};
use super::MAX_S;
use crate::{Learner, Optimise, Promise};

const KEYS: &[&str] = &[
    "promises",
    "orders",
    "placements",
    "wait",
    "slowdown",
    "fairness",
    "deadline",
    "utilisation",
    "even_after",
    "run_times",
];

pub(super) fn optimise(reader: &mut Reader, top: &mut Table<'_, '_>) -> Option<Optimise> {
    let (line, value) = top.entries.remove("optimise")?;
    let mut table = reader.table(line, value, "[optimise]", KEYS)?;
    let mut optimise = Optimise::default();
    if let Some(promises) = promises(reader, &mut table) {
        optimise.promises = promises;
    }
    for (key, least, number) in [
        ("orders", 1, &mut optimise.orders),
        ("placements", 1, &mut optimise.placements),
        ("wait", 0, &mut optimise.wait),
        ("slowdown", 0, &mut optimise.slowdown),
        ("fairness", 0, &mut optimise.fairness),
        ("deadline", 0, &mut optimise.deadline),
        ("utilisation", 0, &mut optimise.utilisation),
    ] {
        let Some((line, value)) = table.entries.remove(key) else {
            continue;
        };
        match plain(value).filter(|number| (least..=Optimise::MOST).contains(number)) {
            Some(value) => *number = value,
            None => {
                let most = Optimise::MOST;
                let message =
                    format!("{key} must be a whole number from {least} to {most}, without quotes");
                reader.problem(line, message);
            }
        }
    }
    if let Some(even_after_s) = duration_s(reader, &mut table, "even_after", 0..=MAX_S) {
        optimise.even_after_s = even_after_s;
    }
    if let Some((line, value)) = table.entries.remove("run_times") {
        if let Some(name) = reader.string(line, "run_times", value) {
            let mut names = vec![Optimise::LIMIT];
            names.extend(Learner::ALL.map(Learner::name));
            if reader.one_of(line, "rule of run times", &name, &names).is_some() {
                optimise.run_times = Learner::of_name(&name);
            }
        }
    }
    Some(optimise)
}

fn promises(reader: &mut Reader, table: &mut Table<'_, '_>) -> Option<Vec<Promise>> {
    let list = table.entries.get("promises").map(|(line, _)| *line)?;
    let names = Promise::ALL.map(Promise::name);
    let mut promises = Vec::new();
    let listed = texts(reader, table, "promises", "start")?;
    if listed.is_empty() {
        let message = "promises names none of none, start and deadline; write one, or leave the \
                       key out";
        reader.problem(list, message);
    }
    for (line, name) in listed {
        let Some(place) = reader.one_of(line, "promise", &name, &names) else {
            continue;
        };
        let promise = Promise::ALL[place];
        if promises.contains(&promise) {
            reader.problem(line, format!("promise {name} stands here again; write it once"));
        }
        promises.push(promise);
    }
    // Otherwise a problem was reported.
    (!promises.is_empty()).then_some(promises)
}
