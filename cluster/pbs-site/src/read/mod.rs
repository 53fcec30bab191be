// SPDX-License-Identifier: GPL-2.0
//! Sites, from TOML.
//!
//! Everything is checked where it is read, so that each problem has its line. What others
//! are named by comes first: resources, then nodes, from which more resources follow, then
//! groups and users, and limits and pools at last, whatever the order of the file.

mod consumers;
mod declared_names;
mod names;
mod nodes;
mod optimise;
mod resources;
mod rules;
mod values;

use jiff::tz::TimeZone;
use pbs_text::reader::{read, Reader, Table};
use pbs_text::Problem;
use toml::de::DeTable;

use self::declared_names::DeclaredNames;
use self::values::MAX_PRIORITY;
use crate::site::LEAST_KEPT_REQUESTS;
use crate::zone::parse_zone;
use crate::{Consumer, Mapping, Resource, Site, Weights};

const TOP_KEYS: &[&str] = &[
    "name",
    "min_dist",
    "default_duration",
    "max_extension",
    "allocate_timeout",
    "release_timeout",
    "planning_horizon",
    "planning_threads",
    "watchdog",
    "keep_ended",
    "keep_ended_requests",
    "threads_per_core",
    "mapping",
    "time_zone",
    "resource",
    "nodes",
    "user",
    "group",
    "limit",
    "pool",
    "defaults",
    "force",
    "priority",
    "optimise",
];

/// Spans of time are at most this, some 136 years, so that sums of a few fit.
const MAX_S: u64 = u32::MAX as u64;

impl Site {
    /// Reads a site and checks it. `Documentation/site-format.rst` has all keys.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in the order of lines, each with what to write instead.
    ///
    /// ```
    /// use pbs_site::Site;
    ///
    /// let site = Site::from_toml(
    ///     r#"
    ///     [[nodes]]
    ///     name = "n%02d"
    ///     count = 16
    ///     has = "ncpus=16:mem=64g:arch=linux"
    ///
    ///     [[limit]]
    ///     for = "group:G1"
    ///     resource = "ncpus"
    ///     items = "30/45%"
    ///     "#,
    /// )
    /// .unwrap();
    /// assert_eq!(site.nodes[15].name, "n16");
    /// assert_eq!(site.most("ncpus", None), 256);
    ///
    /// let problems = Site::from_toml("[[limit]]\nfor = 'user:alice'\nresource = 'ncpu'\n");
    /// let problems = problems.unwrap_err();
    /// let limit = problems.iter().find(|problem| problem.message.contains("ncpu")).unwrap();
    /// assert_eq!(limit.in_file("site.toml").to_string(),
    ///     "site.toml:3: there is no resource ncpu; did you mean ncpus?");
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, Vec<Problem>> {
        read(text, site)
    }
}

fn site(reader: &mut Reader, document: &DeTable<'_>) -> Site {
    let mut top = reader.open(document, "the site", None, TOP_KEYS);
    let zone = zone(reader, &mut top);
    let mut site = Site::new("cluster", zone.clone());
    if let Some((line, value)) = top.entries.remove("name") {
        site.name = reader.string(line, "name", value).unwrap_or_default();
    }
    for (key, least, seconds) in [
        ("min_dist", 1, &mut site.min_dist_s),
        ("default_duration", 1, &mut site.default_duration_s),
        ("allocate_timeout", 0, &mut site.allocate_timeout_s),
        ("release_timeout", 0, &mut site.release_timeout_s),
        ("keep_ended", 1, &mut site.keep_ended_s),
    ] {
        if let Some(span_s) = values::duration_s(reader, &mut top, key, least..=MAX_S) {
            *seconds = span_s;
        }
    }
    site.planning_horizon_s = values::duration_s(reader, &mut top, "planning_horizon", 1..=MAX_S);
    site.watchdog_s = values::duration_s(reader, &mut top, "watchdog", 1..=MAX_S);
    if let Some(requests) = keep_ended_requests(reader, &mut top) {
        site.keep_ended_requests = requests;
    }
    if let Some(threads) = threads(reader, &mut top, "planning_threads") {
        site.planning_threads = usize::try_from(threads).unwrap_or(1);
    }
    site.threads_per_core = threads(reader, &mut top, "threads_per_core").unwrap_or(1);
    site.mapping = mapping(reader, &mut top).unwrap_or_default();
    if let Some(permille) = values::permille(reader, &mut top, "max_extension") {
        site.max_extension_permille = permille;
    }
    let mut known = DeclaredNames {
        zone,
        resources: resources::declared(reader, &mut top),
        groups: Vec::new(),
        users: Vec::new(),
    };
    for resource in &mut known.resources {
        resources::read_validity(reader, document, resource, &known.zone);
    }
    site.nodes = nodes::nodes(reader, &mut top, &mut known);
    site.groups = consumers::groups(reader, &mut top, &known);
    let name = |consumer: &Consumer| consumer.name.clone();
    known.groups = site.groups.iter().map(name).collect();
    site.users = consumers::users(reader, &mut top, &known);
    known.users = site.users.iter().map(name).collect();
    site.limits = rules::limits(reader, &mut top, &known);
    site.pools = rules::pools(reader, &mut top, &known);
    site.defaults = values::items(reader, &mut top, "defaults", &known.resources);
    site.force = values::items(reader, &mut top, "force", &known.resources);
    site.weights = weights(reader, &mut top, &known.resources);
    site.optimise = optimise::optimise(reader, &mut top);
    site.resources = known.resources;
    site
}

fn keep_ended_requests(reader: &mut Reader, top: &mut Table<'_, '_>) -> Option<u64> {
    let (line, value) = top.entries.remove("keep_ended_requests")?;
    let requests = reader.number(line, "keep_ended_requests", value)?;
    if requests < LEAST_KEPT_REQUESTS {
        let message = format!(
            "keep_ended_requests is {requests}; write a number from {LEAST_KEPT_REQUESTS} on"
        );
        reader.problem(line, message);
        return None;
    }
    Some(requests)
}

/// Reads a number of threads: of a core, or of the planner.
fn threads(reader: &mut Reader, top: &mut Table<'_, '_>, key: &str) -> Option<u64> {
    const MOST: u64 = 64;
    let (line, value) = top.entries.remove(key)?;
    let threads = reader.number(line, key, value)?;
    if !(1..=MOST).contains(&threads) {
        let message = format!("{key} is {threads}; write a number from 1 to {MOST}");
        reader.problem(line, message);
        return None;
    }
    Some(threads)
}

fn mapping(reader: &mut Reader, top: &mut Table<'_, '_>) -> Option<Mapping> {
    let (line, value) = top.entries.remove("mapping")?;
    let text = reader.string(line, "mapping", value)?;
    let mapping = Mapping::ALL.into_iter().find(|of| of.name() == text);
    if mapping.is_none() {
        let message = format!("mapping is {text:?}; write cheapest, switches or busy");
        reader.problem(line, message);
    }
    mapping
}

fn zone(reader: &mut Reader, top: &mut Table<'_, '_>) -> TimeZone {
    let Some((line, value)) = top.entries.remove("time_zone") else {
        return TimeZone::UTC;
    };
    let Some(name) = reader.string(line, "time_zone", value) else {
        return TimeZone::UTC;
    };
    if let Some(message) = inverted(&name) {
        reader.problem(line, message);
        return TimeZone::UTC;
    }
    match parse_zone(&name) {
        Some(zone) => zone,
        None => {
            let message = format!(
                "there is no time zone {name:?}; write one as \"Europe/Berlin\", \"+01:00\" or \
                 \"CET-1CEST,M3.5.0,M10.5.0/3\""
            );
            reader.problem(line, message);
            TimeZone::UTC
        }
    }
}

/// Abbreviations of zones that are all east of UTC: `CET+1` is west of it in POSIX.
const EAST: [&str; 8] = ["CET", "MEZ", "EET", "OEZ", "MSK", "IST", "JST", "KST"];

/// The refusal of `UTC+1` and `CET+1`, which are an hour west of UTC in POSIX, and east of it for
/// people. `CET-1` is an hour east of it for both.
fn inverted(name: &str) -> Option<String> {
    let is_west = || name.contains('+');
    let east = EAST.iter().filter(|_| is_west());
    let offset = ["UTC", "GMT", "UT"].iter().chain(east).find_map(|of| {
        let rest = name.get(..of.len()).filter(|start| start.eq_ignore_ascii_case(of));
        rest.and_then(|_| name[of.len()..].strip_prefix(['+', '-']).map(|hours| (of.len(), hours)))
    });
    let (sign_at, hours) = offset?;
    // Summer time may follow: `CET+1CEST`.
    let end = hours.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(hours.len());
    let hours = &hours[..end];
    let (hour, minute) = hours.split_once(':').unwrap_or((hours, "0"));
    let (hour, minute) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
    let at = |sign: &str| format!("{sign}{hour:02}:{minute:02}");
    let (meant, posix) = match &name[sign_at..=sign_at] {
        "+" => (at("+"), at("-")),
        _ => (at("-"), at("+")),
    };
    Some(format!(
        "the time zone {name:?} is {posix} in POSIX, whose signs are the other way round; write \
         \"{meant}\" if that is meant, \"{posix}\" otherwise, or a zone such as \"Europe/Berlin\""
    ))
}

fn weights(reader: &mut Reader, top: &mut Table<'_, '_>, resources: &[Resource]) -> Weights {
    const KEYS: &[&str] = &[
        "best_effort",
        "fixed_start",
        "deadline",
        "slot_aware",
        "provisional",
        "sla",
        "reservation",
        "resource",
        "per_node",
    ];
    let mut weights = Weights::default();
    let Some((line, value)) = top.entries.remove("priority") else {
        return weights;
    };
    let Some(mut table) = reader.table(line, value, "[priority]", KEYS) else {
        return weights;
    };
    if let Some((line, value)) = table.entries.remove("resource") {
        for (line, name, value) in values::entries(reader, line, "resource", value) {
            let known = names::resource(reader, line, name, resources).is_some();
            let weight = values::signed(reader, line, name, value, MAX_PRIORITY);
            if let Some(weight) = weight.filter(|_| known) {
                weights.resources.insert(name.into(), weight);
            }
        }
    }
    for (key, weight) in [
        ("best_effort", &mut weights.best_effort),
        ("fixed_start", &mut weights.fixed_start),
        ("deadline", &mut weights.deadline),
        ("slot_aware", &mut weights.slot_aware),
        ("provisional", &mut weights.provisional),
        ("sla", &mut weights.sla),
        ("reservation", &mut weights.reservation),
        ("per_node", &mut weights.per_node),
    ] {
        *weight = values::priority(reader, &mut table, key);
    }
    weights
}
