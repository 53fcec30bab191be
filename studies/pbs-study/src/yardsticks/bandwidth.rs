// SPDX-License-Identifier: GPL-2.0
//! `SCHED_DEADLINE`: a constant bandwidth server for each job, with a hard budget.
//!
//! A job enters at its release with a budget, and the time to its deadline as relative
//! deadline and period. The server with the earliest deadline runs. One that has used its
//! budget up waits until its deadline, and gets its budget and a period more then. A job that
//! does not fit beside the bandwidth of the others is declined. The bandwidth of a job that
//! has ended stays taken until its zero-lag time, at which it would have used it up.

use super::{push, Demand, Stretch};

/// Bandwidth in the kernel's fixed point.
const UNIT_BITS: u32 = 20;

/// Admission, and the budgets that are declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Budget of each job.
    pub budgets_ns: Vec<u64>,
    /// Bandwidth of all servers together, in thousandths of the CPU.
    pub most_permille: u64,
}

/// Outcome of the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Whether each job was admitted.
    pub admitted: Vec<bool>,
    /// Stretches of time in which the jobs ran.
    pub stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    job: usize,
    bandwidth: u64,
    /// Time that the job still has to run.
    left_ns: u64,
    budget_ns: u64,
    deadline_ns: u64,
    /// Time at which the bandwidth of an ended job is free.
    free_ns: Option<u64>,
}

impl Server {
    fn is_throttled(&self) -> bool {
        self.budget_ns == 0
    }

    fn has_ended(&self) -> bool {
        self.free_ns.is_some()
    }
}

/// Bandwidth of a budget in each period.
fn bandwidth(budget_ns: u64, period_ns: u64) -> u64 {
    let ratio = (u128::from(budget_ns) << UNIT_BITS) / u128::from(period_ns.max(1));
    u64::try_from(ratio).unwrap_or(u64::MAX)
}

impl Servers {
    /// Runs all jobs that are admitted to their ends.
    pub fn run(&self, demands: &[Demand]) -> Served {
        let mut order: Vec<usize> = (0..demands.len()).collect();
        order.sort_by_key(|&job| demands[job].release_ns);
        let mut to_come = order.into_iter().peekable();
        let mut served = Served { admitted: vec![false; demands.len()], stretches: Vec::new() };
        let mut servers: Vec<Server> = Vec::new();
        let mut now_ns = 0;
        loop {
            servers.retain(|server| server.free_ns.is_none_or(|free_ns| free_ns > now_ns));
            while let Some(job) = to_come.next_if(|&job| demands[job].release_ns <= now_ns) {
                let server = self.admit(job, &demands[job], &servers);
                served.admitted[job] = server.is_some();
                servers.extend(server);
            }
            for server in &mut servers {
                if server.is_throttled() && !server.has_ended() && server.deadline_ns <= now_ns {
                    server.budget_ns = self.budgets_ns[server.job];
                    server.deadline_ns += period_ns(&demands[server.job]);
                }
            }
            let release_ns = to_come.peek().map(|&job| demands[job].release_ns);
            let throttled = servers.iter().filter(|it| it.is_throttled() && !it.has_ended());
            let next_ns = throttled.map(|server| server.deadline_ns).chain(release_ns).min();
            let running = servers.iter_mut().filter(|it| !it.is_throttled() && !it.has_ended());
            match (running.min_by_key(|server| server.deadline_ns), next_ns) {
                (Some(server), _) => {
                    let most_ns = server.left_ns.min(server.budget_ns);
                    let to_ns = (now_ns + most_ns).min(next_ns.unwrap_or(u64::MAX));
                    push(&mut served.stretches, server.job, now_ns, to_ns);
                    server.left_ns -= to_ns - now_ns;
                    server.budget_ns -= to_ns - now_ns;
                    now_ns = to_ns;
                    if server.left_ns == 0 {
                        let budget_ns = self.budgets_ns[server.job];
                        let period_ns = period_ns(&demands[server.job]);
                        server.free_ns = Some(zero_lag_ns(server, budget_ns, period_ns));
                    }
                }
                (None, Some(next_ns)) => now_ns = next_ns,
                (None, None) => return served,
            }
        }
    }

    /// Server of a job that is released now; `None`: it is declined.
    fn admit(&self, job: usize, demand: &Demand, others: &[Server]) -> Option<Server> {
        let (budget_ns, period_ns) = (self.budgets_ns[job], period_ns(demand));
        let bandwidth = bandwidth(budget_ns, period_ns);
        let taken: u64 = others.iter().map(|other| other.bandwidth).sum();
        let most = (self.most_permille << UNIT_BITS) / 1000;
        let fits = budget_ns <= period_ns && taken.saturating_add(bandwidth) <= most;
        fits.then_some(Server {
            job,
            bandwidth,
            left_ns: demand.length_ns.max(1),
            budget_ns: budget_ns.max(1),
            deadline_ns: demand.deadline_ns,
            free_ns: None,
        })
    }
}

fn period_ns(demand: &Demand) -> u64 {
    demand.deadline_ns.saturating_sub(demand.release_ns).max(1)
}

/// Time at which a server would have used up the budget that it has left.
fn zero_lag_ns(server: &Server, budget_ns: u64, period_ns: u64) -> u64 {
    let left_ns = u128::from(server.budget_ns) * u128::from(period_ns);
    let left_ns = u64::try_from(left_ns / u128::from(budget_ns.max(1))).unwrap_or(u64::MAX);
    server.deadline_ns.saturating_sub(left_ns)
}

#[cfg(test)]
mod tests {
    use super::super::{demand, ends, stretch};
    use super::*;

    fn servers(budgets_ns: &[u64]) -> Servers {
        Servers { budgets_ns: budgets_ns.to_vec(), most_permille: 1000 }
    }

    #[test]
    fn the_earlier_deadline_runs_first() {
        let served = servers(&[4, 2]).run(&[demand(0, 20, 4), demand(1, 6, 2)]);
        assert_eq!(served.admitted, [true, true]);
        assert_eq!(served.stretches, [stretch(0, 0, 1), stretch(1, 1, 3), stretch(0, 3, 6)]);
    }

    /// A job of 5 with a budget of 2 in 10: 2 at once, 2 at 10 and the last at 20.
    #[test]
    fn who_has_used_its_budget_up_waits_for_its_deadline() {
        let served = servers(&[2]).run(&[demand(0, 10, 5)]);
        assert_eq!(served.stretches, [stretch(0, 0, 2), stretch(0, 10, 12), stretch(0, 20, 21)]);
    }

    /// The budget keeps a rogue from its neighbour, which is not late for it.
    #[test]
    fn a_rogue_takes_nothing_from_others() {
        let served = servers(&[3, 5]).run(&[demand(0, 6, 30), demand(0, 10, 5)]);
        let ends_ns = ends(&served.stretches, 2);
        assert_eq!(served.admitted, [true, true]);
        assert!(ends_ns[1].unwrap() <= 10 && ends_ns[0].unwrap() > 50);
    }

    /// Three quarters and a half are more than one.
    #[test]
    fn what_does_not_fit_is_declined() {
        let demands = [demand(0, 8, 6), demand(0, 8, 4), demand(0, 8, 2)];
        assert_eq!(servers(&[6, 4, 2]).run(&demands).admitted, [true, false, true]);
        // More than the time to its deadline.
        assert_eq!(servers(&[9]).run(&[demand(0, 8, 1)]).admitted, [false]);
    }

    /// The first job ends at 2 with 4 of its budget of 6 left, which at three quarters of the
    /// CPU would last until 8: its zero-lag time is 8 - 4 * 8 / 6, rounded to 3.
    #[test]
    fn bandwidth_is_free_at_the_zero_lag_time() {
        let at = |release_ns| {
            let demands = [demand(0, 8, 2), demand(release_ns, release_ns + 8, 4)];
            servers(&[6, 4]).run(&demands).admitted[1]
        };
        assert!(!at(2));
        assert!(at(3));
    }
}
