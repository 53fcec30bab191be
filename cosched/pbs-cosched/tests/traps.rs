// SPDX-License-Identifier: GPL-2.0
//! Inputs on which a scheduler that was built in haste goes wrong.

use pbs_cosched::{
    greedy, timing, DeviceType, Edge, Entry, GreedyOptions, Place, Platform, Process, Queues, Slot,
    State, Task, Variant, Where, Workload,
};

/// Table 2.3, by threads; in ns.
const P1: [u64; 8] = [
    456_974_000,
    231_780_000,
    164_420_000,
    133_707_000,
    124_008_000,
    120_069_000,
    116_824_000,
    115_801_000,
];
const P1_GPU: u64 = 201_337_000;
const P2: [u64; 8] = [
    2_568_818_000,
    1_285_409_000,
    858_272_000,
    645_204_000,
    517_763_000,
    433_136_000,
    372_971_000,
    328_102_000,
];

fn on_threads(runtimes: &[u64]) -> Vec<Variant> {
    (1..)
        .zip(runtimes)
        .map(|(threads, &runtime_ns)| Variant {
            model: "OMP".into(),
            place: Place::Threads(threads),
            runtime_ns,
        })
        .collect()
}

fn process(name: &str, arrival_ns: u64) -> Process {
    Process {
        name: name.into(),
        owner: 0,
        arrival_ns,
        deadline_ns: None,
    }
}

/// §2.5.1: each process a chain.
fn section_2_5_1() -> (Workload, Platform) {
    let gpu = Variant {
        model: "GPU".into(),
        place: Place::Device(0),
        runtime_ns: P1_GPU,
    };
    let mut of_p1 = on_threads(&P1);
    of_p1.push(gpu);
    let mut tasks = Vec::new();
    for (process, variants) in [of_p1, on_threads(&P2)].into_iter().enumerate() {
        for number in 0..5 {
            let before = (number > 0).then(|| Edge {
                task: tasks.len() - 1,
                transfer_ns: 0,
            });
            tasks.push(Task {
                name: format!("t{number}"),
                process,
                after: before.into_iter().collect(),
                variants: variants.clone(),
            });
        }
    }
    let processes = vec![process("p1", 0), process("p2", 0)];
    let devices = vec![DeviceType {
        name: "gpu".into(),
        count: 1,
    }];
    (
        Workload { processes, tasks },
        Platform {
            threads: 8,
            devices,
        },
    )
}

#[test]
fn t1_chains_of_table_2_3_as_corrected() {
    let (workload, platform) = section_2_5_1();
    let mut queues = Queues::idle(&platform);
    let entry = Entry {
        process: 0,
        in_execution: true,
        runtime_ns: P1[7],
        end_ns: P1[7],
    };
    for queue in &mut queues.threads {
        queue.push(entry);
    }
    let place = Where::Threads((0..8).collect());
    queues.tasks = vec![State::Started(Slot {
        start_ns: 0,
        end_ns: P1[7],
        place,
    })];
    let mapping = greedy(&workload, &platform, &queues, &GreedyOptions::default());
    let timeline = timing(&workload, &platform, &queues, &mapping).unwrap();
    assert_eq!(timeline.slots[4].as_ref().unwrap().end_ns, 921_149_000);
    assert_eq!(timeline.end_ns(), 1_756_311_000);
}
