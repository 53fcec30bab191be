// SPDX-License-Identifier: GPL-2.0
//! Messages: who receives one is planned after its arrival, on a link if the nodes
//! have one.

mod common;

use common::nets::{random_job, Random};
use common::{checker, question_and_answer, random_machine, whole_ns};
use pbs_job::{job_from_toml, machine_from_toml, Action, Job, Link, Machine};
use pbs_planner::plan_building::{class_plans, Entry, ProcessIds, Settings};
use pbs_planner::{
    critical_path, reserve, Balancing, Because, Lack, MessageReservation, Options, Request, Run,
    RunId, Store,
};

/// Two processes, of which `right` receives what `left` sends, and in between has
/// time; and one more that sends to `right`.
fn job(first_bytes: &str, second_bytes: &str) -> Job {
    let text = format!(
        "name = \"talk\"\ndeadline_ns = 1_000_000\n\
         [[process]]\nid = 1\nname = \"left\"\nmemory_bytes = 10\ntasks = [100, \
         {{ id = 50, action = \"communication\", insns = 10, to = 60{first_bytes} }}, 1000]\n\
         [[process]]\nid = 2\nname = \"right\"\nmemory_bytes = 10\ntasks = [5, \
         {{ id = 60, action = \"communication\", insns = 20, to = 50 }}, 30]\n\
         [[process]]\nid = 3\nname = \"third\"\nmemory_bytes = 10\ntasks = [110, \
         {{ id = 70, action = \"communication\", insns = 10, to = 60{second_bytes} }}]\n"
    );
    job_from_toml(&text).expect("a valid job")
}

/// Nodes of one core with memory for so many of the processes, which retires an
/// instruction in a nanosecond.
fn machine(nodes: &[(&str, u64)], links: &str) -> Machine {
    let mut text = String::new();
    for (name, memory_bytes) in nodes {
        text += &format!(
            "[[node]]\nname = \"{name}\"\nmemory_bytes = {memory_bytes}\n\
             rate_insns_per_s = 1_000_000_000\ncores = [\"c\"]\n"
        );
    }
    machine_from_toml(&(text + links)).expect("a valid machine")
}

const LINK: &str = "[[link]]\nnodes = [\"b\", \"a\"]\nlatency_ns = 40\n\
                    bandwidth_bytes_per_s = 500_000_000\n";
const OTHER_LINK: &str = "[[link]]\nnodes = [\"b\", \"c\"]\nlatency_ns = 7\n\
                          bandwidth_bytes_per_s = 1_000_000_000\n";

fn planned(machine: &Machine, job: &Job) -> (Store, Run) {
    let mut store = Store::new(machine.clone(), Balancing::Dynamic);
    let request = Request::new(RunId(1), job);
    reserve(&mut store, &request, &Options::default()).expect("there is time");
    let run = store.run(RunId(1)).cloned().expect("it is planned");
    (store, run)
}

fn task(job: &Job, id: u32) -> usize {
    let task = job.tasks.iter().position(|task| task.id == id);
    task.expect("it is there")
}

/// The end of who sends, and the start of who receives.
fn times_ns(job: &Job, run: &Run, from: u32, to: u32) -> (u64, u64) {
    let [from, to] = [from, to].map(|id| task(job, id));
    (run.tasks[from].end_ns, run.tasks[to].start_ns)
}

#[test]
fn nobody_waits_for_a_message_without_a_size() {
    let job = job("", "");
    let (_, run) = planned(&machine(&[("a", 100), ("b", 100), ("c", 100)], LINK), &job);
    let (sent_ns, received_ns) = times_ns(&job, &run, 50, 60);
    assert!(received_ns < sent_ns);
    assert_eq!(run.messages, []);
}

/// Three nodes with a core each run one process each. `left` and `right` have a link, and `right`
/// and `third` have another.
#[test]
fn who_receives_begins_after_the_arrival() {
    let job = job(", bytes = 100", ", bytes = 8");
    let nodes = [("a", 100), ("b", 100), ("c", 100)];
    let mut over_links = 0;
    for links in ["", LINK, OTHER_LINK, &(LINK.to_string() + OTHER_LINK)] {
        let machine = machine(&nodes, links);
        let (mut store, run) = planned(&machine, &job);
        let receiver = task(&job, 60);
        let mut arrivals_ns = Vec::new();
        for from in [50, 70].map(|id| task(&job, id)) {
            let node = |task: usize| store.sites()[run.tasks[task].core].node;
            let sent_ns = run.tasks[from].end_ns;
            let message = run.messages.iter().find(|message| message.from == from);
            let link = machine.link(node(from), node(receiver));
            assert_eq!(message.map(|message| message.link), link);
            let Some((message, link)) = message.zip(link) else {
                arrivals_ns.push(sent_ns);
                continue;
            };
            let bytes = job.tasks[from].message_bytes.expect("it has a size");
            let end_ns = sent_ns + machine.transfer_ns(link, bytes);
            let expected = MessageReservation {
                from,
                to: receiver,
                link,
                start_ns: sent_ns,
                end_ns,
                arrival_ns: end_ns + machine.latency_ns(link),
            };
            assert_eq!(*message, expected);
            assert_eq!(store.link(link).value_at(sent_ns), 0);
            over_links += 1;
            arrivals_ns.push(message.arrival_ns);
        }
        let ready_ns = arrivals_ns.into_iter().max().unwrap_or(0);
        assert_eq!(run.tasks[receiver].start_ns, ready_ns, "{links}");
        assert!(store.remove(RunId(1)));
        assert_eq!(store, Store::new(machine, Balancing::Dynamic));
    }
    assert!(over_links > 1, "{over_links}");
}

/// A link carries one message at a time; and a deadline is kept with the way.
#[test]
fn messages_on_a_link_follow_each_other() {
    let mut job = job(", bytes = 100", ", bytes = 50");
    // So it has a node of its own.
    job.processes[1].memory_bytes = 50;
    let link = "[[link]]\nnodes = [\"a\", \"b\"]\nlatency_ns = 40\n\
                bandwidth_bytes_per_s = 500_000_000\n";
    let mut machine = machine(&[("a", 20), ("b", 50)], link);
    let core = machine.nodes[0].cores[0].clone();
    machine.nodes[0].cores.push(core);
    let (_, run) = planned(&machine, &job);
    let [first, second] = &run.messages[..] else {
        panic!("two messages: {:?}", run.messages);
    };
    // Sent at about the same time, by 110 and 120 instructions.
    assert_eq!((first.start_ns, first.end_ns), (110, 310));
    assert_eq!((second.start_ns, second.end_ns), (310, 410));
    assert_eq!(run.tasks[task(&job, 60)].start_ns, 450);
    let end_ns = run.tasks[task(&job, 60)].end_ns + 30;
    // What sets the end of the other node is the message of `third`, and so on.
    let mut shorter = run.clone();
    shorter.tasks.retain(|task| task.end_ns <= end_ns);
    let path = critical_path(&job, &shorter);
    let message = path.iter().find(|critical| critical.task == task(&job, 60));
    assert_eq!(message.map(|critical| critical.because), Some(Because::Message));

    let late = |deadline_ns| {
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let request = Request { deadline_ns, ..Request::new(RunId(1), &job) };
        let refused = reserve(&mut store, &request, &Options::default()).err();
        let untouched = store == Store::new(machine.clone(), Balancing::Dynamic);
        (refused.map(|refused| refused.best.lack), untouched)
    };
    // The other process of the node ends later.
    assert!(end_ns < 1110);
    assert_eq!(late(1110), (None, false));
    let (lack, untouched) = late(end_ns - 1);
    assert!(untouched && matches!(lack, Some(Lack::Time { .. })), "{lack:?}");
}

/// On one node the order is in the plan, and no link is used.
#[test]
fn a_message_within_a_node_is_an_edge() {
    let job = job(", bytes = 100", "");
    let mut machine = machine(&[("a", 100)], "");
    let core = machine.nodes[0].cores[0].clone();
    machine.nodes[0].cores.extend([core.clone(), core]);
    let (store, run) = planned(&machine, &job);
    assert_eq!(run.messages, []);
    let (sent_ns, received_ns) = times_ns(&job, &run, 50, 60);
    assert_eq!(received_ns, sent_ns);
    let entry = Entry { run: RunId(1), job: &job, progress: &[], deadline_ns: u64::MAX };
    let mut ids = ProcessIds::default();
    let plans = class_plans(&store, &[entry], &mut ids, &Settings::default());
    let plan = plans.expect("a valid plan").remove(0).plan;
    let mut waits = Vec::new();
    for process in &plan.processes {
        let name = process.label();
        for task in process.tasks.iter().filter(|task| !task.after.is_empty()) {
            let after = &task.after[0];
            let awaited = plan.process(after.process).expect("it is in the plan");
            let insns = |position: Option<usize>| {
                awaited.tasks[position.expect("it has the task")].planned_insns
            };
            let awaited_insns = insns(awaited.position_of(after.task));
            waits.push((name.clone(), task.planned_insns, awaited.label(), awaited_insns));
        }
    }
    assert_eq!(waits, [("right".into(), 20, "left".into(), 10)]);
}

/// Links between most of the nodes.
fn add_links(random: &mut Random, machine: &mut Machine) {
    for one in 0..machine.nodes.len() {
        for other in one + 1..machine.nodes.len() {
            if random.below(4) > 0 {
                machine.links.push(Link {
                    nodes: [one, other],
                    latency_ns: random.below(3_000_000_000),
                    bandwidth_bytes_per_s: 1 + random.below(5),
                    line: None,
                });
            }
        }
    }
}

/// Messages from some of the communications to others that come later in an order
/// that the net allows, so that there are no circles.
fn add_messages(random: &mut Random, job: &mut Job) {
    let tasks = job.tasks.len();
    let mut waits_for: Vec<_> = (0..tasks).map(|task| job.predecessors(task).count()).collect();
    let mut order: Vec<_> = (0..tasks).filter(|&task| waits_for[task] == 0).collect();
    let mut next = 0;
    while let Some(&task) = order.get(next) {
        next += 1;
        for after in job.successors(task) {
            waits_for[after] -= 1;
            if waits_for[after] == 0 {
                order.push(after);
            }
        }
    }
    let communicates =
        |&task: &usize| matches!(job.tasks[task].action, Action::Communication { .. });
    let order: Vec<_> = order.into_iter().filter(communicates).collect();
    for place in 0..order.len() {
        let later = &order[place + 1..];
        if later.is_empty() || random.below(3) == 0 {
            continue;
        }
        let (from, to) = (order[place], later[random.below(later.len() as u64) as usize]);
        job.tasks[from].action = Action::Communication { partner: Some(to) };
        job.tasks[from].message_bytes = Some(random.below(20));
        job.tasks[to].senders.push(from);
    }
}

/// Plans of several random jobs on a random machine: all that holds for others, and
/// every message is sent after its task, has the link to itself, and is there before
/// its receiver starts.
#[test]
fn random_plans_keep_to_their_messages() {
    let (mut over_links, mut within) = (0, 0);
    for seed in 0..150 {
        let random = &mut Random::new(seed);
        let mut machine = random_machine(random);
        add_links(random, &mut machine);
        let mut store = Store::new(machine.clone(), Balancing::Dynamic);
        let empty = store.clone();
        let jobs: Vec<_> = (0..3)
            .map(|_| {
                let mut job = random_job(random, 5, 5, 60);
                add_messages(random, &mut job);
                job
            })
            .collect();
        let mut planned = Vec::new();
        for (job, number) in jobs.iter().zip(0..) {
            let deadline_ns = whole_ns(job).saturating_mul(4);
            let request = Request { deadline_ns, ..Request::new(RunId(number), job) };
            if reserve(&mut store, &request, &Options::default()).is_ok() {
                planned.push((RunId(number), job, 0, deadline_ns));
            }
        }
        let (question, answer) = question_and_answer(&store, &planned);
        assert_eq!(checker::check(&question, &answer), Ok(()), "seed {seed}");
        let mut on_link = vec![Vec::new(); machine.links.len()];
        for &(id, job, ..) in &planned {
            let run = store.run(id).expect("it is planned");
            for (to, task) in job.tasks.iter().enumerate() {
                for &from in &task.senders {
                    let node = |task: usize| store.sites()[run.tasks[task].core].node;
                    let (sent_ns, start_ns) = (run.tasks[from].end_ns, run.tasks[to].start_ns);
                    let mut messages = run.messages.iter();
                    let message = messages.find(|message| (message.from, message.to) == (from, to));
                    let link = machine.link(node(from), node(to));
                    assert_eq!(message.map(|message| message.link), link, "seed {seed}");
                    let Some(message) = message else {
                        assert!(start_ns >= sent_ns, "seed {seed}");
                        within += 1;
                        continue;
                    };
                    let bytes = job.tasks[from].message_bytes.expect("it has a size");
                    let least_ns = machine.transfer_ns(message.link, bytes);
                    assert_eq!(message.end_ns - message.start_ns, least_ns, "seed {seed}");
                    assert!(message.start_ns >= sent_ns, "seed {seed}");
                    let latency_ns = machine.latency_ns(message.link);
                    assert_eq!(message.arrival_ns, message.end_ns + latency_ns);
                    assert!(start_ns >= message.arrival_ns, "seed {seed}");
                    assert_eq!(start_ns % machine.tick_ns, 0, "seed {seed}");
                    on_link[message.link].push((message.start_ns, message.end_ns));
                    over_links += 1;
                }
            }
        }
        for times in &mut on_link {
            times.sort_unstable();
            assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "seed {seed}");
        }
        for (id, ..) in planned {
            store.remove(id);
        }
        assert_eq!(store, empty, "seed {seed}");
    }
    assert!(over_links > 15 && within > 500, "{over_links} {within}");
}

/// In the plan of a node a message with a size has the end of its sender as its planned arrival,
/// counted from the beginning of the plan. Other dependencies have none.
#[test]
fn messages_of_a_plan_have_planned_arrivals() {
    let job = job(", bytes = 100", "");
    let machine = machine_from_toml(
        "[[node]]\nname = \"a\"\nmemory_bytes = 100\nrate_insns_per_s = 1_000_000_000\n\
         cores = [\"c\", \"d\", \"e\"]\n",
    )
    .expect("a valid machine");
    for start_ns in [0, 60] {
        let (store, run) = planned(&machine, &job);
        let entry = Entry { run: RunId(1), job: &job, deadline_ns: job.deadline_ns, progress: &[] };
        let settings = Settings { start_ns, ..Settings::default() };
        let plans = class_plans(&store, &[entry], &mut ProcessIds::default(), &settings);
        let plan = plans.expect("a valid plan").remove(0).plan;
        let (sent_ns, received_ns) = times_ns(&job, &run, 50, 60);
        assert_eq!((sent_ns, received_ns), (110, 110));
        let tasks = plan.processes.iter().flat_map(|process| &process.tasks);
        let arrivals = tasks.flat_map(|task| task.after.iter().map(|after| after.arrival_ns));
        assert_eq!(arrivals.collect::<Vec<_>>(), [Some(sent_ns - start_ns)]);
    }
}

/// After a synchronous message the sender waits for the receiver, in the plan of the times and in
/// that of the class.
#[test]
fn sender_of_a_synchronous_message_waits_for_the_receiver() {
    let machine = machine(&[("a", 100)], "");
    let mut two_cores = machine.clone();
    let core = two_cores.nodes[0].cores[0].clone();
    two_cores.nodes[0].cores.extend([core.clone(), core]);
    let asynchronous = job(", bytes = 100", ", bytes = 8");
    let synchronous = job(", bytes = 100, synchronous = true", ", bytes = 8");
    let sizes = |job: &Job| {
        let (store, run) = planned(&two_cores, job);
        let last = job.tasks.iter().position(|task| task.insns == 1000).expect("the last of left");
        let start_ns = run.tasks[last].start_ns;
        let received_ns = run.tasks[task(job, 60)].end_ns;
        let entry = Entry { run: RunId(1), job, deadline_ns: job.deadline_ns, progress: &[] };
        let plans = class_plans(&store, &[entry], &mut ProcessIds::default(), &Settings::default());
        let plan = plans.expect("a valid plan").remove(0).plan;
        let waits = plan.processes[0].tasks.last().expect("three tasks").after.len();
        (start_ns >= received_ns, waits)
    };
    assert_eq!(sizes(&asynchronous), (false, 0));
    assert_eq!(sizes(&synchronous), (true, 1));
}
