// SPDX-License-Identifier: GPL-2.0
//! Orders about which a command is asked before they are planned.

use std::time::Instant;

use pbs_history::RunId;
use pbs_launch::signals::sooner;

use crate::admission::{Allowance, Trial};
use crate::admitting::{AdmissionQuestion, Admitter, Beside, Decided, Decision};
use crate::allocation::Touched;
use crate::clock::monotonic_ns;
use crate::jobs::Jobs;
use crate::orders::intake::ALL_JOBS;
use crate::orders::Waiting;
use crate::settings::LEAD_NS;
use crate::{Error, Listener, News, SchedulerCommand};

impl Jobs {
    /// From now on a command is asked about orders before they are planned.
    pub(crate) fn admit_with(&mut self, command: SchedulerCommand) {
        self.admitter = Some(Admitter::new(command));
        self.backlog.check_again();
    }

    /// Whether a command is asked about orders.
    pub(crate) fn asks_first(&self) -> bool {
        self.admitter.as_ref().is_some_and(|admitter| !admitter.is_given_up())
    }

    /// Words for an order that waits for its decision.
    pub(super) fn asks_in_words(&self) -> Option<String> {
        let admitter = self.admitter.as_ref().filter(|_| self.asks_first())?;
        Some(format!("it waits for the answer of \"{}\"", admitter.line()))
    }

    /// Takes the answer of the command, if there is one by now.
    pub(crate) fn hear_decision(&mut self, listener: &mut dyn Listener) {
        let admitter = self.admitter.as_mut();
        if let Some(decided) = admitter.and_then(|admitter| admitter.look(&self.machine)) {
            self.decide(decided, listener);
        }
    }

    /// Whether an order is to be asked about now.
    pub(crate) fn has_question(&self) -> bool {
        self.admitter.as_ref().is_some_and(Admitter::has_question)
    }

    /// Time after which orders are to be checked, or the answer of a command is looked for, in
    /// milliseconds; negative: when something happens.
    pub(crate) fn admission_ms(&self) -> i32 {
        let has_orders = self.backlog.iter().next().is_some();
        if self.backlog.is_due() && (has_orders || self.admitter.is_some()) {
            return 0;
        }
        let look_ms = self.admitter.as_ref().map_or(-1, Admitter::look_ms);
        sooner(self.backlog.again_ms(Instant::now()), look_ms)
    }

    /// Asks about the next order. A turn makes one question, which has a plan: if there is nothing
    /// to ask after all, the next turn asks about the order after it.
    pub(crate) fn ask_decision(&mut self, listener: &mut dyn Listener) {
        while let Some(run) = self.admitter.as_mut().and_then(Admitter::next) {
            let waiting = self.backlog.find(run).filter(|waiting| waiting.decision.is_none());
            let Some(question) = waiting.map(|waiting| self.question(waiting)) else {
                continue;
            };
            let admitter = self.admitter.as_mut();
            if let Some(decided) = admitter.and_then(|admitter| admitter.ask(run, question)) {
                self.decide(decided, listener);
            }
            return;
        }
    }

    /// Forgets all decisions about orders that wait, and asks again: the node has changed, or they
    /// may be hours old when they are used.
    pub(crate) fn undecide_all(&mut self) {
        if let Some(admitter) = &mut self.admitter {
            admitter.forget_all();
        }
        self.backlog.undecide_all();
    }

    /// Forgets the decisions that allocations have made void. All others stay, and so does an open
    /// question about another order: allocations that come and go keep no answer from being used. A
    /// CPU that an answer chooses is checked again when the order is planned.
    pub(super) fn undecide_touched(&mut self, touched: &Touched) {
        let has_touched = |one: &Waiting| {
            let allocation = one.order.terms.allocation;
            let cpus = one.decision.iter().flat_map(Decision::cpus);
            allocation.is_some_and(|number| touched.numbers.contains(&number))
                || cpus.into_iter().any(|cpu| touched.cpus.contains(&cpu))
        };
        for run in self.backlog.undecide(has_touched) {
            self.is_undecided_again(run);
        }
    }

    /// The question about an order: beside what is left of all that is admitted.
    fn question(&self, waiting: &Waiting) -> Result<(Vec<u8>, Beside), String> {
        let now_ns = monotonic_ns();
        let words = |error: Error| format!("could not be asked: {error}");
        let candidate = waiting.candidate(now_ns);
        let uid = candidate.terms.as_ref().map(|terms| terms.owner.uid);
        let submission = &candidate.submission;
        let history = self.ledger.history(&submission.job, uid).map_err(words)?;
        let predicted = submission.predicted(&history, candidate.submitted_ns);
        let (mut job, _) = predicted.map_err(words)?;
        let allocation = candidate.terms.as_ref().and_then(|terms| terms.allocation);
        let bound = self.allocations.bound(&mut job, allocation, &self.machine, now_ns);
        bound.map_err(|why| format!("is not asked: {why}"))?;
        job.start_ns = job.start_ns.saturating_sub(now_ns);
        job.deadline_ns = job.deadline_ns.saturating_sub(now_ns);
        let mut trial = self.trial_within(now_ns, Allowance::new(self.max_work, 1));
        let plan = trial.plan(ALL_JOBS).map_err(words)?;
        let question = AdmissionQuestion {
            job: &job,
            machine: &self.machine,
            plan: plan.as_ref(),
            lead_ns: LEAD_NS,
        };
        Ok((question.text()?, Beside::new(&question)))
    }

    fn decide(&mut self, decided: Decided, listener: &mut dyn Listener) {
        let Decided { run, decision, unusable } = decided;
        let job = self.backlog.find(run).map(|waiting| waiting.order.submission.job.name.clone());
        if let (Some(why), Some(job)) = (unusable, job) {
            self.tell_built_in(job, why, listener);
        }
        self.backlog.decide(run, decision);
    }

    fn tell_built_in(&self, job: String, why: String, listener: &mut dyn Listener) {
        if let Some(admitter) = &self.admitter {
            let (command, is_given_up) = (admitter.line().into(), admitter.is_given_up());
            listener.news(News::AdmissionFailed { command, job, why, is_given_up });
        }
    }

    /// Notes the orders to be asked about, and how many others the built-in planner decides
    /// about, as too many wait.
    pub(super) fn ask_about(
        &mut self,
        undecided: Vec<RunId>,
        beyond: usize,
        listener: &mut dyn Listener,
    ) {
        if let Some(admitter) = &mut self.admitter {
            admitter.ask_about(undecided);
            if beyond > 0 {
                let command = admitter.line().into();
                listener.news(News::AdmissionBusy { command, jobs: beyond });
            }
        }
    }

    /// The order is another one, or is over: a question about it is void.
    pub(super) fn is_undecided_again(&mut self, run: RunId) {
        if let Some(admitter) = &mut self.admitter {
            admitter.forget(run);
        }
    }

    /// Plans the job of an order on the CPUs that the command has chosen. Where it has no place
    /// there, the built-in planner chooses.
    pub(super) fn take_decided(
        &self,
        trial: &mut Trial,
        one: &Waiting,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        let now_ns = trial.now_ns();
        if let Some(Decision::Admitted(choice)) = &one.decision {
            let mut chosen = one.candidate(now_ns);
            choice.confine(&mut chosen.submission.job);
            match self.take(trial, chosen) {
                Err(Error::Declined(declined)) => {
                    let why = format!("chose CPUs without time for it: {}", declined.why);
                    self.tell_built_in(declined.job, why, listener);
                }
                taken => return taken,
            }
        }
        self.take(trial, one.candidate(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::thread::sleep;
    use std::time::Duration;

    use pbs_history::Outcome;
    use pbs_plan::Plan;

    use super::*;
    use crate::admitting::ASKED;
    use crate::allocation::{Allocation, Allocations};
    use crate::orders::{Order, Terms};
    use crate::queue::RunSummary;
    use crate::{Alteration, Submission};

    /// Remembers the messages.
    #[derive(Default)]
    struct Hears(Vec<String>);

    impl Listener for Hears {
        fn news(&mut self, news: News) {
            self.0.push(news.to_string());
        }
    }

    const MACHINE: &str = "[[node]]\nname = \"lab\"\nmemory_bytes = 67_108_864\ncores = [
        { name = \"a\", cpu = 0, rate_insns_per_s = 250_000_000 },
        { name = \"b\", cpu = 1, rate_insns_per_s = 250_000_000 },
    ]\n";

    /// The jobs of a node, whose command is asked as the service asks it.
    struct Node {
        directory: PathBuf,
        jobs: Jobs,
        hears: Hears,
    }

    impl Node {
        fn new(name: &str, line: &str) -> Self {
            let directory = format!("pbs-node-asked-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            let mut hears = Hears::default();
            let mut jobs = crate::model::open_on(MACHINE, &directory, &mut hears);
            let line = line.replace("DIRECTORY", directory.to_str().unwrap());
            let command = SchedulerCommand::from_option(&format!("command {line}")).unwrap();
            // A busy machine is no fault of the command.
            jobs.admit_with(SchedulerCommand { timeout: Duration::from_secs(600), ..command });
            Self { directory, jobs, hears }
        }

        fn order(&mut self, names: &[&str]) -> Vec<RunId> {
            let orders = names.iter().map(|name| order(name)).collect();
            self.jobs.order(orders, &mut self.hears).unwrap()
        }

        /// Does the same as [`crate::Node::promote`] in a turn.
        fn turn(&mut self) {
            self.jobs.hear_decision(&mut self.hears);
            self.jobs.promote(&mut self.hears);
            if self.jobs.has_question() {
                self.jobs.ask_decision(&mut self.hears);
            }
        }

        /// Turns until no order waits, which no turn waits for itself.
        fn settle(&mut self) {
            while self.jobs.backlog.iter().next().is_some() {
                self.turn();
                sleep(Duration::from_millis(1));
            }
        }

        fn standing(&self, id: RunId) -> RunSummary {
            self.jobs.standing_of(id).unwrap()
        }

        fn plan(&mut self) -> Plan {
            self.jobs.next_plan.clone().unwrap()
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            // What stays there is in a directory for what may be lost.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }

    /// A job that takes a quarter of a second.
    fn order(name: &str) -> Order {
        let text = format!(
            "name = \"{name}\"\ndeadline_ns = 900_000_000_000\n[[process]]\nid = 2\n\
             memory_bytes = 4096\ncommand = [\"true\"]\ntasks = [62_500_000]\n"
        );
        let submission = Submission::from_text(text, name.into()).unwrap();
        Order::new(submission, Terms::new(pbs_launch::Owner::new(1000, 1000)))
    }

    /// A command that adds the job to the plan of the question, on the last CPU of the machine
    /// unless `change` has others.
    fn planner(change: &str) -> String {
        format!(
            "tee -a DIRECTORY/questions | python3 -c 'import json, sys
q = json.load(sys.stdin)
plan = q[\"plan\"] or dict(process=[], cpu=[])
cpu = max(core[\"cpu\"] for node in q[\"machine\"][\"node\"] for core in node[\"cores\"])
for process in q[\"job\"][\"process\"]:
    id = q[\"first_id\"] + process[\"id\"]
    tasks = [task[\"insns\"] for task in process[\"tasks\"] if task[\"insns\"]]
    plan[\"process\"].append(dict(id=id, tasks=tasks, memory_bytes=process[\"memory_bytes\"]))
    slots = [id for _ in tasks]
    old = [one for one in plan[\"cpu\"] if one[\"cpu\"] == cpu]
    if old:
        old[0][\"slots\"] += slots
    else:
        plan[\"cpu\"].append(dict(cpu=cpu, rate_insns_per_ms=250000, slots=slots))
{change}
print(json.dumps(plan))'"
        )
    }

    fn questions(directory: &Path) -> usize {
        std::fs::read_to_string(directory.join("questions")).unwrap().lines().count()
    }

    #[test]
    fn a_command_chooses_the_cpus_of_orders_one_after_the_other() {
        let mut node = Node::new("admits", &planner(""));
        let ids = node.order(&["a", "b"]);
        // The order waits; nothing has waited for the command.
        let waiting = node.standing(ids[0]);
        assert_eq!(waiting.state, "waiting");
        assert!(waiting.reason.unwrap().starts_with("it waits for the answer of \""));
        node.settle();
        assert_eq!(node.hears.0, [""; 0]);
        // The built-in planner would take one CPU for each.
        let plan = node.plan();
        let cpus: Vec<_> = (0..2).map(|index| plan.cpu_of(index).unwrap().cpu).collect();
        assert_eq!(cpus, [1, 1]);
        assert_eq!(questions(&node.directory), 2);
    }

    #[test]
    fn a_command_declines_an_order_with_its_reason() {
        let mut node = Node::new("declines", "echo '{\"declined\": \"it is   Sunday\"}'");
        let id = node.order(&["a"])[0];
        node.settle();
        let run = node.standing(id);
        assert_eq!((run.state, run.outcome), ("over", Some(Outcome::Declined)));
        assert_eq!(run.reason.as_deref(), Some("it is Sunday"));
    }

    #[test]
    fn the_built_in_planner_admits_where_there_is_no_usable_answer() {
        for (line, words) in [
            ("exit 3", "ended with exit status: 3"),
            ("kill -SEGV $$", "ended with signal: 11"),
            ("/nonexistent/program 2>/dev/null", "ended with exit status: 127"),
            ("true", "wrote neither a plan nor a reason"),
            ("yes", "wrote more than"),
            (&planner("plan[\"process\"][0][\"tasks\"] = [5]"), "with other tasks of process 2"),
            (&planner("plan[\"cpu\"][0][\"cpu\"] = 77"), "for CPU 77, which the machine does not"),
        ] {
            let mut node = Node::new("unusable", line);
            node.order(&["a"]);
            node.settle();
            assert_eq!(node.plan().processes.len(), 1, "{line}");
            let [told] = &node.hears.0[..] else { panic!("{line}: {:?}", node.hears.0) };
            assert!(told.contains(words) && told.contains("job a: "), "{told}");
            assert!(told.ends_with("; the built-in planner decides"), "{told}");
        }
        // A job that is admitted already stays on its CPU.
        let moved = "if q[\"plan\"]: plan[\"cpu\"][0][\"cpu\"] = 0";
        let mut node = Node::new("moves", &planner(moved));
        node.order(&["a", "b"]);
        node.settle();
        assert_eq!(node.plan().processes.len(), 2);
        assert!(node.hears.0[0].contains("it may only be on the CPUs"), "{:?}", node.hears.0);
    }

    #[test]
    fn a_silent_command_is_given_up_and_later_orders_are_planned_at_once() {
        let mut node = Node::new("silent", "sleep 1000");
        let command = SchedulerCommand::from_option("command sleep 1000").unwrap();
        node.jobs.admit_with(SchedulerCommand { timeout: Duration::from_millis(20), ..command });
        node.order(&["a", "b", "c", "d"]);
        node.settle();
        assert_eq!(node.plan().processes.len(), 4);
        assert_eq!(node.hears.0.len(), 3, "{:?}", node.hears.0);
        assert!(node.hears.0[0].contains("did not answer within 20 ms"), "{:?}", node.hears.0);
        assert!(node.hears.0[2].ends_with("decides, now and for a minute"), "{:?}", node.hears.0);
        // It is in the plan before anybody could be asked.
        let id = node.order(&["e"])[0];
        assert_eq!(node.standing(id).state, "planned");
        // Later the command is asked again, and its first failure is the last for a while.
        let rest_is_over = |node: &mut Node| node.jobs.admitter.as_mut().unwrap().end_rest();
        rest_is_over(&mut node);
        let id = node.order(&["f"])[0];
        assert_eq!(node.standing(id).state, "waiting");
        node.settle();
        assert_eq!(node.hears.0.len(), 4, "{:?}", node.hears.0);
        assert!(node.hears.0[3].ends_with("now and for a minute"), "{:?}", node.hears.0);
        let id = node.order(&["g"])[0];
        assert_eq!(node.standing(id).state, "planned");
    }

    /// A user who changes a job again and again while the command is asked about it keeps no other
    /// job waiting.
    #[test]
    fn a_changed_order_is_asked_about_after_all_others() {
        let mut node = Node::new("again", "sleep 1000");
        let ids = node.order(&["a", "b"]);
        node.turn();
        let asked = |node: &Node| node.jobs.admitter.as_ref().unwrap().asked();
        assert_eq!(asked(&node), Some(ids[0]));
        for priority in 1..5 {
            let other = Alteration { priority: Some(priority), ..Alteration::default() };
            node.jobs.alter(ids[0], other, &mut node.hears).unwrap();
            node.turn();
            assert_eq!(asked(&node), Some(ids[1]), "{priority}");
        }
        node.jobs.cancel(ids[1], "no".into(), &mut node.hears).unwrap();
        node.turn();
        assert_eq!(asked(&node), Some(ids[0]));
    }

    /// A turn does not make plans for all orders that the command is not asked about after all.
    #[test]
    fn a_turn_makes_one_question() {
        let mut node = Node::new("turn", "sleep 1000");
        let orders = (0..4).map(|number| {
            let Order { submission, terms, .. } = order(&format!("job-{number}"));
            Order::new(submission, Terms { allocation: Some(7), ..terms })
        });
        node.jobs.order(orders.collect(), &mut node.hears).unwrap();
        node.turn();
        assert_eq!(node.hears.0.len(), 1, "{:?}", node.hears.0);
        assert!(node.hears.0[0].contains("is not asked: its allocation 7 has ended"));
        assert!(node.jobs.backlog.is_due());
        node.settle();
    }

    /// Decisions that are old when they are used, or about other CPUs, are made again.
    #[test]
    fn decisions_from_before_a_drain_or_an_allocation_are_forgotten() {
        let mut node = Node::new("stale", &planner(""));
        let id = node.order(&["a"])[0];
        let decided = |node: &mut Node| loop {
            node.jobs.hear_decision(&mut node.hears);
            if node.jobs.backlog.find(id).unwrap().decision.is_some() {
                break;
            }
            if node.jobs.has_question() {
                node.jobs.ask_decision(&mut node.hears);
            } else if node.jobs.admitter.as_ref().unwrap().asked().is_none() {
                node.jobs.promote(&mut node.hears);
            }
            sleep(Duration::from_millis(1));
        };
        let is_decided = |node: &Node| node.jobs.backlog.find(id).unwrap().decision.is_some();
        decided(&mut node);
        node.jobs.drain(true);
        assert!(!is_decided(&node));
        node.jobs.drain(false);
        decided(&mut node);
        let allocation = |cpu| Allocation { cpus: [cpu].into(), until_unix_ns: None };
        // The CPU that was chosen is allocated, and released.
        node.jobs.allocate(Allocations([(7, allocation(1))].into()));
        assert!(!is_decided(&node));
        node.jobs.allocate(Allocations::default());
        decided(&mut node);
        // Another CPU is allocated.
        let allocations = Allocations([(8, allocation(0))].into());
        node.jobs.allocate(allocations.clone());
        assert!(is_decided(&node));
        // Nothing has changed.
        node.jobs.allocate(allocations);
        assert!(is_decided(&node));
        assert_eq!(node.hears.0, [""; 0]);
    }

    /// Allocations that come and go keep the command from no answer, but about jobs in them.
    #[test]
    fn an_allocation_leaves_the_question_about_another_job_open() {
        let mut node = Node::new("comes-and-goes", "sleep 1000");
        let ids = node.order(&["a", "b"]);
        let asked = |node: &Node| node.jobs.admitter.as_ref().unwrap().asked();
        node.turn();
        assert_eq!(asked(&node), Some(ids[0]));
        let allocation = Allocation { cpus: [1].into(), until_unix_ns: None };
        for allocations in [Allocations([(7, allocation)].into()), Allocations::default()] {
            node.jobs.allocate(allocations);
            assert_eq!(asked(&node), Some(ids[0]));
            node.turn();
        }
        assert_eq!(asked(&node), Some(ids[0]));
    }

    #[test]
    fn the_built_in_planner_decides_about_orders_beyond_those_that_wait() {
        let mut node = Node::new("busy", "sleep 1000");
        let names: Vec<String> = (0..ASKED + 3).map(|number| format!("job-{number}")).collect();
        node.order(&names.iter().map(String::as_str).collect::<Vec<_>>());
        node.turn();
        assert_eq!(node.jobs.backlog.iter().count(), ASKED);
        assert_eq!(node.plan().processes.len(), 3);
        assert!(node.hears.0[0].ends_with("decides about jobs: 3"), "{:?}", node.hears.0);
    }

    /// A question about an order that is over, or another one by now, is void.
    #[test]
    fn an_answer_about_an_order_that_changed_is_not_used() {
        let mut node = Node::new("changed", &planner(""));
        let ids = node.order(&["a", "b"]);
        node.turn();
        let other = Alteration { priority: Some(7), ..Alteration::default() };
        node.jobs.alter(ids[0], other, &mut node.hears).unwrap();
        node.jobs.cancel(ids[1], "no".into(), &mut node.hears).unwrap();
        node.settle();
        assert_eq!(node.plan().processes.len(), 1);
        assert_eq!(node.standing(ids[1]).outcome, Some(Outcome::Cancelled));
        assert_eq!(node.hears.0, [""; 0]);
    }
}
