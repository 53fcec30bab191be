// SPDX-License-Identifier: GPL-2.0
//! Reading and writing files.

use std::io::Read;
use std::path::Path;

use pbs_plan::{from_toml, leppert, Plan};

use crate::failure::Failure;

/// The text of a file; `-` is standard input.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::file("standard input", &error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))
}

/// What a file is called in messages.
pub(crate) fn name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".into()
    } else {
        file.display().to_string()
    }
}

/// A plan that is valid.
pub(crate) fn read_plan(file: &Path) -> Result<Plan, Failure> {
    from_toml(&read(file)?).map_err(|problems| Failure::Invalid {
        file: name(file),
        problems,
    })
}

/// A plan that is valid, in TOML or in Leppert's grammar.
pub(crate) fn read_any_plan(file: &Path) -> Result<Plan, Failure> {
    let text = read(file)?;
    // No TOML begins with a number and a semicolon.
    let digits = text
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let plan = if digits.starts_with(';') {
        leppert::import(&text, 1, 0)
    } else {
        from_toml(&text)
    };
    plan.map_err(|problems| Failure::Invalid {
        file: name(file),
        problems,
    })
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::file(file, &error))
}
