// SPDX-License-Identifier: GPL-2.0
//! `pbsctl plan generate`: generated plans.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pbs_gen::{generate, make_runnable, Parameters, Scenario, SlotOrder, Span};
use pbs_plan::{leppert, to_toml};
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::given::{Conditional, Given};
use crate::output::Output;
use crate::plans;
use crate::quantities::{bytes_span, insns_span, permille, permille_span};

const HELP: &str = "\
Examples:
  pbsctl plan generate > plan.toml       A plan like those of Leppert 2021
  pbsctl plan generate one-over --seed 7 -o plan.toml
                                         ... in which one process is late
  pbsctl plan generate --task-sigma-permille 200
                                         ... with wider deviations
  pbsctl plan generate --processes 3 --tasks 3..8 --task-insns 200_000..5_000_000 \\
      --idle-insns 100_000..1_000_000    A small plan
  pbsctl plan generate --edge-permille 500 --message-permille 500 --message-sigma-permille 300
                                         Half of the dependencies are messages, often late
  pbsctl plan generate rogue-task --runnable > plan.toml && pbsctl run plan.toml
                                         Run on a node instead of a simulation
  pbsctl plan generate --format leppert  For Leppert's simulation
  pbsctl plan generate --list            Explain the scenarios

The plan has a real length for each task and each idle slot. The kernel does not receive them:
simulations use them, and with --runnable the programs. The same options give the same plan on
every machine, and the first line of the TOML has the options.

A message arrives when the task that sends it ends. Its planned arrival is a time from the begin
of the plan, on a CPU that retires an instruction in a nanosecond.

MIN..MAX includes both ends; one number stands for both. Numbers may have units: 20M or 1.5G
instructions, 64MiB, 20 %.";

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct GenOptions {
    /// Scenario: the deviations of the run
    #[arg(value_parser = scenarios(), default_value = Scenario::Normal.name())]
    scenario: Scenario,

    /// Explain the scenarios; generate nothing
    #[arg(long)]
    list: bool,

    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = Parameters::default().processes)]
    processes: u64,

    /// Number of tasks of each process
    #[arg(long, value_name = "MIN..MAX", default_value_t = Parameters::default().tasks)]
    tasks: Span,

    /// Planned length of each task, in instructions
    #[arg(long, value_name = "MIN..MAX", value_parser = insns_span, default_value_t = Parameters::default().task_insns)]
    task_insns: Span,

    /// Idle share of the plan, in thousandths
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().idle_permille)]
    idle_permille: u64,

    /// Length of each idle slot, in instructions
    #[arg(long, value_name = "MIN..MAX", value_parser = insns_span, default_value_t = Parameters::default().idle_insns)]
    idle_insns: Span,

    /// Plan buffer of each process, in thousandths of its length
    #[arg(long, value_name = "MIN..MAX", value_parser = permille_span, default_value_t = Parameters::default().buffer_permille)]
    buffer_permille: Span,

    /// Order in which the processes get their slots
    #[arg(long, value_parser = orders(), default_value = SlotOrder::Alternate.name())]
    order: SlotOrder,

    /// TASK_SIGMA: standard deviation of real lengths, in thousandths of the planned ones
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().task_sigma_permille)]
    task_sigma_permille: u64,

    /// Deviation of late or early tasks in the scenario, in thousandths of their planned length
    /// [default: see --list]
    #[arg(long, value_name = "N", value_parser = permille)]
    deviation_permille: Option<u64>,

    /// Share of tasks that wait for a task of another process with an earlier slot, in thousandths
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().edge_permille)]
    edge_permille: u64,

    /// Share of these dependencies that carry a message with a planned arrival, in thousandths
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().message_permille)]
    message_permille: u64,

    /// Standard deviation of the real lengths of tasks that send a message, in thousandths of the
    /// planned ones
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().message_sigma_permille)]
    message_sigma_permille: u64,

    /// Planned peak memory of each process, in bytes; 0 for none
    #[arg(long, value_name = "MIN..MAX", value_parser = bytes_span, default_value_t = Parameters::default().memory_bytes)]
    memory_bytes: Span,

    /// Standard deviation of real memory peaks, in thousandths of the planned ones
    #[arg(long, value_name = "N", value_parser = permille, default_value_t = Parameters::default().memory_sigma_permille)]
    memory_sigma_permille: u64,

    /// Seed of the plan
    #[arg(long, value_name = "N", default_value_t = Parameters::default().seed)]
    seed: u64,

    /// CPU that the plan is for
    #[arg(long, value_name = "N", default_value_t = Parameters::default().cpu)]
    cpu: u32,

    /// Number of the plan
    #[arg(long, value_name = "N", default_value_t = Parameters::default().plan_id)]
    plan_id: u64,

    /// Give each process a program that retires the real lengths of its tasks, for pbsctl run
    #[arg(long)]
    runnable: bool,

    /// Format of the plan
    #[arg(long, value_enum, default_value_t = Format::Toml)]
    format: Format,

    /// Write to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// The format of all other commands
    Toml,
    /// One line in the grammar of Leppert 2021, 4.3.1
    Leppert,
}

fn scenarios() -> impl TypedValueParser<Value = Scenario> {
    let values = Scenario::ALL.map(|it| PossibleValue::new(it.name()).help(it.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Scenario>())
}

fn orders() -> impl TypedValueParser<Value = SlotOrder> {
    let values = SlotOrder::ALL.map(|it| PossibleValue::new(it.name()).help(it.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<SlotOrder>())
}

pub(crate) fn gen(out: Output, options: &Given<GenOptions>) -> Result<ExitCode, Failure> {
    if options.list {
        list(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    options.refuse_unread(&options.conditional())?;
    if let Some(file) = &options.output {
        let (ending, written) = match options.format {
            Format::Toml => ("toml", "as TOML"),
            Format::Leppert => ("log", "in Leppert's grammar"),
        };
        let named = files::named_for(file.clone(), ending, written);
        named.map_err(|words| Failure::Usage(format!("--output: {words}")))?;
    }
    let parameters = options.parameters();
    let mut plan = generate(&parameters).map_err(|error| {
        let option = error.parameter.replace('_', "-");
        Failure::Usage(format!("--{option} {}", error.message))
    })?;
    if options.runnable {
        if matches!(options.format, Format::Leppert) {
            return Err(Failure::Usage(
                "--runnable adds programs, which Leppert's grammar can't express; leave out \
                 --format"
                    .into(),
            ));
        }
        make_runnable(&mut plan);
    }
    let (form, text) = match options.format {
        Format::Toml => {
            let toml = to_toml(&plan);
            let runnable = if options.runnable { " --runnable" } else { "" };
            let first = command_line(&parameters);
            ("toml", format!("# {first}{runnable}\n{toml}"))
        }
        Format::Leppert => {
            let line = leppert::export(&plan)
                .map_err(|problem| Failure::Usage(format!("--format: {}", problem.message)))?;
            ("leppert", line)
        }
    };
    let facts = json!({ "parameters": parameters, "runnable": options.runnable });
    plans::hand_over(out, options.output.as_deref(), (form, text), &plan, facts)?;
    Ok(ExitCode::SUCCESS)
}

impl GenOptions {
    /// Options without effect where a share or an amount is 0, which most of them are by default.
    /// The command line in a plan has all of them, therefore their defaults are never refused.
    fn conditional(&self) -> [Conditional; 4] {
        let usual = Parameters::default();
        let (has_edges, has_messages) = (self.edge_permille > 0, self.message_permille > 0);
        [
            (
                "idle_insns",
                self.idle_permille > 0 || self.idle_insns == usual.idle_insns,
                "--idle-permille of more than 0",
            ),
            (
                "message_permille",
                has_edges || self.message_permille == usual.message_permille,
                "--edge-permille of more than 0",
            ),
            (
                "message_sigma_permille",
                has_messages || self.message_sigma_permille == usual.message_sigma_permille,
                "--message-permille of more than 0",
            ),
            (
                "memory_sigma_permille",
                self.memory_bytes != Span::new(0, 0)
                    || self.memory_sigma_permille == usual.memory_sigma_permille,
                "--memory-bytes of more than 0",
            ),
        ]
        .map(|(field, is_read, needs)| Conditional { field, is_read, needs })
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            scenario: self.scenario,
            processes: self.processes,
            tasks: self.tasks,
            task_insns: self.task_insns,
            idle_permille: self.idle_permille,
            idle_insns: self.idle_insns,
            buffer_permille: self.buffer_permille,
            order: self.order,
            task_sigma_permille: self.task_sigma_permille,
            deviation_permille: self.deviation_permille,
            edge_permille: self.edge_permille,
            message_permille: self.message_permille,
            message_sigma_permille: self.message_sigma_permille,
            memory_bytes: self.memory_bytes,
            memory_sigma_permille: self.memory_sigma_permille,
            seed: self.seed,
            cpu: self.cpu,
            plan_id: self.plan_id,
        }
    }
}

/// The command that makes this plan, with what would be the default as well:
/// defaults change.
fn command_line(parameters: &Parameters) -> String {
    let Parameters {
        scenario,
        processes,
        tasks,
        task_insns,
        idle_permille,
        idle_insns,
        buffer_permille,
        order,
        task_sigma_permille,
        deviation_permille,
        edge_permille,
        message_permille,
        message_sigma_permille,
        memory_bytes,
        memory_sigma_permille,
        seed,
        cpu,
        plan_id,
    } = parameters;
    let deviation = deviation_permille
        .or(scenario.default_deviation_permille())
        .map(|permille| format!(" --deviation-permille {permille}"));
    format!(
        "pbsctl plan generate {scenario} --processes {processes} --tasks {tasks} --task-insns \
         {task_insns} --idle-permille {idle_permille} --idle-insns {idle_insns} --buffer-permille \
         {buffer_permille} --order {} --task-sigma-permille {task_sigma_permille}{} \
         --edge-permille {edge_permille} --message-permille {message_permille} \
         --message-sigma-permille {message_sigma_permille} --memory-bytes {memory_bytes} \
         --memory-sigma-permille {memory_sigma_permille} --seed {seed} --cpu {cpu} --plan-id \
         {plan_id}",
        order.name(),
        deviation.unwrap_or_default()
    )
}

fn list(out: Output) -> Result<(), Failure> {
    let scenarios = Scenario::ALL.map(|scenario| {
        json!({
            "name": scenario.name(),
            "summary": scenario.summary(),
            "shows": scenario.shows(),
            "default_deviation_permille": scenario.default_deviation_permille(),
        })
    });
    out.print(&json!({ "scenarios": scenarios }), || Scenario::ALL.map(explain).join("\n"))
}

fn explain(scenario: Scenario) -> String {
    let mut out = format!("{scenario}: {}", scenario.summary());
    let mut column = usize::MAX;
    for word in scenario.shows().split(' ') {
        if column.saturating_add(1 + word.len()) > 80 {
            out.push_str("\n   ");
            column = 3;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + word.len();
    }
    if let Some(permille) = scenario.default_deviation_permille() {
        out.push_str(&format!("\n    --deviation-permille {permille}"));
    }
    out.push('\n');
    out
}
