// SPDX-License-Identifier: GPL-2.0
//! Random task nets, all valid.

use pbs_job::{Draft, DraftProcess, DraftTask, Kind};
use proptest::prelude::*;

/// Actions of a process, as a tree: each child is forked and joined.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Instructions of the tasks before, between and after its children; odd
    /// ones are communications.
    pub(crate) work: Vec<u64>,
    pub(crate) children: Vec<Tree>,
    /// Whether all children run at once, or one after the other.
    pub(crate) at_once: bool,
    /// Whether the forks come before its own fork end.
    pub(crate) fork_first: bool,
}

pub(crate) fn trees() -> impl Strategy<Value = Tree> {
    let work = || prop::collection::vec(1u64..1_000_000, 0..4);
    let leaf = work().prop_map(|work| Tree {
        work,
        children: Vec::new(),
        at_once: true,
        fork_first: false,
    });
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let children = prop::collection::vec(inner, 0..4);
        (work(), children, any::<bool>(), any::<bool>()).prop_map(
            |(work, children, at_once, fork_first)| Tree { work, children, at_once, fork_first },
        )
    })
}

/// The net of such a tree.
pub(crate) fn draft(tree: &Tree) -> Draft {
    let mut draft = Draft { name: "random".into(), deadline_ns: 1_000_000_000, ..Draft::default() };
    add_process(&mut draft, tree, true);
    // Messages go round.
    let is_message = |task: &&DraftTask| task.kind == Kind::Communication;
    let ids: Vec<_> = draft.tasks.iter().filter(is_message).map(|task| task.id).collect();
    if ids.len() > 1 {
        let mut to = ids.iter().cycle().skip(1);
        for task in draft.tasks.iter_mut().filter(|task| task.kind == Kind::Communication) {
            task.partner = to.next().copied();
        }
    }
    draft
}

/// Adds a process with its children; returns its first and its last task.
fn add_process(draft: &mut Draft, tree: &Tree, initial: bool) -> (u32, u32) {
    let process = draft.processes.len() as u32;
    draft.processes.push(DraftProcess {
        id: process,
        memory_bytes: 1_000 + u64::from(process),
        ..DraftProcess::default()
    });
    let mut chain = Vec::new();
    let mut work = tree.work.iter();
    let mut add_work = |draft: &mut Draft, chain: &mut Vec<u32>| {
        if let Some(&insns) = work.next() {
            let kind = if insns % 2 == 1 { Kind::Communication } else { Kind::Calculation };
            chain.push(add_task(draft, process, kind, insns));
        }
    };
    if initial {
        chain.push(add_task(draft, process, Kind::Start, 1));
    } else if !(tree.fork_first && tree.at_once && !tree.children.is_empty()) {
        chain.push(add_task(draft, process, Kind::ForkEnd, 1));
    }
    if tree.at_once {
        let mut last = Vec::new();
        for child in &tree.children {
            chain.push(add_task(draft, process, Kind::Fork, 2));
            last.push(add_child(draft, child, chain.last().copied()));
        }
        if !tree.children.is_empty() {
            chain.push(add_task(draft, process, Kind::ForkEnd, 1));
        }
        add_work(draft, &mut chain);
        for last in last {
            let join = add_task(draft, process, Kind::Join, 1);
            chain.push(join);
            task(draft, last).next.push(join);
            add_work(draft, &mut chain);
        }
    } else {
        for child in &tree.children {
            add_work(draft, &mut chain);
            chain.push(add_task(draft, process, Kind::Fork, 2));
            let last = add_child(draft, child, chain.last().copied());
            let join = add_task(draft, process, Kind::Join, 0);
            chain.push(join);
            task(draft, last).next.push(join);
        }
    }
    for _ in 0..tree.work.len() {
        add_work(draft, &mut chain);
    }
    if initial {
        chain.push(add_task(draft, process, Kind::End, 0));
    }
    for pair in chain.windows(2) {
        task(draft, pair[0]).next.push(pair[1]);
    }
    (chain[0], chain[chain.len() - 1])
}

fn add_child(draft: &mut Draft, tree: &Tree, fork: Option<u32>) -> u32 {
    let (first, last) = add_process(draft, tree, false);
    if let Some(fork) = fork {
        task(draft, fork).next.push(first);
    }
    last
}

fn add_task(draft: &mut Draft, process: u32, kind: Kind, insns: u64) -> u32 {
    let id = draft.tasks.len() as u32;
    draft.tasks.push(DraftTask { id, process, kind, insns, ..DraftTask::default() });
    id
}

/// The task with that number, which is its place.
fn task(draft: &mut Draft, id: u32) -> &mut DraftTask {
    &mut draft.tasks[id as usize]
}
