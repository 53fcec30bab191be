// SPDX-License-Identifier: GPL-2.0
//! Random requests, laid out by the planner as by a real Slurm: on as many nodes, and with no more on
//! any node than is planned there.
//!
//! They need a cluster of eight nodes, and are run in one by `tests/slurm-layout`. `PBS_REQUESTS` is
//! the number of requests, and `PBS_SEED` chooses them.

#[path = "common/slurm.rs"]
mod lab;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use lab::*;
use serde_json::Value;

/// Reads a number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|of| of.parse().ok()).unwrap_or(default)
}

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        // The constants are Knuth's.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Options of a random request for nodes of four cores, 1000 MB and two accelerators.
fn request(random: &mut Random) -> Vec<String> {
    let tasks = 1 + random.below(9);
    let mut options = vec![format!("-n{tasks}")];
    let of_task = if random.one_in(3) { 1 + random.below(3) } else { 1 };
    if of_task > 1 {
        options.push(format!("-c{of_task}"));
    }
    match random.below(4) {
        0 => options.push(format!("-N{}", 1 + random.below(tasks.min(6)))),
        1 => options.push(format!("--ntasks-per-node={}", 1 + random.below(4))),
        _ => {}
    }
    match random.below(6) {
        0 => options.push(format!("--mem-per-cpu={}", 100 + 50 * random.below(10))),
        1 => options.push(format!("--mem={}", 100 + 100 * random.below(8))),
        _ => {}
    }
    match random.below(9) {
        0 => options.push("--gpus-per-task=1".into()),
        1 => options.push(format!("--gres=gpu:{}", 1 + random.below(2))),
        2 if of_task == 1 => {
            options.extend(["--gpus-per-node=1".into(), "--cpus-per-gpu=2".into()]);
        }
        3 => options.push(format!("--mincpus={}", 1 + random.below(4))),
        4 => options.push("-Lmatlab:1".into()),
        5 => options.push("--constraint=ib".into()),
        _ => {}
    }
    options
}

/// The site of the cluster, as the doctor writes it.
fn lab(name: &str) -> Lab {
    let conf = std::env::var("SLURM_CONF").unwrap();
    let site = slurm_directory().join("doctor.toml");
    let path = site.to_string_lossy().into_owned();
    let doctor = ["cluster", "doctor", "--conf", &conf, "--site", &path];
    run(env!("CARGO_BIN_EXE_pbsctl"), &doctor);
    let text = fs::read_to_string(site).unwrap();
    Lab::of_site(name, &format!("allocate_timeout = '5s'\nrelease_timeout = '5s'\n{text}"))
}

/// What Slurm would do with a request if it were alone: nodes and cores; `None`: nothing.
fn of_slurm(options: &[String]) -> Option<(u64, u64)> {
    let mut command = vec!["--test-only", "-t5", "-p", "plan", "-D", "/tmp", "--wrap", "true"];
    command.extend(options.iter().map(String::as_str));
    let (text, is_well) = try_run("sbatch", &command);
    if !is_well {
        assert!(text.contains("configuration is not available"), "{options:?}: {text}");
        return None;
    }
    let after = |word: &str| text.split(word).nth(1).and_then(|rest| rest.split(' ').next());
    let cpus = after(" using ").and_then(|of| of.parse().ok()).unwrap();
    Some((nodes_of(after(" on nodes ").unwrap()).len() as u64, cpus))
}

/// Waits until each job has a plan or was declined.
fn wait_for_plans(jobs: &[String]) {
    until("all have an answer", || {
        let all = run("scontrol", &["show", "job", "-o"]);
        let is_answered = |line: &str| {
            ["planned", "declined"].iter().any(|word| line.contains(&format!("Comment=\"{word}")))
        };
        let number =
            |line: &str| line.split(' ').next()?.strip_prefix("JobId=").map(str::to_string);
        let answered = all.lines().filter(|line| is_answered(line)).filter_map(number);
        let answered: BTreeSet<String> = answered.collect();
        // Jobs of other tests may have answers, too.
        jobs.iter().all(|job| answered.contains(job))
    });
}

#[test]
#[ignore = "needs a cluster"]
fn requests_get_as_many_nodes_as_from_slurm() {
    let lab = lab("layout-nodes");
    let (count, seed) = (number("PBS_REQUESTS", 200), number("PBS_SEED", 1));
    let mut random = Random(seed);
    let requests: Vec<Vec<String>> = (0..count).map(|_| request(&mut random)).collect();
    let expected: Vec<_> = requests.iter().map(|options| of_slurm(options)).collect();
    let jobs: Vec<String> = requests
        .iter()
        .map(|options| {
            let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
            // They only get their places.
            all.extend(["-t5", "--begin=now+10hours"]);
            submit(&all, "true")
        })
        .collect();
    wait_for_plans(&jobs);
    let (mut declined, mut stricter, mut wrong) = (0, 0, Vec::new());
    for ((job, options), expected) in jobs.iter().zip(&requests).zip(expected) {
        let nodes = lab.planned_nodes(job).len() as u64;
        let Some((of_slurm, _)) = expected else {
            let said = show(job, "AdminComment");
            if nodes != 0 {
                wrong.push(format!("{options:?}: {nodes} nodes, and Slurm has no room"));
                continue;
            }
            assert!(said.starts_with("\"declined:"), "{options:?}: {said}");
            declined += 1;
            continue;
        };
        let said = run("scontrol", &["show", "job", "-o", job]);
        // Without a memory of each core, Slurm counts cores in all, and cuts tasks in two.
        let of_task = number_of(options, "-c");
        let whole = number_of(options, "-n").div_ceil(4 / of_task);
        let has = |prefix: &str| options.iter().any(|option| option.starts_with(prefix));
        let is_cut = has("-N") && whole > of_slurm;
        // Of one task, squeue shows memory of a node as that of a core: the plan takes the greater.
        let is_greater = has("-n1") && has("--mem=") && has("--ntasks-per-node");
        if nodes == 0 && (is_cut || is_greater) {
            let said = show(job, "AdminComment");
            assert!(said.starts_with("\"declined:"), "{options:?}: {said}");
            stricter += 1;
        } else if nodes != of_slurm.max(whole) {
            let said = said.split("AdminComment=").nth(1).unwrap_or_default();
            wrong.push(format!("{options:?}: {nodes} nodes, {of_slurm} from Slurm: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
    println!("{count} requests of seed {seed}: as many nodes as from Slurm; {declined} declined, {stricter} more than by Slurm");
}

/// Number of cores that the options request.
fn asked(options: &[String]) -> u64 {
    number_of(options, "-n") * number_of(options, "-c")
}

/// Number of an option; 1: it is not given.
fn number_of(options: &[String], prefix: &str) -> u64 {
    let option = options.iter().find_map(|option| option.strip_prefix(prefix));
    option.map_or(1, |number| number.parse().unwrap())
}

/// What a job has on each node: cores, MB and accelerators.
type Parts = BTreeMap<String, [u64; 3]>;

/// Reads what `scontrol show job -d` prints of a running job.
fn allocated(text: &str) -> Parts {
    let mut parts = Parts::new();
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("Nodes=")) {
        let value = |name: &str| {
            let word = line.split(' ').find_map(|word| word.strip_prefix(name));
            word.unwrap_or_default()
        };
        let cpus = value("CPU_IDs=").split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap() + 1
        });
        let gpus = value("GRES=gpu:").split('(').next().unwrap_or_default();
        let has = [cpus.sum(), value("Mem=").parse().unwrap(), gpus.parse().unwrap_or(0)];
        parts.extend(nodes_of(value("Nodes=")).into_iter().map(|node| (node, has)));
    }
    parts
}

/// What is planned on each node of a row.
fn planned(row: &Value) -> Parts {
    let rset = row["rset"].as_str().unwrap();
    let chunk = rset.split(',').next().unwrap().trim_start_matches("rset=");
    let amount = |name: &str| -> u64 {
        let item = chunk.split(':').find_map(|item| item.strip_prefix(name));
        item.map_or(0, |of| pbs_resources::parse_size_bytes(of).unwrap())
    };
    let has = [amount("ncpus="), amount("mem=") >> 20, amount("gres-gpu=")];
    let nodes = row["nodes"].as_array().unwrap().iter();
    nodes.map(|node| (node["node"].as_str().unwrap().to_string(), has)).collect()
}

#[test]
#[ignore = "needs a cluster"]
fn no_node_gives_more_than_is_planned_there() {
    let lab = lab("layout-run");
    let seen = lab.directory.join("seen");
    fs::create_dir(&seen).unwrap();
    fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
    let (count, seed) = (number("PBS_RUNS", 24), number("PBS_SEED", 1));
    let mut random = Random(seed.wrapping_add(1 << 40));
    let mut jobs = Vec::new();
    while jobs.len() < count as usize {
        let options = request(&mut random);
        if of_slurm(&options).is_some() {
            let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
            all.push("-t1");
            let script = format!(
                "scontrol show job -d $SLURM_JOB_ID > {}/$SLURM_JOB_ID; sleep 1",
                seen.display()
            );
            jobs.push((submit(&all, &script), options));
        }
    }
    for (job, options) in &jobs {
        lab.ends_as(job, "completed");
        let text = fs::read_to_string(seen.join(job)).unwrap();
        let has = allocated(&text);
        let row = lab.rows(job).pop().unwrap();
        let planned = planned(&row);
        let on = |parts: &Parts| parts.keys().cloned().collect::<Vec<_>>();
        assert_eq!(on(&has), on(&planned), "{options:?}: {text}");
        for (node, has) in &has {
            let is_planned = has.iter().zip(&planned[node]).all(|(has, planned)| has <= planned);
            assert!(is_planned, "{options:?} on {node}: {has:?} of {:?}: {text}", planned[node]);
        }
        let cpus = |parts: &Parts| parts.values().map(|has| has[0]).sum::<u64>();
        assert!(cpus(&has) >= asked(options), "{options:?}: {text}");
        println!(
            "{job}: {}: {} cores of {} planned",
            options.join(" "),
            cpus(&has),
            cpus(&planned)
        );
    }
}
