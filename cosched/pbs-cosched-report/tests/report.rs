// SPDX-License-Identifier: GPL-2.0
//! Reports of a decision, with values worked by hand.

use pbs_cosched::{Cost, GreedyOptions, Objective, Priority, Scheduler, Slowing};
use pbs_cosched_report::lanes::{decide, Question};
use pbs_cosched_report::{
    compare, explain, plan, sim, Case, SchedulerName, Settings, Slowed, When,
};
use pbs_interference::{slowdowns_from_toml, Level, Sharing};
use pbs_job::graph::graph_from_toml;
use pbs_job::machine_from_toml;

const MACHINE: &str = r#"
[[node]]
name = "n"
memory_bytes = 1_000_000_000
rate_insns_per_s = 1_000_000_000
cores = [{ name = "a", cpu = 4 }, { name = "b", cpu = 5 }]
[[device]]
kind = "gpu"
models = ["cuda"]
count = 1
"#;

/// The task can run on one thread or on the accelerator, in so many ms.
fn graph(name: &str, start: &str, tasks: &[(&str, Option<u64>, Option<u64>)]) -> String {
    let mut text = format!("name = \"{name}\"\nstart_ns = \"{start}\"\n");
    for (task, cpu, gpu) in tasks {
        text += &format!("[[task]]\nname = \"{task}\"\n");
        if let Some(cpu) = cpu {
            text += &format!("[[task.variant]]\nmodel = \"cpu\"\nruntime_ns = \"{cpu}ms\"\n");
        }
        if let Some(gpu) = gpu {
            text += &format!(
                "[[task.variant]]\nmodel = \"cuda\"\ndevice = \"gpu\"\nruntime_ns = \"{gpu}ms\"\n"
            );
        }
    }
    text
}

fn question(graphs: &[String]) -> Question {
    let graphs: Vec<_> = graphs.iter().map(|text| graph_from_toml(text).unwrap()).collect();
    let machine = machine_from_toml(MACHINE).unwrap();
    Question::new(&graphs, &machine, |_, _, _| None).unwrap()
}

/// Two processes that both want the accelerator: alone, 30 + 20 ms behind each other; with
/// the second on a thread, 30 ms.
fn two() -> Question {
    question(&[
        graph("one", "0ns", &[("a", Some(90), Some(30))]),
        graph("two", "0ns", &[("b", Some(25), Some(20))]),
    ])
}

fn settings(who: SchedulerName) -> Settings {
    Settings { who, ..Settings::default() }
}

#[test]
fn a_plan_is_compared_with_no_co_scheduling() {
    let question = two();
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    let (without, with) = (&planned.measures.without, &planned.measures.with);
    assert_eq!((without.makespan_ns, with.makespan_ns), (50_000_000, 30_000_000));
    assert_eq!((without.delta_ns, with.delta_ns), (20_000_000, 5_000_000));
    assert_eq!((without.turnarounds_ns, with.turnarounds_ns), (80_000_000, 55_000_000));
    assert!((planned.measures.speed_up - 5.0 / 3.0).abs() < 1e-9);
    // Three devices for 30 ms, of which 30 and 25 ms are used; or two, with the CPU as one.
    assert!((with.load - 55.0 / 90.0).abs() < 1e-9, "{}", with.load);
    assert!((with.load_monolithic - 55.0 / 60.0).abs() < 1e-9);
    assert!((without.load - 50.0 / 150.0).abs() < 1e-9);
    assert!(planned.verdict.taken);
    let two = planned.tasks[1].placed.as_ref().unwrap();
    assert_eq!((two.variant.as_str(), two.on.as_str(), two.round), ("cpu", "CPU 4", Some(1)));
    let text = planned.text();
    assert!(text.contains("greedy: 66.7 % faster."), "{text}");
    assert!(text.contains("61.11 %"), "{text}");
}

/// A schedule that is worse than not co-scheduling is reported, but carried out only on request.
#[test]
fn a_worse_schedule_is_reported_but_not_taken() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(11), Some(10))]),
        graph("two", "0ns", &[("b", Some(200), Some(20))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    assert!(!planned.verdict.taken && !planned.verdict.accepted);
    assert_eq!(planned.measures.with.makespan_ns, 200_000_000);
    // Both wait for the accelerator, as without.
    let two = planned.tasks[1].placed.as_ref().unwrap();
    assert_eq!((two.on.as_str(), two.end_ns), ("gpu", 30_000_000));
    assert!(planned.text().contains("Not co-scheduled: "), "{}", planned.text());
    let worse = Settings { take_worse: true, ..settings(SchedulerName::Greedy) };
    let planned = plan(&case, &worse).unwrap();
    assert!(planned.verdict.taken && !planned.verdict.accepted);
    let two = planned.tasks[1].placed.as_ref().unwrap();
    assert_eq!(two.end_ns, 200_000_000);
    // Brute force finds the 20 ms that there are, and proves it.
    let planned = plan(&case, &settings(SchedulerName::Oracle)).unwrap();
    assert_eq!(planned.measures.with.makespan_ns, 20_000_000);
    assert_eq!(planned.proved, Some(true));
}

#[test]
fn a_determination_that_says_no_leaves_all_as_it_is() {
    let question = two();
    let case = Case::new(&question, 0).unwrap();
    // "two" would wait 30 ms.
    for (cost_ms, taken) in [(29, true), (31, false)] {
        let settings = Settings {
            when: Some(When::Amortization),
            cost: Some(Cost::constant((cost_ms * 1_000_000) as f64)),
            ..settings(SchedulerName::Greedy)
        };
        let planned = plan(&case, &settings).unwrap();
        assert_eq!(planned.verdict.taken, taken, "{cost_ms}");
        assert_eq!(planned.verdict.necessary, taken, "{cost_ms}");
        let why = format!("tasks wait 30.000 ms, co-scheduling costs {cost_ms}.000 ms");
        assert!(planned.verdict.why.contains(&why), "{}", planned.verdict.why);
    }
}

#[test]
fn what_runs_keeps_what_it_has() {
    let question = two();
    let case = Case::new(&question, 1).unwrap();
    assert_eq!(case.waiting(), 1);
    let planned = plan(&case, &settings(SchedulerName::Best)).unwrap();
    assert!(planned.tasks[0].is_running);
    assert_eq!(planned.tasks[0].placed.as_ref().unwrap().on, "gpu");
    assert_eq!(planned.tasks[1].placed.as_ref().unwrap().on, "CPU 4");
    assert_eq!(planned.measures.with.makespan_ns, 30_000_000);
}

/// The winner of an accelerator is reported with the tasks that wanted it, too.
#[test]
fn rounds_say_who_won_and_who_waits() {
    let question = question(&[
        graph("one", "0ns", &[("a", None, Some(30)), ("c", Some(9), Some(1))]),
        graph("two", "0ns", &[("b", None, Some(20))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let by = |priority| {
        let settings = Settings {
            greedy: GreedyOptions { contention: priority, ..GreedyOptions::default() },
            ..settings(SchedulerName::Greedy)
        };
        let explanation = explain(&case, &settings).unwrap();
        let given = explanation.rounds.unwrap().given;
        let first = given.into_iter().find(|given| given.what == "gpu").unwrap();
        (first.task, first.why, first.losers)
    };
    let (task, why, losers) = by(Priority::Age);
    assert_eq!(task, "a");
    assert_eq!(why, "can run nowhere else; the oldest");
    assert_eq!(losers, ["two b"]);
    let (task, why, losers) = by(Priority::Runtime);
    assert_eq!(task, "b");
    assert_eq!(why, "can run nowhere else; least time there (20.000 ms)");
    assert_eq!(losers, ["one a"]);
}

#[test]
fn alternatives_are_what_else_would_have_come_out() {
    let question = two();
    let case = Case::new(&question, 0).unwrap();
    let explanation = explain(&case, &settings(SchedulerName::Best)).unwrap();
    let two = &explanation.alternatives[1];
    assert_eq!((two.process.as_str(), two.task.as_str()), ("two", "b"));
    let told: Vec<_> = two
        .variants
        .iter()
        .map(|of| (of.variant.as_str(), of.chosen, of.end_ns, of.all_end_ns))
        .collect();
    let gpu = told.iter().find(|of| of.0 == "cuda gpu").unwrap();
    assert_eq!(told[0], ("cpu", true, 25_000_000, 30_000_000));
    // On the accelerator it would be before or behind the other.
    assert!(!gpu.1 && gpu.3 == 50_000_000, "{told:?}");
    let said: Vec<_> = explanation
        .determinations
        .iter()
        .map(|said| (said.determination, said.necessary))
        .collect();
    assert_eq!(
        said,
        [
            ("never", false),
            ("always", true),
            ("contention", true),
            ("speedup", true),
            ("amortization", true),
            ("all-occupied", false),
        ]
    );
    let wait = explanation.determinations[4].wait_ns;
    assert_eq!(wait, Some(30_000_000));
    // What was not taken is explained as well.
    let never = Settings { when: Some(When::Never), ..settings(SchedulerName::Best) };
    let late = Case::new(&question, 1).unwrap();
    let explanation = explain(&late, &never).unwrap();
    assert_eq!(explanation.alternatives.len(), 1);
    assert_eq!(explanation.alternatives[0].variants.len(), 2);
}

#[test]
fn arrivals_are_decided_one_after_the_other() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(90), Some(30))]),
        graph("two", "5ms", &[("b", Some(25), Some(20))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let simulated = sim(&case, &settings(SchedulerName::Greedy)).unwrap();
    assert_eq!(simulated.determination, "contention");
    let told: Vec<_> = simulated
        .decisions
        .iter()
        .map(|decision| (decision.at_ns, decision.necessary, decision.taken))
        .collect();
    // When "two" comes no other process has a waiting task: "a" runs.
    assert_eq!(told, [(0, false, false), (5_000_000, false, false)]);
    let always = Settings { when: Some(When::Always), ..settings(SchedulerName::Greedy) };
    let simulated = sim(&case, &always).unwrap();
    assert!(simulated.decisions[1].taken);
    assert_eq!(simulated.measures.with.makespan_ns, 30_000_000);
    let compared = compare(&case, &settings(SchedulerName::Best)).unwrap();
    // Six schedulers, five determinations that are ever necessary.
    assert_eq!(compared.rows.len(), 30);
    let greedy = compared.rows.iter().find(|row| row.scheduler == "greedy");
    let greedy = greedy.unwrap();
    assert_eq!((greedy.determination, greedy.measured.makespan_ns), ("always", 30_000_000));
    let text = compared.text();
    // Those that came to the same are a row.
    assert!(text.contains("contention, speedup, amortization"), "{text}");
}

#[test]
fn pictures_have_the_rows_of_threads_and_accelerators() {
    let question = two();
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    let placements = planned.placements(&case);
    assert_eq!(placements.threads, ["CPU 4", "CPU 5"]);
    assert_eq!(placements.accelerators, ["gpu"]);
    let rows = |panel: usize| -> Vec<_> {
        let tasks = placements.panels[panel].tasks.iter();
        tasks.map(|task| (task.rows.clone(), task.end_ns)).collect()
    };
    assert_eq!(rows(0), [(vec![2], 30_000_000), (vec![2], 50_000_000)]);
    assert_eq!(rows(1), [(vec![2], 30_000_000), (vec![0], 25_000_000)]);
}

/// Two processes from one file have distinct names.
#[test]
fn processes_of_the_same_name_get_numbers() {
    let one = graph("one", "0ns", &[("a", Some(9), None)]);
    let question = question(&[one.clone(), one]);
    let case = Case::new(&question, 0).unwrap();
    assert_eq!(case.names.processes, ["one", "one#2"]);
}

/// A of 60 and B of 100 together, A twice as long, B a quarter longer: they end at 120
/// and 124.
#[test]
fn tasks_that_slow_each_other_advance_at_changing_rates() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(60), None)]),
        graph("two", "0ns", &[("b", Some(100), None)]),
    ]);
    let text = "[[slowdown]]\nvictim = \"one/a\"\nbeside = [\"two\"]\nlevel = \"llc\"\n\
                slowdown_permille = 2_000\n[[slowdown]]\nvictim = \"two\"\n\
                beside = [\"one/a@cpu\"]\nlevel = \"llc\"\nslowdown_permille = 1_250\n";
    let entries = slowdowns_from_toml(text).unwrap();
    for (cpus, ends_ns) in [
        (vec![4, 5], [120_000_000, 124_000_000]),
        // Who shares no cache slows nobody by it.
        (vec![4, 6], [60_000_000, 100_000_000]),
    ] {
        let mut case = Case::new(&question, 0).unwrap();
        let sharing = Sharing::new(vec![(Level::Llc, cpus)]);
        case.slowed = Some(Slowed::new(&question, &entries, sharing));
        let planned = plan(&case, &settings(SchedulerName::Best)).unwrap();
        let slowed = planned.slowed.unwrap().with.turnarounds;
        let ends: Vec<_> = slowed.iter().map(|of| of.turnaround_ns.unwrap()).collect();
        assert_eq!(ends, ends_ns);
    }
}

/// A schedule that is better only without slow-downs is not taken.
#[test]
fn slowdowns_decide_between_schedules() {
    // On the accelerator one after the other 30 ms and 60; side by side 40 at most.
    let question = question(&[
        graph("one", "0ns", &[("a", Some(40), Some(30))]),
        graph("two", "0ns", &[("b", Some(40), Some(30))]),
        graph("three", "0ns", &[("c", Some(40), Some(35))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Best)).unwrap();
    assert!(planned.verdict.taken && planned.slowed.is_none());
    assert_eq!(planned.measures.with.makespan_ns, 40_000_000);
    let entry = |victim: &str| {
        let all = ["one", "two", "three"].into_iter().filter(|other| *other != victim);
        let one = |other| {
            format!(
                "[[slowdown]]\nvictim = \"{victim}\"\nbeside = [\"{other}\"]\n\
                 slowdown_permille = 3_000\n"
            )
        };
        all.map(one).collect::<String>()
    };
    let text = ["one", "two", "three"].map(entry).concat();
    let entries = slowdowns_from_toml(&text).unwrap();
    let mut case = case;
    case.slowed = Some(Slowed::new(&question, &entries, Sharing::default()));
    let planned = plan(&case, &settings(SchedulerName::Best)).unwrap();
    let slowed = planned.slowed.as_ref().unwrap();
    // Two on threads take three times as long; one behind the other on the accelerator 95 ms. Best
    // is one alone on a thread, and two on the accelerator.
    assert_eq!(slowed.with.makespan_ns, 60_000_000);
    assert_eq!(slowed.without.makespan_ns, 95_000_000);
    assert!(planned.verdict.taken, "{}", planned.verdict.why);
    assert_eq!(planned.proved, Some(true));
    let text = planned.text();
    let told = "best: 58.3 % faster with slow-downs, and no mapping is better";
    assert!(text.contains(told), "{text}");
    let drawn = plan(&case, &settings(SchedulerName::Random)).unwrap().text();
    assert!(drawn.contains("; this scheduler does not regard slow-downs"), "{drawn}");
    let placements = planned.placements(&case);
    let ends = |panel: usize| placements.panels[panel].tasks.iter().map(|task| task.end_ns).max();
    assert_eq!((ends(0), ends(1)), (Some(95_000_000), Some(60_000_000)));
    assert!(placements.panels[0].title.ends_with(", with slow-downs"));
    let page = planned.page(&case);
    assert!(page.contains("<b>60.000</b> makespan, ms, with slow-downs"));
    assert!(page.contains("times without slow-downs</h2>"), "{page}");
    let always =
        Settings { when: Some(When::Always), take_worse: true, ..settings(SchedulerName::Best) };
    let simulated = sim(&case, &always).unwrap();
    let placements = simulated.placements(&case);
    let ends = placements.panels[1].tasks.iter().map(|task| task.end_ns);
    assert_eq!(ends.max(), Some(simulated.slowed.unwrap().with.makespan_ns));
}

/// Five tasks for the only accelerator, none of which waits for another: nothing is allowed.
#[test]
fn enhanced_says_when_greedy_decided() {
    let names = ["one", "two", "three", "four", "five"];
    let question = question(&names.map(|name| graph(name, "0ns", &[("t", None, Some(10))])));
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Enhanced)).unwrap();
    assert!(planned.fell_back && planned.text().contains("therefore greedy decided"));
    let by_greedy = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    assert_eq!(planned.found.0, by_greedy.found.0);
    let question = two();
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Enhanced)).unwrap();
    assert!(!planned.fell_back && !planned.text().contains("greedy"));
}

#[test]
fn decisions_cost_something_without_a_measurement() {
    let of = |who: SchedulerName| settings(who).cost().ns(100);
    assert_eq!(of(SchedulerName::Greedy), 26_000);
    assert_eq!(of(SchedulerName::Evolutionary), 50_000_000);
    for who in SchedulerName::ALL {
        assert!(of(who) > 0 && of(who) > settings(who).cost().ns(1), "{who:?}");
    }
}

/// Two tasks take 2.5 times as long side by side: 255 ms, or 210 ms one after the other.
#[test]
fn plans_hold_tasks_back_that_would_slow_each_other() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(90), None)]),
        graph("two", "0ns", &[("b", Some(120), None)]),
    ]);
    let entry = |victim: &str, other: &str, permille: u32| {
        format!(
            "[[slowdown]]\nvictim = \"{victim}@cpu\"\nbeside = [\"{other}@cpu\"]\n\
             slowdown_permille = {permille}\n"
        )
    };
    let planned = |who: SchedulerName, permille: u32| {
        let text = entry("one/a", "two/b", permille) + &entry("two/b", "one/a", permille);
        let entries = slowdowns_from_toml(&text).unwrap();
        let mut case = Case::new(&question, 0).unwrap();
        case.slowed = Some(Slowed::new(&question, &entries, Sharing::default()));
        plan(&case, &settings(who)).unwrap()
    };
    for who in [
        SchedulerName::Greedy,
        SchedulerName::Heft,
        SchedulerName::Evolutionary,
        SchedulerName::Oracle,
        SchedulerName::Best,
    ] {
        let held = planned(who, 2_500);
        let slowed = held.slowed.as_ref().unwrap();
        assert_eq!(slowed.without.makespan_ns, 255_000_000, "{who:?}");
        assert_eq!(slowed.with.makespan_ns, 210_000_000, "{who:?}");
        assert!(held.verdict.taken, "{who:?}: {}", held.verdict.why);
        let rows = held.tasks.iter().map(|row| row.placed.as_ref().unwrap());
        let starts: Vec<u64> = rows.map(|placed| placed.start_ns).collect();
        assert!(starts.contains(&0) && !starts.iter().all(|start_ns| *start_ns == 0));
        // Side by side where that is faster: 171 ms.
        let beside = planned(who, 1_600);
        let slowed = beside.slowed.as_ref().unwrap();
        assert_eq!(slowed.with.makespan_ns, slowed.without.makespan_ns, "{who:?}");
        assert!(slowed.with.makespan_ns < 210_000_000);
    }
}

/// Graphs that become jobs do not wait for each other: a task that another graph would slow runs
/// behind it. Where that is no better, the decision is that without slow-downs.
#[test]
fn graphs_that_are_run_are_decided_with_their_slowdowns() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(90), None)]),
        graph("two", "0ns", &[("b", Some(120), None)]),
    ])
    .for_plans();
    let decided = |scheduler: &Scheduler, permille: Option<u32>| {
        let entries = permille.map(|permille| {
            let pairs = [("one", "two"), ("two", "one")].map(|(victim, other)| {
                format!(
                    "[[slowdown]]\nvictim = \"{victim}\"\nbeside = [\"{other}\"]\n\
                     slowdown_permille = {permille}\n"
                )
            });
            slowdowns_from_toml(&pairs.concat()).unwrap()
        });
        let slowed = entries.map(|it| Slowed::new(&question, &it, Sharing::default()));
        let slowing = slowed.as_ref().map(|slowed| slowed as &dyn Slowing);
        decide(&question, scheduler, Objective::default(), slowing, 5000).unwrap()
    };
    for scheduler in
        [Scheduler::default(), Scheduler::Heft, Scheduler::Greedy(GreedyOptions::default())]
    {
        let unaware = decided(&scheduler, None);
        assert_eq!((unaware.makespan_ns, unaware.verdict.accepted), (120_000_000, false));
        let aware = decided(&scheduler, Some(2_500));
        // Beside each other they would take 255 ms.
        assert_eq!((aware.makespan_ns, aware.verdict.accepted), (210_000_000, true));
        assert_eq!(aware.verdict.without.makespan_ns, 255_000_000);
        let slots: Vec<_> = aware.timeline.slots.iter().flatten().collect();
        assert_eq!(slots[0].place, slots[1].place);
        assert_eq!((aware.timeline.awaited(0), aware.timeline.awaited(1)), (None, None));
        let beside = decided(&scheduler, Some(1_600));
        assert_eq!(beside.makespan_ns, beside.verdict.without.makespan_ns);
        assert_eq!(beside.timeline, unaware.timeline);
    }
}

/// Slow-downs of three graphs: the first slows both others and is slowed by each of them.
fn slowed_by_the_first(question: &Question) -> Slowed {
    let pairs = [("one", "two"), ("one", "three"), ("two", "one"), ("three", "one")];
    let text = pairs.map(|(victim, other)| {
        format!(
            "[[slowdown]]\nvictim = \"{victim}\"\nbeside = [\"{other}\"]\n\
             slowdown_permille = 4_000\n"
        )
    });
    let entries = slowdowns_from_toml(&text.concat()).unwrap();
    Slowed::new(question, &entries, Sharing::default())
}

/// A task that waits for another graph by the decision takes the thread of its task instead.
#[test]
fn graphs_that_are_run_do_not_wait_for_each_other() {
    let all = ["one", "two", "three"].map(|name| graph(name, "0ns", &[("t", Some(100), None)]));
    let question = question(&all).for_plans();
    let slowed = slowed_by_the_first(&question);
    let scheduler = Scheduler::Greedy(GreedyOptions::default());
    let decided = decide(&question, &scheduler, Objective::default(), Some(&slowed), 5000).unwrap();
    assert_eq!(decided.makespan_ns, 300_000_000);
    assert!(decided.timeline.waits.iter().all(Option::is_none));
}

/// The first task slows the others, and they do not slow each other: both wait for its end.
#[test]
fn plans_name_the_task_that_others_wait_for() {
    let all = ["one", "two", "three"].map(|name| graph(name, "0ns", &[("t", Some(100), None)]));
    let question = question(&all);
    let mut case = Case::new(&question, 0).unwrap();
    case.slowed = Some(slowed_by_the_first(&question));
    let planned = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    assert_eq!(planned.slowed.as_ref().unwrap().with.makespan_ns, 200_000_000);
    let waits = planned.tasks.iter().filter_map(|row| row.placed.as_ref()?.waits_for.as_deref());
    assert_eq!(waits.collect::<Vec<_>>(), ["one/t"]);
    assert!(planned.text().contains("WAITS FOR"), "{}", planned.text());
}

/// Figures of a schedule that is not taken are not shown as those of the executed one.
#[test]
fn what_is_not_taken_is_shown_as_such() {
    let question = question(&[
        graph("one", "0ns", &[("a", Some(11), Some(10))]),
        graph("two", "0ns", &[("b", Some(200), Some(20))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let planned = plan(&case, &settings(SchedulerName::Greedy)).unwrap();
    let text = planned.text();
    for words in [
        "Tasks run as without co-scheduling:\n",
        "NOT CO-SCHEDULED   WHAT greedy FOUND",
        "\nnot taken: what greedy found, 85.0 % slower.\n",
    ] {
        let text = text.split("  ").map(str::trim_start).filter(|part| !part.is_empty());
        let text = text.collect::<Vec<_>>().join("   ");
        assert!(text.contains(words), "{words}: {text}");
    }
    let placements = planned.placements(&case);
    let ends = |panel: usize| placements.panels[panel].tasks.iter().map(|task| task.end_ns).max();
    assert_eq!((ends(0), ends(1)), (Some(30_000_000), Some(200_000_000)));
    assert!(placements.panels[1].title.starts_with("not taken: what greedy found"));
    let page = planned.page(&case);
    for words in [
        "<b>30.000</b> makespan, not co-scheduled, ms<",
        "<b>200.000</b> makespan of what greedy found, not taken, ms<",
        ">WHAT greedy FOUND<",
        "<h2>Tasks, as without co-scheduling</h2>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("speed-up</li>"), "{page}");
}

/// The table and the sentences below it say the same time in the same way.
#[test]
fn sentences_have_times_as_tables_do() {
    let exact = |text: String| text.replace("30ms", "1234567899ns");
    let question = question(&[
        exact(graph("one", "0ns", &[("a", Some(9_000), Some(30))])),
        graph("two", "0ns", &[("b", Some(25), Some(20))]),
    ]);
    let case = Case::new(&question, 0).unwrap();
    let asked = Settings { when: Some(When::Amortization), ..settings(SchedulerName::Greedy) };
    let why = plan(&case, &asked).unwrap().verdict.why;
    assert_eq!(
        why,
        "Co-scheduled: tasks wait 1,234.567 ms, co-scheduling costs 0.001 ms; everything has ended \
         after 1,234.567 ms instead of 1,254.567 ms."
    );
    let simulated = sim(&case, &asked).unwrap().text();
    assert!(simulated.contains("1,234.567") && !simulated.contains("1234.56"), "{simulated}");
}

/// A deadline does not count from the arrival, as a turnaround does.
#[test]
fn who_is_late_is_told_with_end_and_deadline() {
    let late = graph("one", "10ms", &[("a", Some(60), None)]);
    let late = late.replace("start_ns", "deadline_ns = \"55ms\"\nstart_ns");
    let question = question(&[late]);
    let case = Case::new(&question, 0).unwrap();
    let text = plan(&case, &settings(SchedulerName::Greedy)).unwrap().text();
    let line = |begin: &str| -> Vec<_> {
        let line = text.lines().find_map(|line| line.strip_prefix(begin));
        let line = line.unwrap_or_else(|| panic!("{begin}: {text}"));
        line.split_whitespace().collect()
    };
    assert_eq!(line("turnaround of one, ms"), ["60.000", "60.000"]);
    let ends = line("end of one, deadline 55.000, ms");
    assert_eq!(ends, ["late", "70.000", "late", "70.000"]);
}
