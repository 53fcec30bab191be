// SPDX-License-Identifier: GPL-2.0
//! Tries the claims of the documents, or shows what came of it.

use std::fs;
use std::io::{stderr, stdout, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use pbs_reproduce::{
    document, mutate_all, mutated_text, page, run, sample, summary, table, Claims, Mutated,
    Options, Reproduction, RunProgress,
};

/// Test the claims of the documents that the project comes from
///
/// Each claim is declared with its published value and the command that measures it. The commands
/// are run, and each verdict follows from their output. The table goes to standard output;
/// claims.json and claims.html are written to the directory of --out.
#[derive(Debug, Parser)]
#[command(name = "pbs-reproduce", after_help = HELP)]
struct Arguments {
    /// Test only these claims: ids, or the beginnings of ids
    claim: Vec<String>,

    /// File that declares the claims
    #[arg(long, value_name = "FILE", default_value = "studies/pbs-reproduce/claims.toml")]
    claims: PathBuf,

    /// Directory for claims.json, claims.html and the files of commands
    #[arg(long, value_name = "DIR", default_value = "build/reproduce")]
    out: PathBuf,

    /// Also test the claims that take long
    #[arg(long)]
    full: bool,

    /// Leave out the claims that measure time
    #[arg(long)]
    untimed: bool,

    /// Declare that this is available: vm, slurm
    #[arg(long, value_name = "WHAT")]
    has: Vec<String>,

    /// Number of parallel commands, of those that measure no time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,

    /// Longest time of a command, in seconds
    #[arg(long, value_name = "S", default_value_t = 1800)]
    timeout: u64,

    /// Show the claims and their commands, and test nothing
    #[arg(long)]
    list: bool,

    /// Print the document made from the declaration and that claims.json, and test nothing
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,

    /// Print that claims.json with the verdicts that the declaration now makes of its figures,
    /// and test nothing
    #[arg(long, value_name = "FILE")]
    judge: Option<PathBuf>,

    /// Mutate the figures of N positive verdicts of the claims.json of --onto, and show which turn
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "40", requires = "onto")]
    mutate: Option<usize>,

    /// Seed of the sample of --mutate
    #[arg(long, value_name = "S", default_value_t = 1, requires = "mutate")]
    seed: u64,

    /// Take the results of claims that are not tested from that claims.json
    #[arg(long, value_name = "FILE")]
    onto: Option<PathBuf>,

    /// Show the verdicts that differ from that claims.json
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  make reproduce                  Test the quick set, and write build/reproduce/claims.html
  make reproduce FULL=1           Test all claims
  make reproduce R=L3.2.2         Test the claims whose ids begin with this
  build/pbs-reproduce --list K    List the claims of a document, with their commands

Exit status: 0 if all selected claims were tested, whatever the verdicts; 1 if a command
failed; 2 on wrong usage; 4 if a verdict differs from --against; 5 if no mutation turns a
verdict.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match carry_out(&arguments) {
        Ok(status) => status,
        Err(why) => {
            // Nobody is left to be told if standard error is closed.
            let _ = writeln!(stderr(), "pbs-reproduce: {why}");
            ExitCode::from(2)
        }
    }
}

fn carry_out(arguments: &Arguments) -> Result<ExitCode, String> {
    let mut claims = Claims::read(&arguments.claims)?;
    let all: Vec<_> = claims.claims.iter().map(|claim| claim.id.clone()).collect();
    if let Some(results) = &arguments.document {
        print(&document(&claims, &read(results)?));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(results) = &arguments.judge {
        let judged = read(results)?.judged(&claims);
        let json = serde_json::to_string_pretty(&judged).map_err(|error| error.to_string())?;
        print(&(json + "\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let declared = claims.clone();
    claims.select(&arguments.claim)?;
    if let (Some(number), Some(results)) = (arguments.mutate, &arguments.onto) {
        let rows = mutate_all(&claims, &read(results)?);
        let rows = sample(rows, number, arguments.seed);
        print(&mutated_text(&rows));
        let are_turned = rows.iter().all(Mutated::is_turned);
        return Ok(if are_turned { ExitCode::SUCCESS } else { ExitCode::from(5) });
    }
    if arguments.list {
        for claim in &claims.claims {
            let how = claim.command.as_deref().or(claim.cannot.as_deref());
            let filter = claim.filter.as_ref();
            let filter = filter.map_or_else(String::new, |filter| format!(" | jq '{filter}'"));
            print(&format!(
                "{} ({}): {}\n    {}{filter}\n",
                claim.id,
                claim.section,
                claim.says,
                how.unwrap_or_default()
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let top = std::env::current_dir().map_err(|error| error.to_string())?;
    let options = Options {
        out: top.join(&arguments.out).join("out"),
        top,
        full: arguments.full,
        untimed: arguments.untimed,
        has: arguments.has.clone(),
        jobs: arguments.jobs,
        timeout: Duration::from_secs(arguments.timeout),
    };
    let see = |seen: &RunProgress<'_>| {
        let (done, all) = seen.done;
        let (ids, seconds) = (seen.ids.join(" "), seen.took.as_secs_f64());
        // Progress is for those who watch; without a reader the results still come.
        let _ = writeln!(stderr(), "[{done}/{all}] {ids} ({seconds:.1} s)");
    };
    let mut reproduction = run(&claims, &options, &see).map_err(|error| error.to_string())?;
    if let Some(before) = &arguments.onto {
        reproduction = reproduction.onto(read(before)?, &all);
    }
    let json = serde_json::to_string_pretty(&reproduction).map_err(|error| error.to_string())?;
    write(&arguments.out, "claims.json", &(json + "\n"))?;
    write(&arguments.out, "claims.html", &page(&reproduction, &options.out))?;
    print(&table(&reproduction));
    print(&format!(
        "{}\nThe page: {}\n",
        summary(&reproduction),
        arguments.out.join("claims.html").display()
    ));
    if reproduction.has_failed() {
        return Ok(ExitCode::from(1));
    }
    if let Some(before) = &arguments.against {
        let others = reproduction.others(&read(before)?, &declared);
        others.iter().for_each(|line| print(&format!("{line}\n")));
        if !others.is_empty() {
            return Ok(ExitCode::from(4));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) {
    // Who does not want to read the rest need not.
    let _ = stdout().write_all(text.as_bytes());
}

fn read(path: &Path) -> Result<Reproduction, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| Reproduction::from_json(&text));
    read.map_err(|why| format!("{}: {why}", path.display()))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
