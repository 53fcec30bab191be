// SPDX-License-Identifier: GPL-2.0
//! Claims of the theses that need the class itself: each study runs plans in the guest and
//! prints one JSON document.

mod memory;
mod signals;
mod survival;
mod t1;
// Its loops are counted in instructions of arm64, which alone has a PMU here.
#[cfg(target_arch = "aarch64")]
mod tiers;

use pbs_vmtest::harness::{Context, Verdict};
use serde_json::{json, Value};

pub use memory::touch;

type Study = fn() -> Result<Value, String>;

/// Every study by its name.
const STUDIES: &[(&str, Study)] = &[
    ("memory", memory::study),
    ("t1", t1::study),
    #[cfg(target_arch = "aarch64")]
    ("tiers", tiers::study),
    ("signals", signals::study),
    ("survival", survival::study),
];

/// `pbs-vmstudy class NAME`: runs that study.
pub fn measure(mut words: impl Iterator<Item = String>) -> Verdict {
    let name = words.next().ok_or("class wants the name of a study")?;
    let found = STUDIES.iter().find(|(known, _)| *known == name);
    let Some((name, study)) = found else {
        let names: Vec<_> = STUDIES.iter().map(|(name, _)| *name).collect();
        return Err(format!("no study is called {name}; there are {}", names.join(", ")));
    };
    let Value::Object(figures) = study()? else {
        return Err(format!("{name} has no figures"));
    };
    let mut document = json!({ "schema": format!("pbs.class-{name}/1") });
    if let Value::Object(document) = &mut document {
        document.extend(figures);
    }
    println!("{}", serde_json::to_string_pretty(&document).context(name)?);
    Ok(())
}
