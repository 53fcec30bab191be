// SPDX-License-Identifier: GPL-2.0
//! A run or a simulation as it is kept, to be looked at later.

use std::collections::{BTreeMap, BTreeSet};

use pbs_plan::{from_toml, to_toml, Config, Plan};
use pbs_uapi::Event;
use serde::{Deserialize, Serialize};

use crate::{Deadline, EventView, Facts, Outcome};

/// All that is known of a run or a simulation. `pbsctl run --report` and
/// `pbsctl sim --json` write it, `pbsctl report` reads it; both add fields of
/// their own, which a reader passes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// [`Recording::VERSION`].
    pub version: u32,
    /// Origin of the recording.
    pub source: Source,
    /// Release of the kernel, as `uname -r` prints it; in a simulation the version of the
    /// simulator.
    pub kernel: String,
    /// Way of counting instructions: the name of a `pbs_uapi::Tier`, or the resolution of a
    /// simulation.
    pub tier: String,
    /// Instructions that a CPU retires in a millisecond.
    pub rate_insns_per_ms: u64,
    /// Outcome of the run.
    #[serde(default)]
    pub outcome: Outcome,
    /// The numbers of the policy that were in force, by their names in
    /// [`Config::NAMES`], unless a plan has its own. One that is not here had
    /// its default.
    pub config: BTreeMap<String, u64>,
    /// The plan, and those that came after it, in the order of coming into
    /// force.
    pub plans: Vec<RecordedPlan>,
    /// All events, in order.
    pub events: Vec<EventView>,
}

/// Origin of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `pbsctl sim`
    Simulation,
    /// `pbsctl run`
    Run,
}

/// A plan of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPlan {
    /// Number of the plan, which its events contain.
    pub plan_id: u64,
    /// The plan as `pbs_plan::from_toml` reads it.
    pub toml: String,
}

impl From<&Plan> for RecordedPlan {
    fn from(plan: &Plan) -> Self {
        Self { plan_id: plan.plan_id, toml: to_toml(plan) }
    }
}

/// The numbers of a configuration by their names.
pub fn config_by_name(config: &Config) -> BTreeMap<String, u64> {
    let names = Config::NAMES.iter().map(ToString::to_string);
    names.zip(config.values()).collect()
}

/// A recording that was read and understood.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Deadlines of processes or of jobs, if they are known.
    pub deadlines: Vec<Deadline>,
    /// In the order of coming into force; at least one.
    pub plans: Vec<Plan>,
    /// In force where a plan does not have its own.
    pub config: Config,
    /// All events, in order.
    pub events: Vec<Event>,
    /// Other facts.
    pub facts: Facts,
    /// Origin of the recording.
    pub source: Source,
}

impl Opened {
    /// Reads the JSON of a recording, and the deadlines where it has them.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut opened = Recording::from_json(text)?.open()?;
        // Not every recording has them, nor in this shape.
        let extra = serde_json::from_str::<Extra>(text).unwrap_or_default();
        opened.deadlines = extra.deadlines;
        for process in extra.processes {
            if let (Some(deadline_ns), Some(kept)) = (process.deadline_ns, process.kept) {
                let mut known = opened.plans.iter().flat_map(|plan| &plan.processes);
                let known = known.find(|known| known.id == process.id);
                opened.deadlines.push(Deadline {
                    process: Some(process.id),
                    name: known.map_or_else(|| process.id.to_string(), |known| known.label()),
                    deadline_ns,
                    ended_ns: process.ended_ns,
                    kept,
                });
            }
        }
        Ok(opened)
    }
}

impl Opened {
    /// Process and number of the task that `text` names: the number or the name
    /// of a process, a colon, and the number of a task of it.
    pub fn task(&self, text: &str) -> Result<(u32, u32), String> {
        let processes = || self.plans.iter().flat_map(|plan| &plan.processes);
        let example = || {
            let process = processes().find(|process| !process.tasks.is_empty());
            process.map_or_else(
                || "3:7".into(),
                |process| format!("{}:{}", process.label(), process.tasks[0].id),
            )
        };
        // A name may have a colon.
        let parts = text.rsplit_once(':').map(|(of, task)| (of, task.parse()));
        let Some((of, Ok(task))) = parts else {
            return Err(format!(
                "\"{text}\" is no task; write the number or the name of a process and the number \
                 of a task of it, as in {}",
                example()
            ));
        };
        let with_number = |&id: &u32| processes().any(|process| process.id == id);
        let ids: BTreeSet<_> = match of.parse().ok().filter(with_number) {
            Some(id) => [id].into(),
            None => processes()
                .filter(|process| process.name.as_deref() == Some(of))
                .map(|process| process.id)
                .collect(),
        };
        let ids: Vec<_> = ids.into_iter().collect();
        let [id] = ids[..] else {
            let known: BTreeMap<_, _> = processes().map(|p| (p.id, p.label())).collect();
            let known: Vec<_> = known.into_values().collect();
            return Err(match ids.len() {
                0 => format!("there is no process \"{of}\"; there are {}", some_of(&known)),
                _ => format!(
                    "several processes are called \"{of}\": write the number of one, {ids:?}"
                ),
            });
        };
        let tasks: BTreeSet<_> = processes()
            .filter(|process| process.id == id)
            .flat_map(|process| process.tasks.iter().map(|task| task.id))
            .collect();
        if tasks.contains(&task) {
            return Ok((id, task));
        }
        let tasks: Vec<_> = tasks.iter().map(ToString::to_string).collect();
        Err(format!("process {of} has no task {task}; there are {}", some_of(&tasks)))
    }
}

/// Names in words, but not hundreds of them.
fn some_of(names: &[String]) -> String {
    const MOST: usize = 12;
    match names {
        [] => "none".into(),
        [.., last] if names.len() > MOST => {
            format!("{}, ... {last}", names[..MOST - 1].join(", "))
        }
        _ => names.join(", "),
    }
}

/// Data that a simulation adds to a recording.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Extra {
    /// Deadlines, as in a run.
    deadlines: Vec<Deadline>,
    processes: Vec<ExtraProcess>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExtraProcess {
    id: u32,
    ended_ns: Option<u64>,
    deadline_ns: Option<u64>,
    kept: Option<bool>,
}

impl Recording {
    /// The version of the format that is written, and the only one that is
    /// read.
    pub const VERSION: u32 = 1;

    /// Reads the JSON of a recording.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: Option<u32>,
        }
        let versioned: Versioned =
            serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))?;
        match versioned.version {
            Some(Self::VERSION) => {}
            Some(version) => {
                return Err(format!(
                    "the recording has version {version}, and this pbsctl reads version {}; use \
                     the pbsctl that wrote it, or record again",
                    Self::VERSION
                ))
            }
            None => {
                return Err(
                    "it has no \"version\"; make a recording with pbsctl run --report FILE \
                            or pbsctl --json sim"
                        .into(),
                )
            }
        }
        serde_json::from_str(text).map_err(|error| format!("the recording is damaged: {error}"))
    }

    /// Takes the names and the plans apart.
    pub fn open(&self) -> Result<Opened, String> {
        let mut values = Config::DEFAULT.values();
        for (name, value) in &self.config {
            let known = Config::NAMES.iter().position(|known| known == name);
            let index = known.ok_or_else(|| {
                format!("the policy has no value \"{name}\"; remove it from \"config\"")
            })?;
            values[index] = *value;
        }
        let plan = |recorded: &RecordedPlan| {
            from_toml(&recorded.toml).map_err(|problems| {
                let problem = problems.first().map(|problem| problem.in_file("toml"));
                let problem = problem.map_or_else(String::new, |problem| problem.to_string());
                format!("plan {} of the recording: {problem}", recorded.plan_id)
            })
        };
        let plans: Vec<_> = self.plans.iter().map(plan).collect::<Result<_, _>>()?;
        if plans.is_empty() {
            return Err("the recording has no plan".into());
        }
        let events = self.events.iter().map(Event::try_from);
        Ok(Opened {
            deadlines: Vec::new(),
            plans,
            config: Config::from_values(values),
            events: events.collect::<Result<_, _>>()?,
            facts: Facts {
                kernel: self.kernel.clone(),
                tier: self.tier.clone(),
                rate_insns_per_ms: self.rate_insns_per_ms,
                exits: Vec::new(),
                outcome: self.outcome,
            },
            source: self.source,
        })
    }
}
