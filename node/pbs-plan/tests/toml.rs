// SPDX-License-Identifier: GPL-2.0
//! Plans read from TOML and written back.

use std::path::Path;

use pbs_core::wire::{
    CONFIG_BYTES, CPU_BYTES, HEADER_BYTES, PROCESS_BYTES, PROCESS_BYTES_2, VERSION_2,
};
use pbs_plan::{
    from_toml, to_toml, wire, Config, Dispatch, IdlePolicy, PreemptionWay, Slot, Start, Threshold,
};

const SMALL: &str = r#"plan_id = 7

[config]
sigma_t1_permille = 1100
window_unallocated_ns = 10_000_000

[[process]]
id = 1
name = "sort"
buffer_insns = 5_000_000
command = ["sort", "-n", "/data/a"]
stdout = "/tmp/sorted"
tasks = [20_000_000]

[[process]]
id = 2
name = "pack"
cpu = 0
commands = [["gzip", "a"], { command = ["wc"], stdin = "a" }]
tasks = [{ name = "zip", planned_insns = 30_000_000 }, 4_000_000]

[[process]]
id = 9
attaches = "itself"
tasks = [{ id = 4, planned_insns = 1_000, real_insns = 900 }, { id = 8, planned_insns = 2_000, wait_insns = 50 }]

[[cpu]]
cpu = 0
slots = ["sort", 2, "idle 5_000_000", "pack"]

[[cpu]]
cpu = 3
slots = [9, { idle_insns = 100, real_insns = 90 }, 9]
"#;

/// Planned memory is preserved by TOML and by the wire format.
#[test]
fn memory_is_read_and_written() {
    let text = format!("memory_bytes = 2_000_000_000\n{SMALL}").replace(
        "tasks = [20_000_000]",
        "memory_bytes = 8_000_000\nreal_memory_bytes = 9_000_000\ntasks = [20_000_000]",
    );
    let plan = from_toml(&text).unwrap();
    let again = from_toml(&to_toml(&plan)).unwrap();
    let decoded = wire::decode(&wire::encode(&plan).bytes).unwrap();
    for plan in [&plan, &again, &decoded] {
        assert_eq!(plan.memory_bytes, 2_000_000_000);
        let peaks: Vec<_> = plan.processes.iter().map(|p| p.memory_bytes).collect();
        assert_eq!(peaks, [8_000_000, 0, 0]);
    }
    // The kernel does not get what it really has.
    let real = [&plan, &again, &decoded].map(|plan| plan.processes[0].real_memory_bytes);
    assert_eq!(real, [Some(9_000_000), Some(9_000_000), None]);
    let wrong = format!("memory_bytes = \"much\"\n{SMALL}");
    assert!(from_toml(&wrong).is_err());
}

/// Rates of a CPU and of a process are preserved as well; undeclared rates stay undeclared.
#[test]
fn rates_are_read_and_written() {
    let text = SMALL
        .replace("[[cpu]]\ncpu = 0\n", "[[cpu]]\ncpu = 0\nrate_insns_per_ms = 750_000\n")
        .replace("tasks = [20_000_000]", "rate_insns_per_ms = 4_294_967_295\ntasks = [20_000_000]");
    let plan = from_toml(&text).unwrap();
    let again = from_toml(&to_toml(&plan)).unwrap();
    let decoded = wire::decode(&wire::encode(&plan).bytes).unwrap();
    for plan in [&plan, &again, &decoded] {
        let rates = plan.processes.iter().map(|p| p.rate_insns_per_ms);
        assert_eq!(rates.collect::<Vec<_>>(), [u32::MAX.into(), 0, 0]);
        let rates: Vec<_> = plan.cpus.iter().map(|cpu| cpu.rate_insns_per_ms).collect();
        assert_eq!(rates[0], 750_000);
        assert!(rates[1..].iter().all(|&rate| rate == 0));
    }
    for wrong in ["4_294_967_296", "0.5", "\"fast\""] {
        let text = text.replace("750_000", wrong);
        let problems = from_toml(&text).unwrap_err();
        assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
        assert!(problems[0].message.contains("rate_insns_per_ms"));
    }
    // Nor does the kernel take more, whoever made the plan.
    let mut plan = plan;
    plan.cpus[0].rate_insns_per_ms = 1 << 32;
    assert!(wire::validate(&wire::encode(&plan)).is_err());
}

/// A CPU may be named to have nothing any more, alone or beside others.
#[test]
fn a_cpu_without_slots_is_a_plan() {
    for text in [
        "plan_id = 7\n\n[[cpu]]\ncpu = 3\nslots = []\n",
        &format!("{SMALL}\n[[cpu]]\ncpu = 4\nslots = []\n"),
    ] {
        let plan = from_toml(text).unwrap();
        assert!(plan.cpus.last().unwrap().slots.is_empty());
        let again = from_toml(&to_toml(&plan)).unwrap();
        let bytes = wire::encode(&plan).bytes;
        assert_eq!(wire::encode(&again).bytes, bytes);
        let decoded = wire::decode(&bytes).unwrap();
        assert_eq!(decoded.cpus.len(), plan.cpus.len());
        assert!(decoded.cpus.last().unwrap().slots.is_empty());
    }
}

#[test]
fn everything_that_can_be_written_is_read() {
    let plan = from_toml(SMALL).unwrap();
    assert_eq!(plan.plan_id, 7);
    let config = plan.config.unwrap();
    assert_eq!(config.sigma_t1_permille, 1100);
    assert_eq!(config.window_unallocated_ns, 10_000_000);
    assert_eq!(config.window_period_ns, Config::DEFAULT.window_period_ns);

    let [sort, pack, itself] = &plan.processes[..] else {
        panic!("three processes");
    };
    let Start::Command(command) = &sort.start else {
        panic!("sort has a command");
    };
    assert_eq!(command.argv, ["sort", "-n", "/data/a"]);
    assert_eq!(command.stdout.as_deref(), Some(Path::new("/tmp/sorted")));
    assert_eq!(sort.buffer_insns, 5_000_000);
    assert_eq!(sort.line.unwrap().get(), 7);

    let [zip, wc] = pack.commands() else {
        panic!("pack has two commands");
    };
    assert_eq!(zip.argv, ["gzip", "a"]);
    assert_eq!(wc.stdin.as_deref(), Some(Path::new("a")));
    assert_eq!(pack.tasks[0].name.as_deref(), Some("zip"));
    assert_eq!((pack.tasks[1].id, pack.tasks[1].planned_insns), (1, 4_000_000));

    assert_eq!(itself.start, Start::Itself(None));
    assert_eq!(itself.tasks[0].real_insns, Some(900));
    assert_eq!(itself.tasks[1].id, 8);
    assert_eq!(itself.tasks[1].wait_insns, Some(50));

    assert_eq!(plan.cpus[0].slots[2], Slot::Idle { length_insns: 5_000_000, real_insns: None });
    assert_eq!(plan.cpus[1].cpu, 3);
    let placed: Vec<_> = plan.place(&plan.cpus[0]).collect();
    assert_eq!(placed[3].task, Some((1, 1)));
    assert_eq!(placed[3].length_insns, 4_000_000);
}

#[test]
fn writing_and_reading_changes_nothing() {
    let once = to_toml(&from_toml(SMALL).unwrap());
    let twice = to_toml(&from_toml(&once).unwrap());
    assert_eq!(once, twice);
    let (a, b) = (from_toml(SMALL).unwrap(), from_toml(&once).unwrap());
    assert_eq!(wire::encode(&a).bytes, wire::encode(&b).bytes);
    assert_eq!(a.processes[1].commands()[1].argv, b.processes[1].commands()[1].argv);
}

/// A plan that sets everything that a plan can set beside its slots.
fn all_set() -> String {
    let mut text =
        String::from("plan_id = 7\ndealt_seq = 1_234\nlease_ns = 5_000_000_000\n[config]\n");
    let numbers = Config::NAMES.into_iter().zip(Config::DEFAULT.values());
    for (name, default) in numbers {
        text += &match name {
            "thresholds" => format!("{name} = [\"t2_node\", \"t1\"]\n"),
            "idle_policy" => format!("{name} = \"least_slack\"\n"),
            "preemption_way" => format!("{name} = \"every_slot\"\n"),
            "t1_state" => format!("{name} = \"load\"\n"),
            "stress_cause" => format!("{name} = \"new_lengths\"\n"),
            "dispatch" => format!("{name} = \"deadline\"\n"),
            _ if pbs_plan::config_is_flag(name) => format!("{name} = {}\n", default == 0),
            _ => format!("{name} = {}\n", default + 1),
        };
    }
    text + "[[process]]\nid = 1\ntasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n"
}

#[test]
fn every_number_of_the_configuration_is_read_and_written() {
    let plan = from_toml(&all_set()).unwrap();
    let config = plan.config.unwrap();
    assert_eq!(config.thresholds, Threshold::T1 as u64 | Threshold::T2Node as u64);
    assert_eq!(config.idle_policy(), IdlePolicy::LeastSlack);
    assert_eq!(config.preemption_way(), PreemptionWay::EverySlot);
    assert_eq!(config.dispatch(), Dispatch::Deadline);
    assert_eq!(config.idle_is_lateness, 1);
    for (index, name) in Config::NAMES.iter().enumerate() {
        assert_ne!(config.values()[index], Config::DEFAULT.values()[index], "{name}");
        assert!(plan.config_lines[index].is_some(), "{name}");
    }

    let text = to_toml(&plan);
    for line in [
        "dealt_seq = 1234",
        "lease_ns = 5000000000",
        "thresholds = [\"t1\", \"t2_node\"]",
        "idle_policy = \"least_slack\"",
        "preemption_way = \"every_slot\"",
        "dispatch = \"deadline\"",
        "idle_is_lateness = true",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let again = from_toml(&text).unwrap();
    assert_eq!((again.config, again.dealt_seq), (Some(config), 1234));
    let decoded = wire::decode(&wire::encode(&plan).bytes).unwrap();
    assert_eq!((decoded.config, decoded.dealt_seq), (Some(config), 1234));
    assert_eq!([again.lease_ns, decoded.lease_ns], [5_000_000_000; 2]);
}

#[test]
fn thresholds_can_all_be_off() {
    let text = all_set().replace("[\"t2_node\", \"t1\"]", "[]");
    let plan = from_toml(&text).unwrap();
    assert_eq!(plan.config.unwrap().thresholds, 0);
    let again = from_toml(&to_toml(&plan)).unwrap();
    assert_eq!(again.config, plan.config);
}

#[test]
fn lengths_of_simulations_survive() {
    let once = from_toml(SMALL).unwrap();
    let again = from_toml(&to_toml(&once)).unwrap();
    let lengths = |plan: &pbs_plan::Plan| {
        let mut lengths = Vec::new();
        for task in plan.processes.iter().flat_map(|process| &process.tasks) {
            lengths.push((task.planned_insns, task.real_insns, task.wait_insns));
        }
        (lengths, plan.cpus[1].slots.clone())
    };
    assert_eq!(lengths(&again), lengths(&once));
    let real: Vec<_> = once.place(&once.cpus[1]).map(|slot| slot.real_insns).collect();
    assert_eq!(real, [Some(900), Some(90), None]);
}

#[test]
fn awkward_strings_survive() {
    let text = "[[process]]\nid = 1\ncommand = ['a\"b\\c', \"tab\\tnew\\nline\\u0001 ü\"]\n\
                tasks = [1]\n[[cpu]]\ncpu = 0\nslots = [1]\n";
    let plan = from_toml(text).unwrap();
    let again = from_toml(&to_toml(&plan)).unwrap();
    assert_eq!(again.processes[0].commands()[0].argv, ["a\"b\\c", "tab\tnew\nline\u{1} ü"]);
}

#[test]
fn wire_and_back_keeps_what_is_on_the_wire() {
    let plan = from_toml(SMALL).unwrap();
    let encoded = wire::encode(&plan);
    let decoded = wire::decode(&encoded.bytes).unwrap();
    assert_eq!(wire::encode(&decoded).bytes, encoded.bytes);
    assert_eq!(decoded.config, plan.config);
    assert_eq!(decoded.processes[2].tasks[1].id, 8);
}

#[test]
fn offsets_lead_back_to_lines() {
    let plan = from_toml(SMALL).unwrap();
    let encoded = wire::encode(&plan);
    let line = |offset| encoded.line_at(offset).map(|line| line.get());
    assert_eq!(line(0), None);
    // Configuration: given, left out.
    assert_eq!(line(64), Some(4));
    assert_eq!(line(64 + 8), None);
    // CPU 0, its processes, its slots.
    let cpu = 64 + CONFIG_BYTES as u64;
    assert_eq!(line(cpu), Some(27));
    assert_eq!(line(cpu + 32), Some(7));
    assert_eq!(line(cpu + 32 + PROCESS_BYTES as u64), Some(15));
    assert_eq!(line(cpu + 32 + 2 * PROCESS_BYTES as u64), Some(29));
    // Past the end stays the last slot.
    assert_eq!(line(u64::MAX), Some(33));
}

#[test]
fn numbers_of_the_header_lead_back_to_their_lines() {
    let encoded = wire::encode(&from_toml(&all_set()).unwrap());
    let lines = [39, 40, 47, 48, 55, 56];
    let lines = lines.map(|offset| encoded.line_at(offset).map(|line| line.get()));
    assert_eq!(lines, [None, Some(2), Some(2), Some(3), Some(3), None]);
}

#[test]
fn truncated_wire_is_refused_in_words() {
    let encoded = wire::encode(&from_toml(SMALL).unwrap());
    let problem = wire::decode(&encoded.bytes[..100]).unwrap_err();
    assert!(problem.message.contains("100"), "{}", problem.message);
}

/// Tasks that wait for others, said in every way.
const NET: &str = r#"plan_id = 1

[[process]]
id = 1
name = "read"
tasks = [{ name = "head", planned_insns = 10 }, { name = "body", planned_insns = 20 }]

[[process]]
id = 2
name = "left"
tasks = [{ planned_insns = 5, after = ["read/head"] }, 6, { planned_insns = 7, after = [1, "3/0"] }]

[[process]]
id = 3
tasks = [{ planned_insns = 5, after = ["read/0"] }, 6]

[[process]]
id = 4
name = "join"
tasks = [{ id = 3, name = "8", planned_insns = 9, after = ["left", "3", "read"] }]

[[process]]
id = 5
name = "read/head"
tasks = [{ id = 3, planned_insns = 9, after = ["join", "and-more/2", "4/1"] }]

[[process]]
id = 6
name = "and-more"
tasks = [{ id = 2, planned_insns = 9 }]

[[cpu]]
cpu = 0
slots = ["read", "left", "read", "left", "left", "join"]

[[cpu]]
cpu = 1
slots = [3, 3, 6, 5]
"#;

fn edges(plan: &pbs_plan::Plan) -> Vec<[u32; 4]> {
    let mut edges = Vec::new();
    for process in &plan.processes {
        for task in &process.tasks {
            let after = task.after.iter();
            edges.extend(after.map(|after| [process.id, task.id, after.process, after.task]));
        }
    }
    edges
}

#[test]
fn order_is_read_and_written() {
    // With a process of that name "read/head" is no longer clear.
    let problems = from_toml(NET).unwrap_err();
    assert_eq!(problems[0].message, "read/head can be 5/3 and 1/0; write these numbers instead");
    let text = NET.replace("after = [\"read/head\"]", "after = [\"1/0\"]");
    let plan = from_toml(&text).unwrap();
    let expected = [
        [2, 0, 1, 0],
        [2, 2, 1, 1],
        [2, 2, 3, 0],
        [3, 0, 1, 0],
        [4, 3, 2, 2],
        [4, 3, 3, 1],
        [4, 3, 1, 1],
        [5, 3, 4, 3],
        [5, 3, 6, 2],
        // It has ended under an earlier plan.
        [5, 3, 4, 1],
    ];
    assert_eq!(edges(&plan), expected);
    let written = to_toml(&plan);
    for after in [
        "after = [\"read/0\"]",
        "after = [\"read\", \"3/0\"]",
        "after = [\"left\", \"3\", \"read\"]",
        "after = [\"join\", \"and-more\", \"join/1\"]",
    ] {
        assert!(written.contains(after), "{after}: {written}");
    }
    let again = from_toml(&written).unwrap();
    assert_eq!(edges(&again), expected);
    let encoded = wire::encode(&plan);
    assert_eq!(wire::encode(&again).bytes, encoded.bytes);
    let decoded = wire::decode(&encoded.bytes).unwrap();
    assert_eq!(wire::encode(&decoded).bytes, encoded.bytes);
    let mut sorted = expected;
    sorted.sort_unstable();
    let mut found = edges(&decoded);
    found.sort_unstable();
    assert_eq!(found, sorted);
}

/// The kernel gives back the plan of one CPU, which may wait for others.
#[test]
fn plan_of_one_cpu_is_read_though_it_waits_for_others() {
    let text = "[[process]]\nid = 1\ntasks = [5]\n[[process]]\nid = 2\n\
                tasks = [{ planned_insns = 5, after = [1] }]\n\
                [[cpu]]\ncpu = 0\nslots = [1]\n[[cpu]]\ncpu = 1\nslots = [2]\n";
    let mut plan = from_toml(text).unwrap();
    plan.cpus.remove(0);
    let encoded = wire::encode(&plan);
    assert!(wire::validate(&encoded).is_err());
    let alone = wire::decode(&encoded.bytes).unwrap();
    assert_eq!(edges(&alone), [[2, 0, 1, 0]]);
    assert!(to_toml(&alone).contains("after = [\"1/0\"]"));
}

/// The offset of an edge leads back to where it is written.
#[test]
fn edges_lead_back_to_their_lines() {
    let text = "[[process]]\nid = 1\ntasks = [5]\n[[process]]\nid = 2\n\
                tasks = [{ planned_insns = 5, after = [\n1,\n] }]\n\
                [[cpu]]\ncpu = 0\nslots = [\n1,\n2]\n";
    let encoded = wire::encode(&from_toml(text).unwrap());
    let edge = encoded.bytes.len() as u64 - 16;
    let lines = [edge - 1, edge].map(|offset| encoded.line_at(offset).unwrap().get());
    assert_eq!(lines, [13, 7]);
}

/// A message is a dependency with a planned arrival, through all formats.
#[test]
fn messages_are_read_and_written() {
    let text = |after: &str| {
        format!(
            "[[process]]\nid = 1\ntasks = [5, 6]\n[[process]]\nid = 2\n\
             tasks = [{{ planned_insns = 5, after = [{after}] }}]\n\
             [[cpu]]\ncpu = 0\nslots = [1, 2, 1]\n"
        )
    };
    let arrivals = |plan: &pbs_plan::Plan| -> Vec<Option<u64>> {
        let after = &plan.processes[1].tasks[0].after;
        after.iter().map(|after| after.arrival_ns).collect()
    };
    for (after, arrival_ns, written) in [
        ("{ task = \"1/0\", arrival = \"2.5 ms\" }", 2_500_000, "arrival = \"2_500 us\""),
        ("{ task = 1, arrival = 7 }", 7, "{ task = \"1\", arrival = \"7 ns\" }"),
        ("{ task = \"1/1\", arrival = 0 }", 0, "arrival = \"0 ms\""),
    ] {
        let plan = from_toml(&text(after)).unwrap();
        assert_eq!(arrivals(&plan), [Some(arrival_ns)]);
        let toml = to_toml(&plan);
        assert!(toml.contains(written), "{toml}");
        assert_eq!(arrivals(&from_toml(&toml).unwrap()), [Some(arrival_ns)]);
        let encoded = wire::encode(&plan);
        assert_eq!(arrivals(&wire::decode(&encoded.bytes).unwrap()), [Some(arrival_ns)]);
        let json = pbs_plan::to_json(&plan);
        assert_eq!(json["process"][1]["tasks"][0]["after"][0]["arrival"], arrival_ns);
        // What is wrong with the arrival leads back to its line.
        assert_eq!(encoded.line_at(encoded.bytes.len() as u64 - 1).unwrap().get(), 6);
    }
    // A plan without messages has no room for them.
    let plain = wire::encode(&from_toml(&text("\"1/0\"")).unwrap()).bytes;
    let message = from_toml(&text("{ task = \"1/0\", arrival = 7 }")).unwrap();
    assert_eq!(wire::encode(&message).bytes.len(), plain.len() + 8);
    assert_eq!(plain[32..40], [0; 8]);
}

/// A deadline, with the ways to write it, is read, written and encoded.
#[test]
fn deadlines_are_read_and_written() {
    let text = |deadline: &str| {
        format!("[[process]]\nid = 1\n{deadline}tasks = [5]\n[[cpu]]\ncpu = 0\nslots = [1]\n")
    };
    for (deadline, ns, written) in [
        ("deadline = \"250 ms\"\n", Some(250_000_000), Some("deadline = \"250 ms\"")),
        ("deadline = \"0.5s\"\n", Some(500_000_000), Some("deadline = \"500 ms\"")),
        ("deadline = 1_500\n", Some(1_500), Some("deadline = \"1_500 ns\"")),
        ("deadline = 12_000\n", Some(12_000), Some("deadline = \"12 us\"")),
        ("deadline = 0\n", Some(0), Some("deadline = \"0 ms\"")),
        ("", None, None),
    ] {
        let plan = from_toml(&text(deadline)).unwrap();
        assert_eq!(plan.processes[0].deadline_ns, ns, "{deadline}");
        let toml = to_toml(&plan);
        let line = toml.lines().find(|line| line.starts_with("deadline"));
        assert_eq!(line, written);
        assert_eq!(from_toml(&toml).unwrap().processes[0].deadline_ns, ns);
        let bytes = wire::encode(&plan).bytes;
        assert_eq!(wire::decode(&bytes).unwrap().processes[0].deadline_ns, ns);
    }
    let problems = from_toml(&text("deadline = \"250 mm\"\n")).unwrap_err();
    assert!(problems[0].message.contains("deadline"), "{}", problems[0].message);
}

/// A plan of version 2, whose processes have no deadlines, is decoded as one without them.
#[test]
fn plan_of_version_2_is_decoded() {
    let text = "[config]\nsigma_t1_permille = 1100\n[[process]]\nid = 1\ntasks = [5, 6]\n\
                [[process]]\nid = 2\ntasks = [7]\n[[cpu]]\ncpu = 0\nslots = [1, 2, 1]\n";
    let plan = from_toml(text).unwrap();
    let now = wire::encode(&plan).bytes;
    let head = HEADER_BYTES + CONFIG_BYTES + CPU_BYTES;
    let (mut old, mut rest) = (now[..head].to_vec(), &now[head..]);
    for _ in &plan.processes {
        old.extend(&rest[..PROCESS_BYTES_2]);
        rest = &rest[PROCESS_BYTES..];
    }
    old.extend(rest);
    let total_bytes = old.len() as u64;
    old[4..6].copy_from_slice(&VERSION_2.to_ne_bytes());
    old[8..16].copy_from_slice(&total_bytes.to_ne_bytes());
    assert_eq!(wire::encode(&wire::decode(&old).unwrap()).bytes, now);
}

/// Every word of every number that has words is read and written.
#[test]
fn words_of_the_configuration_are_read_and_written() {
    for (index, name) in Config::NAMES.into_iter().enumerate() {
        for (value, word) in (0..).zip(pbs_plan::config_words(name)) {
            let text = format!(
                "[config]\n{name} = \"{word}\"\n[[process]]\nid = 1\ntasks = [5]\n\
                 [[cpu]]\ncpu = 0\nslots = [1]\n"
            );
            let plan = from_toml(&text).unwrap();
            assert_eq!(plan.config.unwrap().values()[index], value, "{word}");
            assert_eq!(pbs_plan::config_word(name, value), Some(word));
            assert!(to_toml(&plan).contains(&format!("{name} = \"{word}\"\n")));
        }
    }
    let policies = pbs_plan::config_words("idle_policy").len();
    assert_eq!(policies, IdlePolicy::ALL.len());
    assert_eq!(pbs_plan::config_words("preemption_way").len(), 4);
    assert_eq!(pbs_plan::config_words("dispatch").len(), 2);
    assert_eq!(pbs_plan::config_words("stress_cause").len(), 3);
    assert_eq!(pbs_plan::config_words("t1_state").len(), 3);
    assert_eq!(pbs_plan::config_word("idle_piece_ns", 0), None);
    assert_eq!(pbs_plan::config_word("idle_policy", policies as u64), None);
}
