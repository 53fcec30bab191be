// SPDX-License-Identifier: GPL-2.0
//! Quality of plans: those of small nets compared with the best ones, which are proven. Lines of
//! `{name, value, unit}`, for `make bench-planner`. Documentation/planner-benchmarks.rst describes
//! the measurements.

#[path = "../../../node/pbs-planner/tests/common/mod.rs"]
mod common;
#[allow(dead_code)] // only its clock is wanted
mod cpu_time;

use std::env;
use std::error::Error;

use common::checker::{check, Question};
use common::small::{optima, small, Small, TICK_NS};
use common::{question_and_answer, question_of};
use pbs_planner::{
    admit, earliest_deadline, reserve, Balancing, Declined, Options, Request, RunId, Store,
    Validation,
};

/// Deadlines, in percent of the best plan's end.
const DEADLINES_PERCENT: [u64; 3] = [100, 105, 120];
/// The nets whose time is told.
const LARGEST: usize = 14;
/// Id of the run, which is alone in its store.
const RUN: RunId = RunId(0);

/// Results of all nets.
#[derive(Default)]
struct Tally {
    nets: u64,
    /// Ends of plans by those of the best.
    ratios: Vec<f64>,
    /// Nets without a plan, although they had no deadline.
    unplanned: u64,
    /// Plans that break a rule, or end before the best one.
    invalid: u64,
    /// Per deadline.
    admitted: [u64; 3],
    /// Nets refused by validation, which is wrong here: there is a plan.
    refused: [u64; 3],
    /// Ratios of the reported deadline to the end of the plan that is found without one, for nets
    /// declined at the first deadline.
    told: Vec<f64>,
    told_and_declined: u64,
    /// Time to plan nets of [`LARGEST`] processes.
    largest_ms: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` says --bench.
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "nets") {
        let nets = words.get(1).ok_or("say how many nets")?.parse()?;
        (0..nets).for_each(print_net);
        return Ok(());
    }
    let mut tally = Tally::default();
    for (seed, best_ticks) in optima() {
        tally.ask(seed, best_ticks * TICK_NS);
    }
    tally.tell();
    Ok(())
}

/// Prints the input of a solver for a net, in a line of JSON.
fn print_net(seed: u64) {
    let Small { machine, job } = small(seed);
    let question = question_of(&machine, Balancing::Dynamic, &[(&job, 0, u64::MAX)]);
    let Question { tick, cores, memories, processes, tasks, .. } = question;
    let cores = cores.iter().map(|(memory, rate)| format!("[{memory}, {rate}]"));
    let cores: Vec<_> = cores.collect();
    let processes: Vec<_> = processes.iter().map(|process| process.1).collect();
    let tasks =
        (tasks.iter()).map(|(process, insns, before)| format!("[{process}, {insns}, {before:?}]"));
    let tasks: Vec<_> = tasks.collect();
    println!(
        r#"{{"seed": {seed}, "tick": {tick}, "cores": [{}], "memories": {memories:?}, "processes": {processes:?}, "tasks": [{}]}}"#,
        cores.join(", "),
        tasks.join(", ")
    );
}

impl Tally {
    fn ask(&mut self, seed: u64, best_ns: u64) {
        let Small { machine, job } = &small(seed);
        self.nets += 1;
        let empty = Store::new(machine.clone(), Balancing::Dynamic);
        let options = Options::default();
        let validation = Validation::default();
        let request = Request::new(RUN, job);

        let mut store = empty.clone();
        let begin = cpu_time::now();
        let planned = reserve(&mut store, &request, &options);
        let took = cpu_time::now().saturating_sub(begin);
        if job.processes.len() == LARGEST {
            self.largest_ms.push(took.as_secs_f64() * 1e3);
        }
        let end_ns = planned.map_or(u64::MAX, |planned| planned.end_ns);
        match end_ns {
            u64::MAX => {
                eprintln!("net {seed} gets no plan");
                self.unplanned += 1;
            }
            _ => self.ratios.push(end_ns as f64 / best_ns as f64),
        }
        self.judge(&store, &request, best_ns);

        for (place, percent) in DEADLINES_PERCENT.into_iter().enumerate() {
            let request = Request { deadline_ns: best_ns * percent / 100, ..request };
            let mut store = empty.clone();
            match admit(&mut store, &request, &validation, &options) {
                Ok(_) => self.admitted[place] += 1,
                Err(Declined::Validation(_)) => self.refused[place] += 1,
                Err(Declined::Reservation(_)) => {}
            }
            self.judge(&store, &request, best_ns);
            if place == 0 && store.run(RUN).is_none() && end_ns < u64::MAX {
                let told_ns = earliest_deadline(&mut store, &request, &validation, &options);
                let told_ns = told_ns.deadline_ns.unwrap_or(u64::MAX);
                self.told.push(told_ns as f64 / end_ns as f64);
                let request = Request { deadline_ns: told_ns, ..request };
                let declined = admit(&mut store, &request, &validation, &options).is_err();
                self.told_and_declined += u64::from(declined);
            }
        }
    }

    /// The checker looks at what is planned, which can't be better than the best.
    fn judge(&mut self, store: &Store, request: &Request<'_>, best_ns: u64) {
        let Some(run) = store.run(RUN) else {
            return;
        };
        let runs = [(RUN, request.job, 0, request.deadline_ns)];
        let (question, answer) = question_and_answer(store, &runs);
        let is_valid = check(&question, &answer).is_ok() && run.end_ns() >= best_ns;
        self.invalid += u64::from(!is_valid);
    }

    fn tell(mut self) {
        let percent = |part: u64| 100.0 * part as f64 / self.nets.max(1) as f64;
        let optimal = self.ratios.iter().filter(|&&ratio| ratio == 1.0).count();
        figure("quality/nets", self.nets as f64, "nets");
        figure("quality/invalid", self.invalid as f64, "plans");
        figure("quality/unplanned", self.unplanned as f64, "nets");
        figure("quality/optimal", percent(optimal as u64), "%");
        figure("quality/p90", at(&mut self.ratios, 90), "times the best");
        figure("quality/worst", at(&mut self.ratios, 100), "times the best");
        for (place, deadline) in DEADLINES_PERCENT.into_iter().enumerate() {
            let name = format!("quality/admitted-{deadline}");
            figure(&name, percent(self.admitted[place]), "%");
            let name = format!("quality/refused-{deadline}");
            figure(&name, percent(self.refused[place]), "%");
        }
        for (name, percent) in [("median", 50), ("p90", 90), ("worst", 100)] {
            let told = at(&mut self.told, percent);
            figure(&format!("quality/told-{name}"), told, "times its plan");
        }
        let declined = self.told_and_declined as f64;
        figure("quality/told-and-declined", declined, "nets");
        figure("quality/time-p90", at(&mut self.largest_ms, 90), "ms");
        figure("quality/time-worst", at(&mut self.largest_ms, 100), "ms");
    }
}

/// The least value that so many percent of all are not above; 0 of none.
fn at(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(place).copied().unwrap_or(0.0)
}

fn figure(name: &str, value: f64, unit: &str) {
    println!(r#"{{"name":"{name}","value":{value},"unit":"{unit}"}}"#);
}
