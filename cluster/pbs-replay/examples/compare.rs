// SPDX-License-Identifier: GPL-2.0
//! FCFS, EASY and conservative backfilling over generated jobs of OCuLUS, or over a trace:
//!
//!     cargo run --release -p pbs-replay --example compare -- mean-day|busiest-day [OUT.svg]
//!     cargo run --release -p pbs-replay --example compare -- JOBS@PER_DAY [OUT.svg]
//!     cargo run --release -p pbs-replay --example compare -- TRACE.swf [OUT.svg]

use std::error::Error;
use std::fs::{self, File};
use std::io::BufReader;
use std::time::Instant;

use pbs_replay::workload::{oculus, Workload, CORES};
use pbs_replay::{check, replay, swf, Comparison, Conservative, Easy, Fcfs, Format, Policy};

/// Behind the arrays of the busiest day each early end would move all that wait.
const LOOKS: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or("mean-day".into());
    let (jobs, cores) = match (what.as_str(), what.split_once('@')) {
        ("mean-day", _) => (Workload::mean_day(1).generate(), CORES),
        ("busiest-day", _) => (Workload::busiest_day(1).generate(), CORES),
        (_, Some((jobs, per_day))) => (oculus(jobs.parse()?, per_day.parse()?, 1), CORES),
        (path, None) => {
            let trace = swf::read(BufReader::new(File::open(path)?))?;
            let cores = trace.header.cores().ok_or("the trace has no MaxProcs")?;
            (trace.jobs, cores)
        }
    };
    let mut comparison = Comparison::new(&what, &jobs, cores);
    let (mut fcfs, mut easy) = (Fcfs::new(cores), Easy::new(cores));
    let mut conservative = Conservative::new(cores);
    let mut bounded = Conservative::new(cores).with_most_looks(LOOKS);
    let mut all: Vec<(&str, &mut dyn Policy)> = vec![
        ("FCFS", &mut fcfs),
        ("EASY", &mut easy),
        ("conservative, bounded", &mut bounded),
    ];
    if what != "busiest-day" {
        all.push(("conservative", &mut conservative));
    }
    for (name, policy) in all {
        let begun = Instant::now();
        let outcomes = replay(&jobs, policy, |_| ())?;
        eprintln!("{name}: {:.2} s", begun.elapsed().as_secs_f64());
        check(&jobs, &outcomes, cores)?;
        comparison.push(name, &jobs, &outcomes);
    }
    print!("{}", comparison.text(Format::Text));
    if let Some(path) = args.next() {
        fs::write(path, comparison.picture())?;
    }
    Ok(())
}
