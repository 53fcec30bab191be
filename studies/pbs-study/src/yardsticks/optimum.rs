// SPDX-License-Identifier: GPL-2.0
//! The most deadlines that a scheduler can keep which knows all real lengths beforehand.
//!
//! Jobs that are to be kept run by earliest deadline, and the others behind them, therefore
//! the question is the largest set of jobs of which earliest deadline first keeps all. With
//! different releases this is `1 | pmtn, r_j | sum U_j`. The search is exact: it gives jobs
//! up one by one, each time one of a busy time in which a deadline is missed, since at least
//! one job of those must go; and it looks for sets with as few jobs given up as possible.

use super::{edf, ends, Demand};

/// Indices of the jobs that are kept, a set with the greatest number.
pub fn kept(demands: &[Demand]) -> Vec<usize> {
    (0..=demands.len())
        .find_map(|most| {
            let mut search = Search { demands, state: vec![State::Open; demands.len()] };
            search.gives_up(most).then(|| search.kept())
        })
        .unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Another branch of the search gives this job up.
    Stays,
    GivenUp,
}

struct Search<'a> {
    demands: &'a [Demand],
    state: Vec<State>,
}

impl Search<'_> {
    fn kept(&self) -> Vec<usize> {
        (0..self.state.len()).filter(|&job| self.state[job] != State::GivenUp).collect()
    }

    /// Gives up to `most` more jobs up such that all others keep their deadlines.
    fn gives_up(&mut self, most: usize) -> bool {
        let Some(overload) = self.overload() else {
            return true;
        };
        let mut open: Vec<usize> =
            overload.jobs.into_iter().filter(|&job| self.state[job] == State::Open).collect();
        // The longest first: it makes most room.
        open.sort_by_key(|&job| std::cmp::Reverse(self.demands[job].length_ns));
        let mut room_ns = 0;
        let at_least = open.iter().position(|&job| {
            room_ns += self.demands[job].length_ns;
            room_ns >= overload.over_ns
        });
        if at_least.is_none_or(|place| place >= most) {
            return false;
        }
        for &job in &open {
            self.state[job] = State::GivenUp;
            if self.gives_up(most - 1) {
                return true;
            }
            self.state[job] = State::Stays;
        }
        for job in open {
            self.state[job] = State::Open;
        }
        false
    }

    /// The first deadline that is missed, with the jobs that can't all be kept; `None`: all
    /// are.
    fn overload(&self) -> Option<Overload> {
        let jobs = self.kept();
        let demands: Vec<Demand> = jobs.iter().map(|&job| self.demands[job]).collect();
        let ends_ns = ends(&edf::run(&demands), demands.len());
        let missed = (0..demands.len())
            .filter(|&job| ends_ns[job].is_some_and(|end_ns| end_ns > demands[job].deadline_ns));
        let deadline_ns = missed.map(|job| demands[job].deadline_ns).min()?;
        // Later deadlines take nothing from these.
        let mut urgent = demands.clone();
        urgent.retain(|demand| demand.deadline_ns <= deadline_ns);
        // The busy time that lasts beyond the deadline: all of it is released there, too.
        let (mut from_ns, mut until_ns) = (0, None);
        for stretch in edf::run(&urgent) {
            if until_ns != Some(stretch.from_ns) {
                from_ns = stretch.from_ns;
            }
            until_ns = Some(stretch.to_ns);
            if stretch.to_ns > deadline_ns {
                break;
            }
        }
        let is_part = |&job: &usize| {
            demands[job].deadline_ns <= deadline_ns && demands[job].release_ns >= from_ns
        };
        let part: Vec<usize> = (0..demands.len()).filter(is_part).collect();
        let needs_ns: u64 = part.iter().map(|&job| demands[job].length_ns).sum();
        let over_ns = needs_ns.saturating_sub(deadline_ns - from_ns).max(1);
        Some(Overload { jobs: part.into_iter().map(|job| jobs[job]).collect(), over_ns })
    }
}

/// Jobs that need more time together than there is for them.
struct Overload {
    jobs: Vec<usize>,
    over_ns: u64,
}

#[cfg(test)]
mod tests {
    use pbs_random::Random;

    use super::super::demand;
    use super::*;

    #[test]
    fn all_are_kept_if_that_can_be() {
        assert_eq!(kept(&[demand(0, 10, 4), demand(2, 5, 3), demand(0, 20, 8)]), [0, 1, 2]);
        assert_eq!(kept(&[]), [0; 0]);
    }

    /// Moore and Hodgson's example of one job too many: without the longest both others fit.
    #[test]
    fn the_longest_of_those_that_are_too_many_goes() {
        assert_eq!(kept(&[demand(0, 6, 5), demand(0, 7, 3), demand(0, 8, 4)]), [1, 2]);
    }

    /// The long job is released first and would be kept alone. Given up it makes room for two.
    #[test]
    fn two_that_come_later_are_worth_more_than_one_that_runs() {
        let demands = [demand(0, 10, 10), demand(2, 6, 4), demand(6, 10, 4)];
        assert_eq!(kept(&demands), [1, 2]);
    }

    #[test]
    fn a_job_that_has_no_chance_goes() {
        assert_eq!(kept(&[demand(0, 3, 4), demand(0, 9, 2)]), [1]);
    }

    /// All subsets of small random instances.
    #[test]
    fn no_subset_is_larger() {
        let mut random = Random::new(7);
        for _ in 0..400 {
            let count = 1 + random.index(8);
            let demands: Vec<Demand> = (0..count)
                .map(|_| {
                    let (release_ns, length_ns) = (random.below(20), 1 + random.below(9));
                    demand(release_ns, release_ns + length_ns + random.below(12), length_ns)
                })
                .collect();
            let subset = |bits: u32| -> Vec<Demand> {
                let chosen = (0..count).filter(|&job| bits >> job & 1 == 1);
                chosen.map(|job| demands[job]).collect()
            };
            let subsets = (0..1u32 << count).filter(|&bits| edf::keeps_all(&subset(bits)));
            let most = subsets.map(u32::count_ones).max().unwrap_or(0) as usize;
            let kept = kept(&demands);
            let chosen: Vec<Demand> = kept.iter().map(|&job| demands[job]).collect();
            assert_eq!(kept.len(), most, "{demands:?}");
            assert!(edf::keeps_all(&chosen), "{demands:?}");
        }
    }
}
