// SPDX-License-Identifier: GPL-2.0
//! Plans one large task net on an empty machine, and says how long that took and
//! how much memory: `large_net [TASKS [PROCESSES [NODES [CORES]]]]`.

#[path = "../tests/common/nets.rs"]
mod nets;

use std::time::Instant;

use pbs_planner::{reserve, Balancing, Options, Request, RunId, Store};

fn main() -> Result<(), String> {
    let mut numbers = [30_000, 800, 64, 16];
    for (number, argument) in numbers.iter_mut().zip(std::env::args().skip(1)) {
        let wrong = |error| format!("{argument} is not a number ({error}); write digits");
        *number = argument.parse().map_err(wrong)?;
    }
    let [tasks, processes, nodes, cores] = numbers;
    let machine = nets::large_machine(nodes, cores, 256 << 30);
    let random = &mut nets::Random::new(1);
    let job = nets::large_job(random, processes, tasks, 4 << 30, 3_000_000_000);
    let mut store = Store::new(machine, Balancing::Dynamic);
    let began = Instant::now();
    let planned = reserve(
        &mut store,
        &Request::new(RunId(0), &job),
        &Options::default(),
    );
    let took = began.elapsed();
    match planned {
        Ok(planned) => {
            for attempt in &planned.attempts {
                println!("{}: {:?}", attempt.strategy, attempt.end_ns);
            }
            println!("{} tasks by {}", job.tasks.len(), planned.strategy);
        }
        Err(refused) => println!("refused: {refused:?}"),
    }
    println!("took {} ms", took.as_millis());
    println!("peak {} KiB", peak_kib().unwrap_or(0));
    Ok(())
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
