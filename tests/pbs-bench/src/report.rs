// SPDX-License-Identifier: GPL-2.0
//! From what was measured to rows with targets: table, JSON, picture.

mod chart;
mod planner;
mod rows;

pub use planner::planner;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::figure::Figure;

/// Bound that a value should meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    pub name: String,
    pub value: f64,
    pub unit: String,
    /// The number of the bound; `None`: it stands beside others.
    pub target: Option<f64>,
    /// `None` without a target.
    pub met: Option<bool>,
    #[serde(skip)]
    bound: Option<Bound>,
    /// For people.
    #[serde(skip)]
    pub what: &'static str,
}

impl Measurement {
    fn new(name: String, value: f64, unit: &str, bound: Option<Bound>, what: &'static str) -> Self {
        let compared = bound.map(|bound| match bound {
            Bound::AtMost(target) => (target, value <= target),
            Bound::AtLeast(target) => (target, value >= target),
        });
        Self {
            name,
            value,
            unit: unit.into(),
            target: compared.map(|(target, _)| target),
            met: compared.map(|(_, met)| met),
            bound,
            what,
        }
    }
}

/// Measurements of the boots, by the names of their files.
pub struct Boots(HashMap<String, HashMap<String, Figure>>);

impl Boots {
    /// All `*.jsonl` of a folder.
    fn read(folder: &Path) -> Result<Self, String> {
        let error = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut boots = HashMap::new();
        for entry in fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let (Some(name), true) = (name, path.extension().is_some_and(|end| end == "jsonl"))
            else {
                continue;
            };
            let text = fs::read_to_string(&path).map_err(error)?;
            boots.insert(name.to_owned(), figures(&text)?);
        }
        Ok(Self(boots))
    }

    /// A value, of the boot `boot`.
    fn figure(&self, boot: &str, name: &str) -> Option<&Figure> {
        self.0.get(boot)?.get(name)
    }

    /// Values of a figure in the boots `BOOT-1`, `BOOT-2` and so on.
    fn repeated(&self, boot: &str, name: &str) -> Vec<f64> {
        let boots = (1..).map(|number| format!("{boot}-{number}"));
        boots.map_while(|boot| Some(self.figure(&boot, name)?.value)).collect()
    }
}

fn figures(text: &str) -> Result<HashMap<String, Figure>, String> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let parsed = lines.map(|line| {
        let figure: Figure = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        Ok((figure.name.clone(), figure))
    });
    parsed.collect()
}

/// `pbs-bench report FOLDER`: makes `kernel.json`, `kernel.svg` and `kernel.rst`
/// of the `*.jsonl` there, and prints the table.
pub fn report(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some(folder), None) = (words.next(), words.next()) else {
        return Err("report wants the folder of what was measured".into());
    };
    let folder = Path::new(&folder);
    let boots = Boots::read(folder)?;
    let (rows, missing) = rows::of(&boots);
    for (name, text) in [
        ("kernel.json", json(&rows)?),
        ("kernel.svg", chart::of(&rows)),
        ("kernel.rst", rst(&rows)),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{}", table(&rows));
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("not measured: {}", missing.join(", ")))
    }
}

fn json(rows: &[Measurement]) -> Result<String, String> {
    let text = serde_json::to_string_pretty(rows).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// A number with as many digits as say something.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => {
            let digits = format!("{value:.0}");
            let mut out = String::new();
            for (place, digit) in digits.chars().enumerate() {
                if place != 0 && (digits.len() - place) % 3 == 0 {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        middle if middle >= 100.0 => format!("{value:.0}"),
        small if small >= 0.1 || small == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The cells of a row: name, value with unit, target, whether it is met, words.
fn cells(row: &Measurement) -> [String; 5] {
    [
        row.name.clone(),
        format!("{} {}", number(row.value), row.unit),
        match row.bound {
            Some(Bound::AtMost(target)) => format!("<= {}", number(target)),
            Some(Bound::AtLeast(target)) => format!(">= {}", number(target)),
            None => String::new(),
        },
        match row.met {
            Some(true) => "met".into(),
            Some(false) => "missed".into(),
            None => String::new(),
        },
        row.what.into(),
    ]
}

fn widths(rows: &[[String; 5]]) -> [usize; 5] {
    let mut widths = [0; 5];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

fn lines(rows: &[[String; 5]], widths: &[usize; 5]) -> String {
    let line = |row: &[String; 5]| {
        let [name, value, target, met, what] = row;
        let [a, b, c, d, _] = *widths;
        let line = format!("{name:<a$}  {value:>b$}  {target:>c$}  {met:<d$}  {what}");
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// For a terminal.
fn table(rows: &[Measurement]) -> String {
    let cells: Vec<_> = rows.iter().map(cells).collect();
    lines(&cells, &widths(&cells))
}

/// Formats the rows as a table of reStructuredText.
fn rst(rows: &[Measurement]) -> String {
    let head = ["row", "measured", "target", "", "what"].map(str::to_owned);
    let mut all = vec![head];
    all.extend(rows.iter().map(cells));
    // An empty cell in the first column would go on with the row before.
    let widths = widths(&all).map(|width| width.max(1));
    let rule = widths.map(|width| "=".repeat(width)).join("  ") + "\n";
    format!("{rule}{}{rule}{}{rule}", lines(&all[..1], &widths), lines(&all[1..], &widths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(1306.4), "1,306");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(1.6), "1.60");
        assert_eq!(number(0.0), "0.00");
        assert_eq!(number(0.0007), "0.0007");
    }

    #[test]
    fn boots_are_told_from_other_output() {
        let text = "ready\n{\"name\":\"a\",\"value\":1.5,\"unit\":\"us\"}\n";
        let parsed = figures(text).unwrap();
        assert_eq!(parsed["a"], Figure::new("a", 1.5, "us"));
        assert!(figures("{\"name\":}\n").is_err());
    }
}
