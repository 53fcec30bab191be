// SPDX-License-Identifier: GPL-2.0
//! The command that changes the configuration of a plan in force.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pbs_node::device::open;
use pbs_plan::{config_to_json, wire, Config};
use pbs_text::columns;
use serde_json::{json, Map, Value};

use crate::complete;
use crate::config_option::numbers_of;
use crate::failure::Failure;
use crate::output::Output;

const CONFIGURE_HELP: &str = "\
Examples:
  pbsctl node configure --cpu 1 idle_policy=pieces idle_piece_ns=2ms
  pbsctl node configure --cpu 1 thresholds=t1,t2_task

The plan continues: no process loses its progress, its account of lateness or its threads. The next
decision uses new thresholds. The present slot of a process keeps its t1 and its ceiling, and the
present window keeps its lengths. A present idle slot is divided anew if idle_policy changes. The
event \"configured\" marks the moment of the change.

The change lasts until another plan comes into force, which has its own configuration. dispatch
cannot be changed this way. A change that is refused changes nothing.";

#[derive(Args, Debug)]
#[command(after_help = CONFIGURE_HELP)]
pub(crate) struct ConfigureOptions {
    /// CPU whose plan continues with other values
    #[arg(long, value_name = "N")]
    cpu: u32,

    /// Values of the policy, by their names in [config], with or without a unit
    /// (nominal_tick_ns=4ms). For thresholds, write names separated by commas, none or all
    #[arg(required = true, value_name = "KEY=VALUE", add = complete::config_keys())]
    values: Vec<String>,
}

pub(crate) fn configure(
    out: Output,
    device: &Path,
    options: &ConfigureOptions,
) -> Result<ExitCode, Failure> {
    let cpu = options.cpu;
    let refused = |refused| Failure::refused(&format!("configuration of CPU {cpu}"), &refused);
    let device = open(device)?;
    let (bytes, generation) = device.get_plan_and_generation(cpu).map_err(refused)?;
    let plan = wire::decode(&bytes).map_err(|problem| {
        Failure::Failed(format!(
            "the kernel returned a plan that is not valid: {}; use the pbsctl of this kernel's \
             release",
            problem.message
        ))
    })?;
    let before = plan.config.ok_or_else(|| {
        Failure::Failed(
            "the kernel returned a plan without its configuration; use the pbsctl of this \
             kernel's release"
                .into(),
        )
    })?;
    let now = numbers_of("node configure", "", &options.values, before)?;
    let encoded = pbs_core::wire::encode::config(&now);
    device.configure(cpu, plan.plan_id, generation, &encoded).map_err(refused)?;
    let changed: Vec<_> = before.differences(&now).map(|(place, _)| place).collect();
    let answer = json!({
        "cpu": cpu,
        "plan_id": plan.plan_id,
        "before": of_places(&before, &changed),
        "now": of_places(&now, &changed),
    });
    out.print(&answer, || text(cpu, plan.plan_id, &answer))?;
    Ok(ExitCode::SUCCESS)
}

/// Some numbers of a configuration, by their names.
fn of_places(config: &Config, places: &[usize]) -> Map<String, Value> {
    let all = config_to_json(config);
    let names = places.iter().filter_map(|&place| Config::NAMES.get(place));
    names.map(|&name| (name.to_owned(), all[name].clone())).collect()
}

fn text(cpu: u32, plan_id: u64, answer: &Value) -> String {
    let Some(now) = answer["now"].as_object().filter(|now| !now.is_empty()) else {
        return format!("CPU {cpu}: plan {plan_id} has this configuration already\n");
    };
    let word = |value: &Value| match value {
        Value::String(word) => word.clone(),
        Value::Array(words) => {
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            if words.is_empty() {
                "none".into()
            } else {
                words.join(",")
            }
        }
        other => other.to_string(),
    };
    let mut rows = vec![["NUMBER", "BEFORE", "NOW"].map(String::from).to_vec()];
    rows.extend(
        now.iter()
            .map(|(name, value)| vec![name.clone(), word(&answer["before"][name]), word(value)]),
    );
    format!(
        "CPU {cpu}: plan {plan_id} continues with another configuration\n\n{}",
        columns(&rows, 3)
    )
}
