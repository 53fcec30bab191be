// SPDX-License-Identifier: GPL-2.0
//! The command that prints JSON Schemas of files, of questions to own planners, and of answers.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::Args;
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::output::Output;

/// Schemas of those names, with their texts.
macro_rules! schemas {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../schemas/", $name, ".schema.json")))),*]
    };
}

/// The schemas: of files, of planners, and of answers.
const SCHEMAS: [(&str, &str); 82] = schemas![
    "plan" "job" "graph" "machine" "question" "answer" "admission"
    "pbs.alter" "pbs.apps" "pbs.cancel" "pbs.check" "pbs.checkpoint" "pbs.cluster"
    "pbs.cluster-clock"
    "pbs.cluster-doctor" "pbs.cluster-limits" "pbs.cluster-lost" "pbs.cluster-nodes"
    "pbs.cluster-optimiser" "pbs.cluster-ran" "pbs.cluster-request" "pbs.cluster-requests"
    "pbs.cluster-stat" "pbs.cluster-systems" "pbs.cluster-watch" "pbs.cluster-whole"
    "pbs.cluster-why" "pbs.cluster-workload" "pbs.completions" "pbs.configure"
    "pbs.cosched-compare" "pbs.cosched-explain" "pbs.cosched-plan" "pbs.cosched-sim"
    "pbs.csi-clean" "pbs.csi-list" "pbs.drain" "pbs.drop" "pbs.events" "pbs.explain"
    "pbs.failure" "pbs.gen" "pbs.history" "pbs.hold" "pbs.import" "pbs.interference"
    "pbs.interference-predict" "pbs.interference-show" "pbs.job" "pbs.jobs" "pbs.load" "pbs.man"
    "pbs.metrics" "pbs.plan" "pbs.profile" "pbs.record" "pbs.release" "pbs.replay" "pbs.report"
    "pbs.resume" "pbs.rms" "pbs.rms-accounts" "pbs.rms-nodes" "pbs.rms-requests" "pbs.rms-users"
    "pbs.rms-views" "pbs.run" "pbs.schema" "pbs.set-resource" "pbs.show" "pbs.sim" "pbs.stat"
    "pbs.status" "pbs.step" "pbs.study" "pbs.submit" "pbs.top" "pbs.trace" "pbs.watch" "pbs.what-if"
    "pbs.what-if-policy" "pbs.withdraw"
];

const SCHEMA_HELP: &str = "\
Examples:
  pbsctl schema plan > plan.schema.json
  pbsctl schema pbs.jobs            Keys of pbsctl --json job list

plan, job, graph and machine are files in JSON. question and answer are what a planner reads and
writes: sim --scheduler, run --scheduler, pbsd --scheduler. admission is what a planner reads from
job explain --admission. pbs.NAME is an answer of pbsctl --json, such as pbs.jobs; the answer has
this name and its version in its key \"schema\": pbs.jobs/1.

The $id of a schema has a version at its end, which changes when files that were valid no longer
are. Some schemas refer to another one by its $id.";

#[derive(Args, Debug)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaOptions {
    /// plan, job, graph, machine, question, answer, admission, or the name of an answer, such as pbs.jobs
    #[arg(
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)),
    )]
    name: String,
}

pub(crate) fn schema(out: Output, options: &SchemaOptions) -> Result<ExitCode, Failure> {
    let found = SCHEMAS.iter().find(|(name, _)| *name == options.name);
    let text = found.map_or("null", |(_, text)| text);
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| Failure::Failed(format!("schema {}: {error}", options.name)))?;
    out.print(&json!({ "name": options.name, "json_schema": schema }), || text.into())?;
    Ok(ExitCode::SUCCESS)
}
