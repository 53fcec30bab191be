// SPDX-License-Identifier: GPL-2.0
//! Countable resources of machines, and their amounts in jobs.

use pbs_job::{
    job_from_toml, job_to_json, job_to_toml, machine_from_toml, machine_to_json, machine_to_toml,
    Amount, Draft, DraftProcess, DraftTask, Job, Machine, Problem,
};
use pbs_text::json::toml_of_json;

const NODES: &str = "[[node]]\nname = \"a\"\nmemory_bytes = 1\nrate_insns_per_s = 3\n\
                     cores = [\"c\"]\n[[node]]\nname = \"b\"\nmemory_bytes = 1\n\
                     rate_insns_per_s = 3\ncores = [\"c\"]\n";
const HEAD: &str = "name = \"j\"\ndeadline_ns = 9\n";
const PROCESS: &str = "[[process]]\nid = 1\nmemory_bytes = 1\ntasks = [5]\n";

fn told<T>(read: Result<T, Vec<Problem>>) -> Vec<String> {
    let Err(problems) = read else { return vec!["valid".into()] };
    problems.iter().map(|it| it.in_file("file").to_string()).collect()
}

fn machine(resources: &str) -> Result<Machine, Vec<Problem>> {
    machine_from_toml(&format!("{NODES}{resources}"))
}

fn amount(resource: &str, count: u64) -> Amount {
    Amount { resource: resource.into(), count }
}

#[test]
fn machines_declare_resources() {
    let text = "[[resource]]\nname = \"matlab\"\ncount = 2\n[[resource]]\nname = \"a tape\"\n\
                count = 1_000\nnodes = [\"b\", \"a\"]\n";
    let read = machine(text).unwrap();
    let counts = read.resources.iter().map(|it| (it.name.as_str(), it.count, &it.nodes[..]));
    assert_eq!(counts.collect::<Vec<_>>(), [("matlab", 2, &[][..]), ("a tape", 1_000, &[0, 1])]);
    assert_eq!((read.resource("a tape"), read.resource("bus")), (Some(1), None));
    let same = |again: Machine| {
        let again = again.resources.into_iter().map(|it| (it.name, it.count, it.nodes));
        let first = read.resources.iter().cloned().map(|it| (it.name, it.count, it.nodes));
        assert!(again.eq(first));
    };
    same(machine_from_toml(&machine_to_toml(&read)).unwrap());
    let json = machine_to_json(&read);
    assert_eq!(json["resource"][1]["nodes"][0], "a");
    same(machine_from_toml(&toml_of_json(&json.to_string()).unwrap()).unwrap());
}

#[test]
fn what_is_wrong_with_a_resource_is_told_with_its_remedy() {
    let of = |entry: &str| told(machine(&format!("[[resource]]\n{entry}")));
    assert_eq!(of("count = 1\n"), ["file:11: the resource has no name; add name = \"matlab\""]);
    assert_eq!(of("name = \"matlab\"\n"), ["file:11: resource matlab has no count; add count = 1"]);
    let most = "72_057_594_037_927_936";
    assert_eq!(
        of("name = \"matlab\"\ncount = 0\n"),
        [format!("file:11: count of resource matlab is 0; it must be between 1 and {most}")]
    );
    assert_eq!(
        of("name = \"matlab\"\ncount = 1\nnodes = [\"c\"]\n"),
        ["file:14: there is no node c; write names of nodes: nodes = [\"n0\"]; or leave it out to \
          allow all nodes"]
    );
    assert_eq!(
        of("name = \"matlab\"\ncount = 1\nnodes = []\n"),
        ["file:14: nodes of resource matlab is empty; write names of nodes: nodes = [\"n0\"]; or \
          leave it out to allow all nodes"]
    );
    assert_eq!(
        of("name = \"matlab\"\ncount = 1\nnodes = [\"b\", \"b\"]\n"),
        ["file:11: resource matlab names node b twice; write each once"]
    );
    assert_eq!(
        of("name = \"m\"\ncount = 1\n[[resource]]\nname = \"m\"\ncount = 1\n"),
        ["file:14: resource m is declared already; add this count to that, or rename it"]
    );
    let many: String =
        (0..65).map(|it| format!("[[resource]]\nname = \"r{it}\"\ncount = 1\n")).collect();
    assert_eq!(
        told(machine(&many)),
        ["file: the machine has 65 resources, and at most 64 are allowed; declare fewer"]
    );
}

#[test]
fn jobs_and_processes_name_amounts() {
    let text = format!(
        "{HEAD}resources = {{ tape = 2 }}\n{PROCESS}resources = {{ tape = 1, \"a b\" = 3 }}\n"
    );
    let job = job_from_toml(&text).unwrap();
    assert_eq!(job.resources, [amount("tape", 2)]);
    assert_eq!(job.processes[0].resources, [amount("a b", 3), amount("tape", 1)]);
    // The only process is the initial one, which holds those of the job, too.
    assert_eq!(job.amounts(0), [amount("a b", 3), amount("tape", 3)]);
    let again = job_from_toml(&job_to_toml(&job)).unwrap();
    let amounts = |job: &Job| (job.resources.clone(), job.processes[0].resources.clone());
    assert_eq!(amounts(&again), amounts(&job));
    let json = job_to_json(&job);
    assert_eq!(
        (&json["resources"]["tape"], &json["process"][0]["resources"]["a b"]),
        (&2.into(), &3.into())
    );
    let again = job_from_toml(&toml_of_json(&json.to_string()).unwrap()).unwrap();
    assert_eq!(amounts(&again), amounts(&job));
    // A job that names none has none of these keys.
    let plain = job_from_toml(&format!("{HEAD}{PROCESS}")).unwrap();
    assert!(!plain.holds_resources() && !job_to_toml(&plain).contains("resources"));
    assert!(job_to_json(&plain).get("resources").is_none());
    assert!(job.held_bytes() > plain.held_bytes());
    // The process that forks the others holds those of the job.
    let two = PROCESS.replace("id = 1", "id = 2");
    let job = job_from_toml(&format!("{HEAD}resources = {{ tape = 2 }}\n{PROCESS}{two}")).unwrap();
    let amounts = [vec![], vec![], vec![amount("tape", 2)]];
    assert_eq!((0..3).map(|it| job.amounts(it)).collect::<Vec<_>>(), amounts);
    assert!(job.only_forks(2));
}

#[test]
fn what_is_wrong_with_an_amount_is_told_with_its_remedy() {
    let of = |value: &str| told(job_from_toml(&format!("{HEAD}{PROCESS}resources = {value}\n")));
    let write = "write each resource of the machine with its amount: resources = { matlab = 1 }";
    assert_eq!(of("[\"matlab\"]"), [format!("file:7: resources is no table; {write}")]);
    assert_eq!(
        of("{ matlab = \"1\" }"),
        ["file:7: resource matlab: the amount is \"1\"; write 1 without quotes"]
    );
    let most = "72_057_594_037_927_936";
    assert_eq!(
        of("{ matlab = 0 }"),
        [format!("file:3: resource matlab: the amount is 0; it must be between 1 and {most}")]
    );
    assert_eq!(
        of("{ \"\" = 1 }"),
        ["file:7: resource name \"\" cannot be printed; choose another"]
    );
    let long = "n".repeat(201);
    assert_eq!(
        of(&format!("{{ {long} = 1 }}")),
        ["file:7: the name of a resource has 201 bytes, and at most 200 are allowed; choose a \
          shorter one"]
    );
    let many: Vec<_> = (0..65).map(|it| format!("r{it} = 1")).collect();
    assert_eq!(
        of(&format!("{{ {} }}", many.join(", "))),
        ["file:7: resources names 65 resources, and at most 64 are allowed; name fewer"]
    );
    let twice = Draft {
        name: "j".into(),
        deadline_ns: 9,
        processes: vec![DraftProcess {
            resources: vec![amount("tape", 1), amount("tape", 2)],
            ..DraftProcess::default()
        }],
        tasks: vec![DraftTask { insns: 5, ..DraftTask::default() }],
        ..Draft::default()
    };
    let told = told(twice.check());
    assert!(told[0].contains("resource tape is named twice; write its amount once"), "{told:?}");
}

/// Resources of a whole job are handed on from each of its processes to each of the next job: of a
/// wide job there would be too many edges.
#[test]
fn a_wide_job_does_not_hold_resources_as_a_whole() {
    let processes = |most: usize| -> String {
        (1..=most).map(|it| PROCESS.replace("id = 1", &format!("id = {it}"))).collect()
    };
    let of =
        |most| told(job_from_toml(&format!("{HEAD}resources = {{ m = 1 }}\n{}", processes(most))));
    // With the process that forks them.
    assert_eq!(of(63), ["valid"]);
    assert_eq!(
        of(64),
        ["file: the job holds resources as a whole and has 65 processes, of which at most 64 are \
          allowed then; write resources at its processes"]
    );
}
