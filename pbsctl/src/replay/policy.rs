// SPDX-License-Identifier: GPL-2.0
//! A recording from its beginning under another policy of idle slots.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use pbs_core::{Config, IdlePolicy};
use pbs_record::{Beginning, Recording};
use pbs_report::EventView;
use pbs_sim::{simulate, NoAnswer, Options, ProcessOutcome, Simulation};
use pbs_text::{columns, grouped, ms};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{counted, Output};

/// The recorded run, its simulation, and that under the other policy.
#[derive(Serialize)]
struct View<'a> {
    file: &'a Path,
    recorded_policy: &'static str,
    policy: &'static str,
    measured_tasks: u64,
    planned_tasks: u64,
    later_plans: u64,
    differing_cpus: Vec<u32>,
    lost: u64,
    kept: Both<u64>,
    ended_ns: Both<u64>,
    counts: Vec<Count>,
    processes: Vec<ProcessView>,
}

/// A result of both simulations.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Both<T> {
    recorded_policy: T,
    policy: T,
}

/// Numbers of events of one kind and reason.
#[derive(Serialize)]
struct Count {
    kind: String,
    reason: Option<String>,
    #[serde(flatten)]
    numbers: Both<u64>,
}

#[derive(Serialize)]
struct ProcessView {
    cpu: u32,
    process: u32,
    deadline_ns: u64,
    recorded_end_ns: Option<u64>,
    end_ns: Both<Option<u64>>,
    kept: Both<bool>,
}

/// The policy of a name.
pub(super) fn parse(name: &str) -> Result<IdlePolicy, String> {
    IdlePolicy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
        let names = IdlePolicy::ALL.map(IdlePolicy::name).join(", ");
        format!("there is no such policy; write one of {names}")
    })
}

pub(super) fn compare(
    out: Output,
    file: &Path,
    recording: &Recording,
    policy: IdlePolicy,
) -> Result<ExitCode, Failure> {
    let failed = |words: String| Failure::Failed(format!("{}: {words}", file.display()));
    let beginnings = recording.beginnings().map_err(failed)?;
    let recorded = beginnings.first().and_then(|beginning| beginning.plan.config);
    let Some(recorded) = recorded else {
        return Err(failed(
            "there is no beginning of a plan; start the recording before the plan is loaded".into(),
        ));
    };
    let mut view = View {
        file,
        recorded_policy: recorded.idle_policy().name(),
        policy: policy.name(),
        measured_tasks: beginnings.iter().map(|beginning| beginning.measured_tasks).sum(),
        planned_tasks: beginnings.iter().map(|beginning| beginning.planned_tasks).sum(),
        later_plans: beginnings.iter().map(|beginning| beginning.later_plans).sum(),
        differing_cpus: beginnings.iter().flat_map(|b| b.differing_cpus.clone()).collect(),
        lost: recording.lost(),
        kept: Both::default(),
        ended_ns: Both::default(),
        counts: Vec::new(),
        processes: Vec::new(),
    };
    let mut counts = BTreeMap::new();
    for beginning in &beginnings {
        let simulations = Both {
            recorded_policy: simulation(beginning, None).map_err(failed)?,
            policy: simulation(beginning, Some(policy)).map_err(failed)?,
        };
        view.add(beginning, &simulations, &mut counts);
    }
    view.counts = counts.into_values().collect();
    out.named("what-if-policy").print(&view, || view.text())?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates a beginning under another policy, or under the recorded one.
fn simulation(beginning: &Beginning, policy: Option<IdlePolicy>) -> Result<Simulation, String> {
    let mut plan = beginning.plan.clone();
    let mut changes = beginning.changes.clone();
    if let (Some(policy), Some(config)) = (policy, &mut plan.config) {
        config.idle_policy = policy as u64;
        // The other policy stays for the whole run.
        let place = Config::NAMES.iter().position(|name| *name == "idle_policy");
        for change in &mut changes {
            change.values.retain(|(changed, _)| Some(*changed) != place);
        }
        changes.retain(|change| !change.values.is_empty());
    }
    let options = Options { changes, ..Options::default() };
    simulate(&plan, &options, &mut NoAnswer).map_err(|error| error.to_string())
}

impl View<'_> {
    /// Adds the results of a beginning.
    fn add(
        &mut self,
        beginning: &Beginning,
        simulations: &Both<Simulation>,
        counts: &mut BTreeMap<(u16, u16), Count>,
    ) {
        let Both { recorded_policy, policy } = simulations;
        for (simulation, is_other) in [(recorded_policy, false), (policy, true)] {
            for event in &simulation.events {
                let count = counts.entry((event.kind, event.reason)).or_insert_with(|| {
                    let EventView { kind, reason, .. } = EventView::from(event);
                    Count { kind, reason, numbers: Both::default() }
                });
                let Both { recorded_policy, policy } = &mut count.numbers;
                *(if is_other { policy } else { recorded_policy }) += 1;
            }
        }
        self.ended_ns.recorded_policy =
            self.ended_ns.recorded_policy.max(recorded_policy.ended_ns());
        self.ended_ns.policy = self.ended_ns.policy.max(policy.ended_ns());
        let others: BTreeMap<u32, &ProcessOutcome> =
            policy.processes.iter().map(|process| (process.id, process)).collect();
        for process in &recorded_policy.processes {
            let Some(other) = others.get(&process.id) else { continue };
            self.kept.recorded_policy += u64::from(process.kept);
            self.kept.policy += u64::from(other.kept);
            self.processes.push(ProcessView {
                cpu: process.cpu,
                process: process.id,
                deadline_ns: process.deadline_ns,
                recorded_end_ns: beginning.ends_ns.get(&process.id).copied(),
                end_ns: Both { recorded_policy: process.ended_ns, policy: other.ended_ns },
                kept: Both { recorded_policy: process.kept, policy: other.kept },
            });
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}: from the beginning under {}, and under {} as recorded; both simulated\n",
            self.file.display(),
            self.policy,
            self.recorded_policy
        );
        text +=
            &format!("{} with the recorded length", counted(self.measured_tasks, "task", "tasks"));
        text += &match self.planned_tasks {
            0 => "\n".into(),
            tasks => format!(
                "; {} whose end is not recorded, with the planned length\n",
                counted(tasks, "task", "tasks")
            ),
        };
        if self.later_plans > 0 {
            text += &format!(
                "{} took over in the recording, and in neither simulation\n",
                counted(self.later_plans, "plan", "plans")
            );
        }
        for cpu in &self.differing_cpus {
            text += &format!(
                "CPU {cpu}: the recording differs from its own replay; lengths are used up to there\n"
            );
        }
        if self.lost > 0 {
            text += &format!(
                "The recorder missed {}; lengths are used up to the first of them\n",
                counted(self.lost, "input", "inputs")
            );
        }
        text += &format!(
            "Deadlines kept: {} under {}, {} under {}, of {}\n\n",
            grouped(self.kept.recorded_policy),
            self.recorded_policy,
            grouped(self.kept.policy),
            self.policy,
            grouped(self.processes.len() as u64)
        );
        text += &self.table_of_events();
        text += "\n";
        text += &self.table_of_processes();
        text
    }

    /// Counts of events under both policies.
    fn table_of_events(&self) -> String {
        let (recorded, other) = (self.recorded_policy.to_uppercase(), self.policy.to_uppercase());
        let mut rows = vec![vec!["EVENT".into(), "REASON".into(), recorded, other, "MORE".into()]];
        rows.extend(self.counts.iter().map(|count| {
            let Both { recorded_policy, policy } = count.numbers;
            let more = i128::from(policy) - i128::from(recorded_policy);
            let reason = count.reason.clone().unwrap_or_else(|| "-".into());
            let more = if more == 0 { "-".into() } else { format!("{more:+}") };
            vec![count.kind.clone(), reason, grouped(recorded_policy), grouped(policy), more]
        }));
        columns(&rows, 2)
    }

    /// Ends of processes in milliseconds, and the policies under which their deadlines are kept.
    fn table_of_processes(&self) -> String {
        let end = |ns: Option<u64>| ns.map_or_else(|| "-".into(), ms);
        let (recorded, other) = (self.recorded_policy.to_uppercase(), self.policy.to_uppercase());
        let titles = ["CPU", "PROCESS", "DEADLINE", "RECORDED"].map(String::from);
        let mut rows = vec![titles
            .into_iter()
            .chain([recorded, other, "LATER".into(), "KEPT".into()])
            .collect()];
        rows.extend(self.processes.iter().map(|process| {
            let ProcessView { end_ns, kept, .. } = process;
            let later = match (end_ns.recorded_policy, end_ns.policy) {
                (Some(one), Some(other)) if one > other => format!("-{}", ms(one - other)),
                (Some(one), Some(other)) if one < other => format!("+{}", ms(other - one)),
                _ => "-".into(),
            };
            let by = match (kept.recorded_policy, kept.policy) {
                (true, true) => "both",
                (true, false) => self.recorded_policy,
                (false, true) => self.policy,
                (false, false) => "neither",
            };
            vec![
                process.cpu.to_string(),
                process.process.to_string(),
                ms(process.deadline_ns),
                end(process.recorded_end_ns),
                end(end_ns.recorded_policy),
                end(end_ns.policy),
                later,
                by.into(),
            ]
        }));
        columns(&rows, 0) + "Times in ms since the plan began\n"
    }
}
