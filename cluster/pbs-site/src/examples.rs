// SPDX-License-Identifier: GPL-2.0
//! Sites of the size of Keller's, for tests and measurements.
//!
//! Keller (6) has the number of nodes, cores and accelerators and the sizes of memories of
//! OCuLUS, and the number of nodes and cores of ARMINIUS. How these are spread over nodes
//! is not published; neither are the limits and free pools, but that there are some. That
//! is chosen here.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use pbs_resources::{Condition, Item, Op, Value};

use crate::{
    Consumer, Cron, Kind, Limit, Node, Pool, ReservedCores, Resource, Scope, Share, Site, Validity,
    Weights, Whom,
};

const GIB: u64 = 1 << 30;
const HOUR_S: u64 = 3600;
const DAY_S: u64 = 24 * HOUR_S;

/// Address space of a node beyond its memory.
const SWAP_BYTES: u64 = 16 * GIB;

/// Nodes at one switch.
const PER_SWITCH: usize = 36;

impl Site {
    /// A cluster like OCuLUS: 616 nodes with 9,920 cores, 32 GPUs and 8 Xeon Phis.
    ///
    /// Chosen: 612 nodes have 16 cores and four have 32, which is the one way to make
    /// 9,920 of both. Of the former 552 have 64 GiB and nothing else, 20 have 256 GiB, 32
    /// have 64 GiB and a GPU (`tesla`), eight 64 GiB and a Phi (`mic`); hosts of these keep
    /// a core for them. The four have 1 TiB and Keller's gate for dear nodes (5.4). All
    /// have 16 GiB more `vmem` than `mem` and 36 are at a switch.
    ///
    /// There are 200 users `u1` to `u200` in 70 groups `G1` to `G70`. A group has at most
    /// 45 % of the cores, a request lasts at most 60 days, a user has at most 5,000
    /// requests. From 7 to 19 o'clock on working days a fifth of the cores is kept for
    /// small requests; GPUs are kept for two groups and a user, and for nobody on the first
    /// Monday of every other month.
    pub fn oculus() -> Self {
        let mut nodes = Vec::new();
        add(&mut nodes, "n", 552, &has(16, 64, None));
        add(&mut nodes, "fat", 20, &has(16, 256, None));
        for (name, count, device) in [("gpu", 32, "tesla"), ("phi", 8, "mic")] {
            let host = Node {
                kept: Some(ReservedCores { cores: 1, resource: device.into() }),
                ..has(16, 64, Some(device))
            };
            add(&mut nodes, name, count, &host);
        }
        let compare = |name: &str, op, amount| Condition::Compare { name: name.into(), op, amount };
        let only_if = Condition::Any(vec![
            compare("vmem", Op::AtLeast, 80 * GIB),
            compare("mem", Op::AtLeast, 66 * GIB),
            compare("ncpus", Op::AtLeast, 17),
            compare("duration", Op::AtMost, 12 * HOUR_S),
        ]);
        let smp = Node { only_if: Some(only_if), ..has(32, 1024, None) };
        add(&mut nodes, "smp", 4, &smp);
        let zone = central_europe();
        let mut site = with_nodes("OCuLUS", zone.clone(), nodes);
        site.groups = (1..=70).map(|number| Consumer::ordinary(format!("G{number}"))).collect();
        site.users = (1..=200)
            .map(|number| Consumer {
                groups: vec![format!("G{}", (number - 1) % 70 + 1)],
                ..Consumer::ordinary(format!("u{number}"))
            })
            .collect();
        let most_cores = share(None, 450);
        let of_groups = site.groups.iter().map(|group| Limit {
            items: Some(most_cores),
            ..unlimited(Whom::Group(group.name.clone()), "ncpus")
        });
        site.limits = of_groups.collect();
        site.limits.push(Limit { duration_s: Some(60 * DAY_S), ..unlimited(Whom::Everyone, "*") });
        site.limits
            .push(Limit { items: Some(share(Some(5000), 0)), ..unlimited(Whom::Everyone, "jobs") });
        let small = Condition::All(vec![
            compare("ncpus", Op::Less, 4),
            compare("duration", Op::Less, HOUR_S),
        ]);
        let of_gpus = Condition::Any(vec![
            Condition::Group("G1".into()),
            Condition::Group("G2".into()),
            Condition::User("u3".into()),
            compare("duration", Op::AtMost, 2 * HOUR_S),
        ]);
        let of_working_days = Cron::every(&[7], &[], &[1, 2, 3, 4, 5], 0, 12, &zone);
        let of_maintenance = Cron::every(&[8], &[1, 3, 5, 7, 9, 11], &[1], 1, 10, &zone);
        site.pools = vec![
            pool("small", "ncpus", share(Some(10), 200), small, of_working_days),
            Pool {
                validity: Validity::Always,
                ..pool("gpu", "tesla", share(None, 1000), of_gpus, of_maintenance.clone())
            },
            pool("gpu-maintenance", "tesla", share(None, 1000), nobody(), of_maintenance),
        ];
        site.weights = Weights {
            fixed_start: 100,
            deadline: 50,
            sla: 100,
            reservation: 100,
            resources: BTreeMap::from([("tesla".into(), 20), ("mic".into(), 20)]),
            per_node: 1,
            ..Weights::default()
        };
        site
    }

    /// A cluster like ARMINIUS: 62 nodes with 660 cores.
    ///
    /// Chosen: 41 nodes have 12 cores and 36 GiB, as the host has that Keller's planner
    /// ran on; 21 have 8 cores and 24 GiB. There are no limits and no pools.
    pub fn arminius() -> Self {
        let mut nodes = Vec::new();
        add(&mut nodes, "a", 41, &has(12, 36, None));
        add(&mut nodes, "b", 21, &has(8, 24, None));
        with_nodes("ARMINIUS", central_europe(), nodes)
    }
}

/// Returns the time zone of both clusters. Its rules are explicit, therefore the system does not
/// need a time zone database.
fn central_europe() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap_or(TimeZone::UTC)
}

fn with_nodes(name: &str, zone: TimeZone, nodes: Vec<Node>) -> Site {
    let mut site = Site::new(name, zone);
    let mut names: Vec<&Item> = nodes.iter().flat_map(|node| &node.has).collect();
    names.sort_by(|a, b| a.resource.cmp(&b.resource));
    names.dedup_by(|a, b| a.resource == b.resource);
    for item in names {
        if site.resource(&item.resource).is_none() {
            let kind = match item.value {
                Value::Amount(_) => Kind::Consumable,
                Value::Word(_) => Kind::Attribute,
            };
            site.resources.push(Resource::of_nodes(&item.resource, kind));
        }
    }
    let licence = Resource {
        scope: Scope::Job,
        items: BTreeMap::from([("g03".into(), 4)]),
        ..Resource::of_nodes("sw", Kind::Consumable)
    };
    site.resources.push(licence);
    site.resources[pbs_resources::BUILT_IN.len()..].sort_by(|a, b| a.name.cmp(&b.name));
    site.nodes = nodes;
    site
}

/// A node without a name.
fn has(cores: u64, gib: u64, device: Option<&str>) -> Node {
    let item = |resource: &str, value| Item { resource: resource.into(), value };
    let word = |word: &str| Value::Word(word.into());
    let mut has = vec![
        item("ncpus", Value::Amount(cores)),
        item("mem", Value::Amount(gib * GIB)),
        item("vmem", Value::Amount(gib * GIB + SWAP_BYTES)),
        item("arch", word("linux")),
        item("net", word("IB")),
        item("net", word("Ethernet")),
    ];
    has.extend(device.map(|device| item(device, Value::Amount(1))));
    Node { name: String::new(), has, prio: 0, only_if: None, kept: None, switch: None }
}

fn add(nodes: &mut Vec<Node>, name: &str, count: usize, like: &Node) {
    for number in 1..=count {
        let switch = nodes.len() / PER_SWITCH + 1;
        nodes.push(Node {
            name: format!("{name}{number:03}"),
            switch: Some(format!("leaf{switch}")),
            ..like.clone()
        });
    }
}

fn share(least: Option<u64>, permille: u64) -> Share {
    Share { least, permille: Some(permille).filter(|&permille| permille > 0) }
}

fn unlimited(whom: Whom, resource: &str) -> Limit {
    Limit {
        whom,
        resource: resource.into(),
        items: None,
        soft_permille: None,
        duration_s: None,
        area_s: None,
        validity: Validity::Always,
    }
}

fn nobody() -> Condition {
    Condition::Any(Vec::new())
}

fn pool(name: &str, resource: &str, free: Share, access: Condition, cron: Cron) -> Pool {
    Pool {
        name: name.into(),
        resource: resource.into(),
        free,
        access,
        share: false,
        validity: Validity::Cron(cron),
    }
}
