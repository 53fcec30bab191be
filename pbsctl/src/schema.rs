// SPDX-License-Identifier: GPL-2.0
//! The command that prints JSON Schemas of files, and of the questions to own planners.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::Args;
use serde_json::{json, Value};

use crate::failure::Failure;
use crate::output::Output;

/// The schemas by name.
const SCHEMAS: [(&str, &str); 6] = [
    ("plan", include_str!("../../schemas/plan.schema.json")),
    ("job", include_str!("../../schemas/job.schema.json")),
    ("graph", include_str!("../../schemas/graph.schema.json")),
    ("machine", include_str!("../../schemas/machine.schema.json")),
    ("question", include_str!("../../schemas/question.schema.json")),
    ("answer", include_str!("../../schemas/answer.schema.json")),
];

const SCHEMA_HELP: &str = "\
Examples:
  pbsctl schema plan > plan.schema.json

plan, job, graph and machine are files in JSON. question and answer are what a planner reads and
writes: sim --scheduler, run --scheduler, pbsd --scheduler. The $id of a schema has a version at
its end, which changes when files that were valid no longer are. question and answer refer to the
schema of plans by its $id.";

#[derive(Args, Debug)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaOptions {
    /// The kind of file
    #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
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
