// SPDX-License-Identifier: GPL-2.0
//! The declaration of claims.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The documents, by the letter that the ids of their claims begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Document {
    /// L: Leppert 2021
    Leppert,
    /// G: C. Glaß 2024
    Glass,
    /// K: Keller, OpenCCS
    Keller,
    /// C: Klein and Pérez 2011, CooRMv2
    Klein,
    /// R: Rados 2019
    Rados,
    /// P: the project's own
    Project,
}

impl Document {
    /// All, in the order in which they are shown.
    pub const ALL: [Document; 6] = [
        Document::Leppert,
        Document::Glass,
        Document::Keller,
        Document::Klein,
        Document::Rados,
        Document::Project,
    ];

    /// Returns the title of the document.
    pub const fn title(self) -> &'static str {
        match self {
            Document::Leppert => "Leppert 2021: prediction failures of a plan-based scheduler",
            Document::Glass => "C. Glaß 2024: memory in plan-based scheduling",
            Document::Keller => "Keller: OpenCCS, planning and mapping of clusters",
            Document::Klein => "Klein and Pérez 2011: CooRMv2, evolving applications",
            Document::Rados => "Rados 2019: co-scheduling of tasks with several implementations",
            Document::Project => "The project's own",
        }
    }

    /// Returns the short name of the document.
    pub const fn short(self) -> &'static str {
        match self {
            Document::Leppert => "Leppert 2021",
            Document::Glass => "Glaß 2024",
            Document::Keller => "Keller",
            Document::Klein => "Klein and Pérez 2011",
            Document::Rados => "Rados 2019",
            Document::Project => "the project",
        }
    }

    const fn letter(self) -> char {
        match self {
            Document::Leppert => 'L',
            Document::Glass => 'G',
            Document::Keller => 'K',
            Document::Klein => 'C',
            Document::Rados => 'R',
            Document::Project => 'P',
        }
    }

    fn of(id: &str) -> Option<Self> {
        let first = id.chars().next()?;
        Document::ALL.into_iter().find(|it| it.letter() == first)
    }
}

/// Whether a claim is among those that are tried always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Set {
    /// Yes.
    #[default]
    Quick,
    /// No, because it takes longer.
    Full,
}

/// Direction in which a figure is better than the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// A cost.
    Less,
    /// A yield.
    More,
}

/// Origin of the figures that a claim is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The document prints them.
    #[default]
    Document,
    /// They follow from what the document prints.
    Derived,
    /// Another implementation of the same reading of the document.
    OtherImplementation,
}

impl Source {
    /// In words, where the document does not print the figures.
    pub const fn told(self) -> Option<&'static str> {
        match self {
            Source::Document => None,
            Source::Derived => Some("derived from the document, which does not print them"),
            Source::OtherImplementation => {
                Some("from another implementation of the same reading of the document")
            }
        }
    }
}

/// Reduction of several values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Their names say it.
pub enum Reduction {
    Min,
    Max,
    Median,
    Mean,
    Sum,
}

/// Value that a figure is compared with.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// Another figure of the claim, by its name.
    Figure(String),
}

/// A figure of a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name of the figure.
    pub name: String,
    /// Unit of the figure.
    pub unit: Option<String>,
    /// Path of the value in the command's output: see [`measure`](crate::measure()).
    pub measured: String,
    /// Reduction of several values there to one.
    pub over: Option<Reduction>,
    /// Factor that the value is multiplied with.
    pub scale: Option<f64>,
    /// Path of the number of draws of which the figure is the share in percent, or else the count.
    pub draws: Option<String>,
    /// The published value: a number, a text or a boolean.
    pub published: Option<Value>,
    /// The share of what was published by which it may differ.
    pub within: Option<f64>,
    /// Cost or yield that the document reports of its own implementation, where what is measured
    /// here may be better.
    pub about: Option<f64>,
    /// Direction in which a figure is better than `about`.
    pub better: Option<Better>,
    /// Claimed upper bound.
    pub at_most: Option<Bound>,
    /// Claimed lower bound.
    pub at_least: Option<Bound>,
    /// Value that the figure is claimed to be less than.
    pub less_than: Option<Bound>,
    /// Value that the figure is claimed to exceed.
    pub more_than: Option<Bound>,
    /// Reason why the claim does not hold, if so; with `{measured}`, `{published}` and `{bound}`.
    pub because: Option<String>,
}

impl Figure {
    /// The bounds that it has, each with its words.
    pub fn bounds(&self) -> impl Iterator<Item = (&'static str, &Bound)> {
        [
            ("at most", &self.at_most),
            ("at least", &self.at_least),
            ("less than", &self.less_than),
            ("more than", &self.more_than),
        ]
        .into_iter()
        .filter_map(|(words, bound)| Some((words, bound.as_ref()?)))
    }

    /// Whether the figure decides if the claim holds.
    pub fn decides(&self) -> bool {
        self.published.is_some() || self.about.is_some() || self.bounds().next().is_some()
    }
}

/// The mutation of a claim that the usual ones do not turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredMutation {
    /// Name of the mutated figure.
    pub figure: String,
    /// Factor that its measured value is multiplied with.
    pub factor: f64,
    /// Fault of the code that would have this effect.
    pub fault: String,
}

/// A claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Id of the claim: the letter of the document, the section, and more where one section has
    /// several.
    pub id: String,
    /// The section of the document.
    pub section: String,
    /// The claim in words.
    pub says: String,
    /// The setup with which the claim is tried.
    #[serde(default)]
    pub setup: String,
    /// The command that measures it.
    pub command: Option<String>,
    /// A program of jq(1) that its output goes through, which is another claim's, too.
    pub filter: Option<String>,
    /// Whether it is tried always.
    #[serde(default)]
    pub set: Set,
    /// Requirement of the command that not every machine meets: `vm` or `slurm`.
    pub needs: Option<String>,
    /// Whether the command measures time: then no other command runs beside it.
    #[serde(default)]
    pub alone: bool,
    /// Whether the figures can't but agree, since the trial was made from the published ones.
    #[serde(default)]
    pub by_construction: bool,
    /// Origin of the figures that it is compared with.
    #[serde(default)]
    pub source: Source,
    /// A picture that the command leaves.
    pub picture: Option<String>,
    /// Content of the published picture.
    pub drawn: Option<String>,
    /// Reason why the claim can't be tried.
    pub cannot: Option<String>,
    /// A remark.
    pub note: Option<String>,
    /// The mutation that turns the verdict, if none of the usual ones does.
    pub mutation: Option<DeclaredMutation>,
    /// The measured figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// Requirements of commands, and what meets them.
pub(crate) const NEEDS: [(&str, &str); 2] = [
    ("vm", "the virtual machine: make kernel user"),
    ("slurm", "a Slurm on this machine: make setup"),
];

impl Claim {
    /// The document that claims it.
    pub fn document(&self) -> Document {
        Document::of(&self.id).unwrap_or(Document::Project)
    }

    /// Problems of the declaration.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut wrong = |what: &str| problems.push(format!("claim {}: {what}", self.id));
        let legal = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
        if !self.id.chars().all(legal) || Document::of(&self.id).is_none() {
            wrong(
                "its id begins with L, G, K, C, R or P, and has letters, digits, dots and hyphens",
            );
        }
        match (&self.command, &self.cannot) {
            (Some(_), Some(_)) => wrong("it has a command, and yet says that it can't be tried"),
            (None, None) => wrong("it has neither a command nor a reason why it can't be tried"),
            (None, Some(_)) if !self.figures.is_empty() => {
                wrong("it has figures, but no command that measures them")
            }
            (Some(_), None) if !self.figures.iter().any(Figure::decides) => {
                wrong("no figure of it says whether it holds: say what was published, or a bound")
            }
            _ => {}
        }
        if self.filter.is_some() && self.command.is_none() {
            wrong("it has a filter, but no command that prints anything");
        }
        let needs = |needs: &String| NEEDS.iter().all(|(name, _)| name != needs);
        if self.needs.as_ref().is_some_and(needs) {
            let names: Vec<_> = NEEDS.iter().map(|(name, _)| *name).collect();
            wrong(&format!("what it needs is one of {}", names.join(", ")));
        }
        if let Some(mutation) = &self.mutation {
            if self.figures.iter().all(|figure| figure.name != mutation.figure) {
                wrong(&format!("its mutation is of '{}', which it has not", mutation.figure));
            }
            if mutation.fault.is_empty() {
                wrong("its mutation names no fault that would have this effect");
            }
        }
        let mut names = BTreeSet::new();
        for figure in &self.figures {
            if !names.insert(&figure.name) {
                wrong(&format!("it has two figures '{}'", figure.name));
            }
            if figure.about.is_some() != figure.better.is_some()
                || figure.about.is_some() && figure.published.is_some()
            {
                wrong(&format!(
                    "figure '{}' has either published, or about and better",
                    figure.name
                ));
            }
            if figure.within.is_some() && !matches!(figure.published, Some(Value::Number(_))) {
                wrong(&format!(
                    "figure '{}' is within a share of no published number",
                    figure.name
                ));
            }
            for (_, bound) in figure.bounds() {
                if let Bound::Figure(name) = bound {
                    if self.figures.iter().all(|other| other.name != *name) {
                        wrong(&format!(
                            "figure '{}' is compared with '{name}', which it has not",
                            figure.name
                        ));
                    }
                }
            }
        }
        problems
    }
}

/// The declaration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// In the order in which they are shown.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

impl Claims {
    /// Reads a declaration; the problems are told all at once, a line each.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let mut claims: Claims = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut problems: Vec<_> = claims.claims.iter().flat_map(Claim::problems).collect();
        let mut ids = BTreeSet::new();
        for claim in &claims.claims {
            if !ids.insert(&claim.id) {
                problems.push(format!("claim {}: there are two of that id", claim.id));
            }
        }
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        // By document; within one they stay as they are declared.
        claims.claims.sort_by_key(Claim::document);
        Ok(claims)
    }

    /// Reads and checks the claims in a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{error}"));
        text.and_then(|text| Self::from_toml(&text))
            .map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Leaves only those that one of `names` means: an id, or what ids begin with.
    pub fn select(&mut self, names: &[String]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !self.claims.iter().any(|claim| claim.id.starts_with(name)) {
                return Err(format!("no claim begins with '{name}'; --list shows all of them"));
            }
        }
        // A whole id means that claim alone.
        let is_whole = |name: &String| self.claims.iter().any(|claim| claim.id == *name);
        let (whole, begins): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_whole(name));
        self.claims.retain(|claim| {
            whole.contains(&&claim.id) || begins.iter().any(|name| claim.id.starts_with(*name))
        });
        Ok(())
    }
}
