// SPDX-License-Identifier: GPL-2.0
//! Every valid net is taken for what it is; whatever is damaged is named.

mod common;

use std::collections::HashSet;

use common::{draft, trees};
use pbs_job::{job_from_toml, job_to_toml, Action, Draft, DraftTask, Kind};
use proptest::prelude::*;

/// The edges of a draft, by number.
fn edges(draft: &Draft) -> HashSet<(u32, u32)> {
    let tasks = draft.tasks.iter();
    tasks.flat_map(|task| task.next.iter().map(|&next| (task.id, next))).collect()
}

proptest! {
    #[test]
    fn valid_nets_pass(tree in trees()) {
        let draft = draft(&tree);
        let wanted = edges(&draft);
        let job = draft.check().unwrap();
        let id = |task: usize| job.tasks[task].id;
        let forward: HashSet<_> = (0..job.tasks.len())
            .flat_map(|task| job.successors(task).map(move |next| (task, next)))
            .map(|(task, next)| (id(task), id(next)))
            .collect();
        let backward: HashSet<_> = (0..job.tasks.len())
            .flat_map(|task| job.predecessors(task).map(move |before| (before, task)))
            .map(|(before, task)| (id(before), id(task)))
            .collect();
        prop_assert_eq!(&forward, &wanted);
        prop_assert_eq!(&backward, &wanted);
        for (index, process) in job.processes.iter().enumerate() {
            for (position, &task) in process.tasks.iter().enumerate() {
                prop_assert_eq!(job.tasks[task].process, index);
                prop_assert_eq!(job.tasks[task].position, position);
            }
            if let Some(fork) = process.forked_by {
                prop_assert_eq!(job.tasks[fork].action, Action::Fork { child: index });
                let join = process.joined_by.unwrap();
                prop_assert_eq!(job.tasks[join].action, Action::Join { child: Some(index) });
            } else {
                prop_assert_eq!(Some(index), job.initial_process());
            }
        }
        let text = job_to_toml(&job);
        prop_assert_eq!(job_to_toml(&job_from_toml(&text).unwrap()), text);
    }

    /// The damage is done to one task; some message names it or the one at the
    /// other end of the edge.
    #[test]
    fn damage_is_named(tree in trees(), kind in 0..9usize, at in any::<prop::sample::Index>(),
                       other in any::<prop::sample::Index>()) {
        let mut draft = draft(&tree);
        let (at, other) = (at.index(draft.tasks.len()), other.index(draft.tasks.len()));
        let Some(named) = damage(&mut draft, kind, at, other) else {
            return Ok(());
        };
        let Err(problems) = draft.check() else {
            panic!("taken for valid; damaged: {named:?}");
        };
        let names_one = problems.iter().any(|problem| {
            let words = problem.message.split(|c: char| !c.is_ascii_alphanumeric());
            let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
            named.iter().any(|id| numbers.contains(id))
        });
        prop_assert!(names_one, "{named:?} is not named in {problems:?}");
    }
}

/// Damages a task; returns the tasks of which one must be named, or `None`
/// where there is nothing to damage.
fn damage(draft: &mut Draft, kind: usize, at: usize, other: usize) -> Option<Vec<u32>> {
    let (id, other_id) = (draft.tasks[at].id, draft.tasks[other].id);
    let missing = draft.tasks.len() as u32;
    let process = draft.tasks[at].process;
    let task: &mut DraftTask = &mut draft.tasks[at];
    match kind {
        // An edge is lost.
        0 => {
            let lost = task.next.pop()?;
            Some(vec![id, lost])
        }
        // An edge leads elsewhere.
        1 => {
            let lost = task.next.pop().filter(|&lost| lost != other_id)?;
            task.next.push(other_id);
            Some(vec![id, lost, other_id])
        }
        // An edge leads nowhere.
        2 => {
            task.next.push(missing);
            Some(vec![missing])
        }
        // An edge too many.
        3 => {
            task.next.push(other_id);
            Some(vec![id, other_id])
        }
        // Two have the same number.
        4 if at != other => {
            task.id = other_id;
            Some(vec![other_id])
        }
        // It works, but takes no instructions.
        5 if matches!(task.kind, Kind::Calculation | Kind::Communication) => {
            task.insns = 0;
            Some(vec![id])
        }
        // It uses more memory than its process has.
        6 => {
            task.memory_bytes = Some(1 << 40);
            Some(vec![id])
        }
        // It does something else than its edges say.
        7 if matches!(task.kind, Kind::Start | Kind::End | Kind::Fork) => {
            task.kind = Kind::Calculation;
            task.insns = 1;
            Some(vec![id])
        }
        // It belongs to another process.
        8 if draft.processes.len() > 1 => {
            task.process = (process + 1) % draft.processes.len() as u32;
            let mut named = vec![id];
            named.extend(&task.next);
            let before = draft.tasks.iter().filter(|task| task.next.contains(&id));
            named.extend(before.map(|task| task.id));
            Some(named)
        }
        _ => None,
    }
}
