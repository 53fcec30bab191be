// SPDX-License-Identifier: GPL-2.0
//! Verdicts that follow from the figures.

use std::fmt;

use pbs_text::grouped;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interval::Share;
use crate::result::Measured;
use crate::{measure, Better, Bound, Claim, Figure};

/// Result of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// All its figures are as claimed.
    Reproduced,
    /// All its figures are as claimed, within a tolerance.
    Within {
        /// The greatest share of the published value by which a figure differs.
        share: f64,
    },
    /// A cost is far below, or a yield far above, what the document reports of its own
    /// implementation; no other figure contradicts. That is no reproduction.
    Better {
        /// The least factor by which a figure is better.
        factor: f64,
    },
    /// All its figures are as claimed, and could not be otherwise: the trial was made from them.
    ByConstruction,
    /// All its figures are as claimed, but draws are too few to exclude chance.
    Undecided {
        /// The figure, and its interval.
        because: String,
    },
    /// A figure is not as claimed.
    Refuted {
        /// The figure, and the reason.
        because: String,
    },
    /// The claim can't be tried at all.
    CannotBeTried {
        /// The reason.
        because: String,
    },
    /// The claim was not tried this time.
    NotTried {
        /// The reason.
        because: String,
    },
    /// The attempt to try the claim failed.
    Failed {
        /// The failure.
        because: String,
    },
}

impl Verdict {
    /// In a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Within { .. } => "within",
            Verdict::Better { .. } => "better",
            Verdict::ByConstruction => "consistent by construction",
            Verdict::Undecided { .. } => "undecided",
            Verdict::Refuted { .. } => "refuted",
            Verdict::CannotBeTried { .. } => "can't be tried",
            Verdict::NotTried { .. } => "not tried",
            Verdict::Failed { .. } => "failed",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Reproduced => f.write_str("reproduced"),
            Verdict::Within { share } => write!(f, "within {} %", short(share * 100.0)),
            Verdict::Better { factor } => {
                write!(f, "better by a factor of {}", in_digits(*factor, 2))
            }
            Verdict::ByConstruction => f.write_str("consistent by construction"),
            Verdict::Undecided { because } => write!(f, "undecided because {because}"),
            Verdict::Refuted { because } => write!(f, "refuted because {because}"),
            Verdict::CannotBeTried { because } => write!(f, "can't be tried because {because}"),
            Verdict::NotTried { because } => write!(f, "not tried: {because}"),
            Verdict::Failed { because } => write!(f, "failed: {because}"),
        }
    }
}

/// A number in four digits that matter; all of a whole one.
pub(crate) fn short(number: f64) -> String {
    in_digits(number, 4)
}

/// A number in so many digits that matter; all of a whole one.
fn in_digits(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number}");
    }
    let decimals = (digits - 1 - number.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{:.decimals$}", number.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if number < 0.0 { "-" } else { "" };
    // What is greater has no name.
    let whole = whole.parse::<i128>().map_or(whole.into(), grouped);
    match rest.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        rest => format!("{sign}{whole}.{rest}"),
    }
}

/// A value in words.
fn in_words(value: &Value, digits: i32) -> String {
    match (value, value.as_f64()) {
        (_, Some(number)) => in_digits(number, digits),
        (Value::String(text), _) => text.clone(),
        (Value::Bool(true), _) => "yes".into(),
        (Value::Bool(false), _) => "no".into(),
        _ => value.to_string(),
    }
}

impl Measured {
    /// The measured and the published value, in words: with so many digits that they differ if the
    /// values do.
    pub(crate) fn words(&self) -> (String, Option<String>) {
        const MOST_DIGITS: i32 = 9;
        let differs = self.differs_by.is_some_and(|share| share.abs() > EXACT);
        let mut digits = 4;
        loop {
            let measured = in_words(&self.measured, digits);
            let published = self.published.as_ref().map(|it| in_words(it, digits));
            let same = published.as_ref() == Some(&measured);
            if !(same && differs) || digits == MOST_DIGITS {
                return (measured, published);
            }
            digits += 1;
        }
    }
}

/// Holds what a command has printed against what is claimed.
pub fn verdict(claim: &Claim, output: &Value) -> (Verdict, Vec<Measured>) {
    let mut values = Vec::with_capacity(claim.figures.len());
    let mut draws = Vec::with_capacity(claim.figures.len());
    for figure in &claim.figures {
        let counted = figure.draws.as_ref().map(|path| count(output, figure, path)).transpose();
        match measure(output, figure).and_then(|value| Ok((value, counted?))) {
            Ok((value, counted)) => {
                values.push(value);
                draws.push(counted);
            }
            Err(why) => {
                let because = format!("the command's output has no '{}': {why}", figure.name);
                return (Verdict::Failed { because }, Vec::new());
            }
        }
    }
    judge(claim, &values, &draws)
}

/// The number of draws of a figure.
fn count(output: &Value, figure: &Figure, path: &str) -> Result<u64, String> {
    let of = Figure { measured: path.into(), scale: None, ..figure.clone() };
    let value = measure(output, &of)?;
    let number = value.as_f64().filter(|number| *number >= 1.0 && number.fract() == 0.0);
    number
        .map(|number| number as u64)
        .ok_or_else(|| format!("{path}: {value} is no number of draws"))
}

/// Holds the measured values of all figures, each with its number of draws, against what is claimed.
pub fn judge(claim: &Claim, values: &[Value], draws: &[Option<u64>]) -> (Verdict, Vec<Measured>) {
    let mut share = 0f64;
    let mut factor = f64::INFINITY;
    let mut wrong = Vec::new();
    let mut undecided = Vec::new();
    let mut figures = Vec::with_capacity(values.len());
    for (figure, value) in claim.figures.iter().zip(values) {
        let (mut compared, chance) = compare(claim, figure, value, values, draws);
        let place = figures.len();
        compared.draws = draws[place];
        compared.interval = share_of(claim, values, draws, place)
            .map(|(share, scale)| share.interval().map(|side| side * scale));
        undecided.extend(chance);
        if compared.holds == Some(false) {
            wrong.push(because(figure, &compared));
        } else if let Some(about) = figure.about {
            let better = better_by(figure, about, value.as_f64().unwrap_or(about));
            if better > 1.0 + NEAR {
                factor = factor.min(better);
            } else {
                share = share.max(compared.differs_by.unwrap_or(0.0).abs());
            }
        } else if figure.within.is_some() {
            share = share.max(compared.differs_by.unwrap_or(0.0).abs());
        }
        figures.push(compared);
    }
    let verdict = if !wrong.is_empty() {
        let because = wrong.join("; ");
        Verdict::Refuted { because }
    } else if !undecided.is_empty() {
        Verdict::Undecided { because: undecided.join("; ") }
    } else if claim.by_construction {
        Verdict::ByConstruction
    } else if factor.is_finite() {
        Verdict::Better { factor }
    } else if share != 0.0 {
        Verdict::Within { share }
    } else {
        Verdict::Reproduced
    };
    (verdict, figures)
}

/// The share that a figure is, and the factor from shares to its unit; nothing if its draws are not
/// known.
fn share_of(
    claim: &Claim,
    values: &[Value],
    draws: &[Option<u64>],
    place: usize,
) -> Option<(Share, f64)> {
    let (value, draws) = (values[place].as_f64()?, draws[place]?);
    let is_percent = claim.figures[place].unit.as_deref().is_some_and(|of| PERCENT.contains(&of));
    let scale = if is_percent { 100.0 } else { draws as f64 };
    Some((Share { share: value / scale, draws }, scale))
}

/// Units of figures that are shares.
const PERCENT: [&str; 2] = ["percent", "%"];

/// Compares a figure with what is claimed. Beside it, the reasons for which chance may have decided.
fn compare(
    claim: &Claim,
    figure: &Figure,
    value: &Value,
    values: &[Value],
    draws: &[Option<u64>],
) -> (Measured, Vec<String>) {
    let own = claim.figures.iter().position(|other| other.name == figure.name);
    let share_at = |place| share_of(claim, values, draws, place);
    let mut chance = Vec::new();
    let mut holds = true;
    let mut differs_by = None;
    if let Some(published) = &figure.published {
        holds = match (value.as_f64(), published.as_f64()) {
            (Some(value), Some(published)) => {
                let difference = value - published;
                let share =
                    if published == 0.0 { difference } else { difference / published.abs() };
                differs_by = Some(share);
                share.abs() <= figure.within.unwrap_or(EXACT)
            }
            _ => value == published,
        };
    }
    let mut words = Vec::new();
    if let Some(about) = figure.about {
        words.push(format!("about {}", short(about)));
        let value = value.as_f64();
        differs_by = value.map(|value| (value - about) / about.abs());
        // A cost or a yield of nothing was not measured.
        let is_near = |value| value > 0.0 && better_by(figure, about, value) >= 1.0 - NEAR;
        holds = value.is_some_and(is_near);
    }
    for (said, bound) in figure.bounds() {
        let limit = match bound {
            Bound::Number(number) => Some(*number),
            Bound::Figure(name) => {
                let place = claim.figures.iter().position(|other| other.name == *name);
                place.and_then(|place| values.get(place)?.as_f64())
            }
        };
        let held = match (value.as_f64(), limit) {
            (Some(value), Some(limit)) => match said {
                "at most" => value <= limit,
                "at least" => value >= limit,
                "less than" => value < limit,
                _ => value > limit,
            },
            _ => false,
        };
        holds &= held;
        let other = match bound {
            Bound::Figure(name) => claim.figures.iter().position(|other| other.name == *name),
            Bound::Number(_) => None,
        };
        let is_strict = matches!(said, "less than" | "more than");
        let own_share = own.and_then(share_at);
        if let (true, true, Some((own, scale)), Bound::Number(number)) =
            (held, is_strict, own_share, bound)
        {
            let [low, high] = own.interval().map(|side| side * scale);
            if low <= *number && *number <= high {
                chance.push(format!(
                    "of {} draws, {} is {} to {} at 95 %",
                    own.draws,
                    figure.name,
                    short(low),
                    short(high)
                ));
            }
        }
        let shares = own_share.zip(other.and_then(share_at));
        if let (true, true, Some(((own, _), (other, _)))) = (held, is_strict, shares) {
            let [low, high] = own.difference(other);
            if low <= 0.0 && high >= 0.0 {
                chance.push(format!(
                    "of {} and {} draws, {} differs by {} to {} percent points at 95 %",
                    own.draws,
                    other.draws,
                    figure.name,
                    short(low * 100.0),
                    short(high * 100.0)
                ));
            }
        }
        let limit = limit.map_or_else(|| "no number".into(), short);
        words.push(match bound {
            Bound::Number(_) => format!("{said} {limit}"),
            Bound::Figure(name) => format!("{said} {name} ({limit})"),
        });
    }
    let measured = Measured {
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        published: figure.published.clone(),
        bound: (!words.is_empty()).then(|| words.join(", ")),
        measured: value.clone(),
        holds: figure.decides().then_some(holds),
        differs_by,
        draws: None,
        interval: None,
    };
    (measured, chance)
}

/// Share by which a measured cost may differ from a reported one that is "about" so much.
const NEAR: f64 = 0.25;

/// Factor by which a value is better than what is reported.
fn better_by(figure: &Figure, about: f64, value: f64) -> f64 {
    match figure.better {
        Some(Better::Less) => about / value.max(f64::MIN_POSITIVE),
        _ => value / about,
    }
}

/// Greatest error of arithmetic on a decimal fraction.
const EXACT: f64 = 1e-9;

/// Reason why a figure is not as claimed.
fn because(figure: &Figure, compared: &Measured) -> String {
    let unit = |text: String| match &figure.unit {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    };
    let (measured, published) = compared.words();
    let (measured, published) = (unit(measured), published.unwrap_or_default());
    let bound = compared.bound.clone().unwrap_or_default();
    if let Some(because) = &figure.because {
        return because
            .replace("{measured}", &measured)
            .replace("{published}", &published)
            .replace("{bound}", &bound);
    }
    let claimed = match (published.is_empty(), bound.is_empty()) {
        (false, true) => published,
        (false, false) => format!("{published}, {bound}"),
        (true, _) => bound,
    };
    format!("{} is {measured}, not {claimed}", figure.name)
}
