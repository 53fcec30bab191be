// SPDX-License-Identifier: GPL-2.0
//! `pbsctl cosched interference measure`: hogs on this machine.

use std::io::{stderr, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pbs_hogs::{allowed_cpus, Hogs, Kind, Makespan, Setup, Sizes, Slowed, QUIET_LOAD, SYSFS};
use pbs_interference::{measured_to_toml, Entry, Level};
use pbs_text::{append_line, columns};
use serde::Serialize;

use crate::failure::Failure;
use crate::files;
use crate::output::{counted, write_err, Output};
use crate::quantities;

const MEASURE_HELP: &str = "\
memory streams through six times the last cache, cache follows pointers through an eighth of it,
compute multiplies in registers.

The rate of a hog counts only the time in which it had its CPU. Therefore other programs on this
machine do not count as its slow-down, although they use caches and memory too. Rounds in which
others had a CPU for more than a tenth of the time are DISTURBED. They are left out if at least
half of the rounds remain. FILE is only written if they do, and if other programs used at most
10 % of each CPU before; --disturbed writes it all the same.

SLOW-DOWN is the median of the rounds. Of 20 rounds, one is below 5 % and one is above 95 %.

Then each pair starts together, the first hog with three fifths of a round of work and the other
with a whole one. The second table has the measured time, the time that the slow-downs predict
(each hog advances at 1/s beside the other, and at full speed alone), and the time without
slow-downs.";

#[derive(Args, Debug)]
#[command(after_help = MEASURE_HELP)]
pub(super) struct MeasureOptions {
    /// Number of rounds for each pair
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    rounds: u32,

    /// Length of a round, in seconds or with a unit, such as 500ms; a round has five measurements
    /// of equal length
    #[arg(long, value_name = "TIME", default_value = "0.5", value_parser = quantities::interval)]
    seconds_per_round: u64,

    /// The two CPUs [default: the first two that this process may use]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    cpus: Vec<u32>,

    /// Hogs to measure: memory, cache, compute
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "memory,cache,compute",
        value_parser = kind
    )]
    hogs: Vec<Kind>,

    /// Memory of the cache hog, up to 1GiB [default: an eighth of the last cache]
    #[arg(long, value_name = "BYTES", value_parser = cache)]
    cache: Option<u64>,

    /// Write the slow-downs to FILE, for pbsctl sim --slowdowns
    #[arg(long, short, value_name = "FILE", value_parser = files::toml_file())]
    output: Option<PathBuf>,

    /// Write FILE although other programs use the CPUs
    #[arg(long, requires = "output")]
    disturbed: bool,
}

/// Interval in which the load of the CPUs is measured before.
const BEFORE: Duration = Duration::from_millis(500);

/// More than any cache has, but what a machine can spare.
const MOST_CACHE_BYTES: u64 = 1 << 30;

fn cache(text: &str) -> Result<u64, String> {
    match quantities::bytes(text)? {
        bytes if bytes <= MOST_CACHE_BYTES => Ok(bytes),
        _ => Err("the cache hog uses at most 1GiB; write a smaller size".into()),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let names = Kind::ALL.map(Kind::name).join(", ");
    Kind::from_name(text).ok_or_else(|| format!("there is no hog {text}; write one of {names}"))
}

/// Size of the last cache if the machine does not report it.
const USUAL_CACHE_BYTES: usize = 32 << 20;

#[derive(Serialize)]
struct Measured {
    cpus: [u32; 2],
    level: &'static str,
    rounds: u32,
    round_ns: u64,
    load_before: f64,
    is_disturbed: bool,
    memory_bytes: usize,
    cache_bytes: usize,
    pairs: Vec<Pair>,
    makespans: Vec<Together>,
}

#[derive(Serialize)]
struct Pair {
    victim: &'static str,
    aggressor: &'static str,
    slowdown: f64,
    low: f64,
    high: f64,
    slowdowns: Vec<f64>,
    disturbed: usize,
    alone_per_s: f64,
}

impl From<&Slowed> for Pair {
    fn from(slowed: &Slowed) -> Self {
        Self {
            victim: slowed.victim.name(),
            aggressor: slowed.aggressor.name(),
            slowdown: slowed.slowdown(),
            low: slowed.quantile(0.05),
            high: slowed.quantile(0.95),
            slowdowns: slowed.slowdowns.clone(),
            disturbed: slowed.disturbed,
            alone_per_s: slowed.alone_per_s,
        }
    }
}

/// Two hogs with so much to do each.
#[derive(Serialize)]
struct Together {
    one: &'static str,
    other: &'static str,
    predicted_ns: u64,
    unaware_ns: u64,
    measured_ns: Vec<u64>,
    ratio: f64,
    low: f64,
    high: f64,
    disturbed: usize,
}

impl From<&Makespan> for Together {
    fn from(makespan: &Makespan) -> Self {
        Self {
            one: makespan.one.name(),
            other: makespan.other.name(),
            predicted_ns: makespan.predicted_ns,
            unaware_ns: makespan.unaware_ns,
            measured_ns: makespan.measured_ns.clone(),
            ratio: makespan.ratio(0.5),
            low: makespan.ratio(0.05),
            high: makespan.ratio(0.95),
            disturbed: makespan.disturbed,
        }
    }
}

pub(super) fn measure(out: Output, options: &MeasureOptions) -> Result<ExitCode, Failure> {
    let cpus = cpus(&options.cpus)?;
    let sysfs = Path::new(SYSFS);
    let level = pbs_hogs::sharing(sysfs, &cpus).level(cpus[0], cpus[1]);
    let cache_bytes = pbs_hogs::last_cache_bytes(sysfs, cpus[0]);
    let mut sizes = Sizes::for_cache(cache_bytes.unwrap_or(USUAL_CACHE_BYTES));
    if let Some(bytes) = options.cache {
        sizes.cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let mut kinds = options.hogs.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let setup = Setup {
        kinds,
        cpus,
        sizes,
        rounds: options.rounds as usize,
        round: Duration::from_nanos(options.seconds_per_round),
    };
    let mut hogs = Hogs::new(&setup).map_err(|_| {
        // There are two hogs of each kind.
        let of_memory = if setup.kinds.contains(&Kind::Memory) { sizes.memory_bytes } else { 0 };
        let of_cache = if setup.kinds.contains(&Kind::Cache) { sizes.cache_bytes } else { 0 };
        let mib = of_memory.saturating_add(of_cache).saturating_mul(2) >> 20;
        Failure::Failed(format!(
            "there is not enough memory: the hogs take {mib} MiB; raise the limit (ulimit -v), or \
             measure fewer with --hogs"
        ))
    })?;
    let load_before = pbs_hogs::load(cpus, BEFORE).map_err(|error| {
        Failure::Failed(format!("the load of CPUs {} and {}: {error}", cpus[0], cpus[1]))
    })?;
    if options.output.is_some() && !options.disturbed && load_before > QUIET_LOAD {
        return Err(Failure::Failed(format!(
            "other programs use {} of CPUs {} and {}, and a measurement for a file needs {} at \
             most; end them, name other CPUs with --cpus, or write the file all the same with \
             --disturbed",
            percent(load_before),
            cpus[0],
            cpus[1],
            percent(QUIET_LOAD),
        )));
    }
    let progress = Progress::new();
    let failed =
        |error: std::io::Error| Failure::Failed(format!("the hogs could not run: {error}"));
    let slowed = pbs_hogs::measure(&setup, &mut hogs, &mut |done, total| {
        progress.tell("slow-downs", done, total);
        true
    });
    let slowed = slowed.map_err(failed)?;
    let makespans = pbs_hogs::makespans(&setup, &mut hogs, &slowed, &mut |done, total| {
        progress.tell("makespans", done, total);
        true
    });
    progress.end();
    let makespans = makespans.map_err(failed)?;
    let mut most_disturbed = slowed.iter().map(|of| of.disturbed).max().unwrap_or(0);
    for makespan in &makespans {
        most_disturbed = most_disturbed.max(makespan.disturbed);
    }
    let has_disturbed_rounds = most_disturbed > setup.rounds / 2;
    let measured = Measured {
        cpus,
        level: level.name(),
        rounds: options.rounds,
        round_ns: options.seconds_per_round,
        load_before,
        is_disturbed: has_disturbed_rounds || load_before > QUIET_LOAD,
        memory_bytes: sizes.memory_bytes,
        cache_bytes: sizes.cache_bytes,
        pairs: slowed.iter().map(Pair::from).collect(),
        makespans: makespans.iter().map(Together::from).collect(),
    };
    let file = options.output.as_ref();
    let written = file.map(|file| {
        if measured.is_disturbed && !options.disturbed {
            return Err(Failure::Failed(format!(
                "{} was not written: other programs disturbed more than half of the rounds; \
                 measure again when the machine has nothing else to do, or write the file all the \
                 same with --disturbed",
                file.display(),
            )));
        }
        files::write(file, &toml(&slowed, level))
    });
    // It took long to measure, so it is told even if it can't be written.
    out.print(&measured, || measured.text())?;
    match written {
        Some(Err(failure)) => Ok(out.tell_after(&failure)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The CPUs that were named, or the first two.
fn cpus(named: &[u32]) -> Result<[u32; 2], Failure> {
    let allowed = allowed_cpus().map_err(|error| Failure::Failed(error.to_string()))?;
    let list = |cpus: &[u32]| {
        let cpus: Vec<_> = cpus.iter().map(ToString::to_string).collect();
        cpus.join(",")
    };
    match (named, &allowed[..]) {
        ([], [one, other, ..]) => Ok([*one, *other]),
        ([], _) => Err(Failure::Failed(
            "this process may use one CPU only, and two hogs need two; allow \
                                 it another one with taskset"
                .into(),
        )),
        (&[one, other], _) if one != other => {
            match [one, other].iter().find(|cpu| !allowed.contains(cpu)) {
                None => Ok([one, other]),
                Some(cpu) => Err(Failure::Failed(format!(
                    "this process may not use CPU {cpu}; it may use {}",
                    list(&allowed)
                ))),
            }
        }
        _ => Err(Failure::Usage(format!(
            "--cpus {}: write two different CPUs, as {}",
            list(named),
            list(&allowed[..allowed.len().min(2)])
        ))),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Formats the measurements for a file.
fn toml(slowed: &[Slowed], level: Level) -> String {
    let entry = |slowed: &Slowed| Entry {
        victim: slowed.victim.name().to_string(),
        beside: vec![(level, slowed.aggressor.name().to_string())],
        slowdown: slowed.slowdown(),
        low: slowed.quantile(0.05),
        high: slowed.quantile(0.95),
        samples: slowed.slowdowns.len() as u64,
    };
    let entries: Vec<_> = slowed.iter().map(|of| (entry(of), of.disturbed)).collect();
    measured_to_toml(&entries)
}

impl Measured {
    fn text(&self) -> String {
        let titles = ["VICTIM", "BESIDE", "SLOW-DOWN", "5 %", "95 %", "ROUNDS", "DISTURBED"];
        let mut rows = vec![titles.map(String::from).to_vec()];
        for pair in &self.pairs {
            rows.push(vec![
                pair.victim.into(),
                pair.aggressor.into(),
                format!("{:.3}", pair.slowdown),
                format!("{:.3}", pair.low),
                format!("{:.3}", pair.high),
                pair.slowdowns.len().to_string(),
                pair.disturbed.to_string(),
            ]);
        }
        let mut text = columns(&rows, 2);
        text.push('\n');
        text.push_str(&self.makespans_text());
        let [one, other] = self.cpus;
        append_line!(
            text,
            "\nCPUs {one} and {other}, which share {}; {} of {} ms for each pair.",
            match self.level {
                "smt" => "a core",
                "l2" => "a cache of second level",
                "llc" => "the last cache",
                _ => "the memory only",
            },
            counted(self.rounds.into(), "round", "rounds"),
            self.round_ns / 1_000_000
        );
        append_line!(
            text,
            "Other programs used {} of them before; at most {} is quiet.",
            percent(self.load_before),
            percent(QUIET_LOAD),
        );
        if self.is_disturbed {
            text.push_str(
                "DISTURBED: other programs used these CPUs, and the slow-downs may be wrong.\n\
                 Measure again when the machine has nothing else to do.\n",
            );
        }
        text
    }
}

impl Measured {
    fn makespans_text(&self) -> String {
        let titles = [
            "TOGETHER",
            "UNAWARE ms",
            "PREDICTED ms",
            "MEASURED ms",
            "MEASURED/PREDICTED",
            "5 %",
            "95 %",
            "DISTURBED",
        ];
        let mut rows = vec![titles.map(String::from).to_vec()];
        let ms = |ns: f64| format!("{:.1}", ns / 1e6);
        for together in &self.makespans {
            let predicted_ns = together.predicted_ns as f64;
            rows.push(vec![
                format!("{} + {}", together.one, together.other),
                ms(together.unaware_ns as f64),
                ms(predicted_ns),
                ms(together.ratio * predicted_ns),
                format!("{:.3}", together.ratio),
                format!("{:.3}", together.low),
                format!("{:.3}", together.high),
                together.disturbed.to_string(),
            ]);
        }
        columns(&rows, 1)
    }
}

/// Tells on a terminal how far it is.
struct Progress {
    shows: bool,
}

impl Progress {
    fn new() -> Self {
        Self { shows: stderr().is_terminal() }
    }

    fn tell(&self, what: &str, done: usize, total: usize) {
        if self.shows {
            write_err(&format!("\r{what}: round {done} of {total} \x1b[K"));
        }
    }

    fn end(&self) {
        if self.shows {
            write_err("\r\x1b[K");
        }
    }
}
