// SPDX-License-Identifier: GPL-2.0
//! The kernel's side of the node: its device, and what it tells in files.

use std::fs;
use std::path::Path;

use pbs_plan::{wire, Config, Plan};
use pbs_text::Problem;
use pbs_uapi::Device;
use serde_json::{Map, Value};

use crate::Error;

/// Events read at once.
pub(crate) const BATCH: usize = 4096;

/// Directory in which the kernel describes the class.
const SYSFS: &str = "/sys/kernel/pbs";

/// Opens the device at `path`, whose reading does not wait.
pub fn open(path: &Path) -> Result<Device, Error> {
    let refused = |error| Error::Device(path.into(), error);
    let mut device = Device::open_path(path, true).map_err(refused)?;
    // Another file opens as well, and knows none of the calls.
    device.info().map_err(|refusal| refused(refusal.error))?;
    device.map_events();
    Ok(device)
}

/// Writes the plan of that file to the kernel. What the kernel has against it leads
/// to the line of the file.
pub fn write(device: &Device, plan: &Plan, file: &str) -> Result<(), Error> {
    let encoded = wire::encode(plan);
    device.write_plan(&encoded.bytes).map_err(|refused| {
        let Some(offset_bytes) = refused.offset_bytes else {
            return Error::Refused("the kernel refused the plan".into(), refused);
        };
        Error::Invalid {
            file: file.into(),
            problems: vec![Problem::at(
                encoded.line_at(offset_bytes),
                format!("the kernel refused the plan: {refused}"),
            )],
        }
    })
}

/// The numbers of the policy that a plan without its own runs with.
pub fn config() -> Result<Config, Error> {
    let mut values = Config::DEFAULT.values();
    for (name, value) in Config::NAMES.iter().zip(&mut values) {
        let file = Path::new(SYSFS).join("config").join(name);
        let text = fs::read_to_string(&file).map_err(|error| Error::file(&file, error))?;
        let text = text.trim();
        *value = text
            .parse()
            .map_err(|_| Error::not_as_it_should(&file, format!("\"{text}\" is not a number")))?;
    }
    Ok(Config::from_values(values))
}

/// The plan of a CPU, if there is one that has not ended and can be read.
pub(crate) fn in_force(device: &Device, cpu: u32) -> Option<Plan> {
    let state = Path::new(SYSFS).join(format!("cpu{cpu}/state"));
    // Without a state no plan is in force.
    let state = fs::read_to_string(state).unwrap_or_default();
    let followed = !matches!(state.trim(), "offline" | "no_plan" | "ended");
    let bytes = followed.then(|| device.get_plan(cpu).ok())?;
    wire::decode(&bytes?).ok()
}

/// The rate of this node.
///
/// # Errors
///
/// It is none: another machine is to be named.
pub fn rate_insns_per_ms(path: &Path) -> Result<u64, Error> {
    if !path.exists() {
        return Err(Error::NoRate(format!("there is no {}", path.display())));
    }
    let info = open(path)?.info();
    let info = info.map_err(|refused| Error::NoRate(refused.to_string()))?;
    Ok(info.rate_insns_per_ms)
}

/// Returns the kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |text| text.trim().into())
}

/// All that the kernel tells of the class, by its files: the files say themselves what
/// they are, one value each.
pub fn sysfs() -> Value {
    directory(Path::new(SYSFS))
}

/// Directories as objects, files as numbers where they are ones.
fn directory(path: &Path) -> Value {
    let mut entries = Map::new();
    let Ok(files) = fs::read_dir(path) else {
        return Value::Object(entries);
    };
    for file in files.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let path = file.path();
        let value = if path.is_dir() {
            directory(&path)
        } else {
            // A file that cannot be read has no value.
            let text = fs::read_to_string(&path).ok();
            text.map_or(Value::Null, |text| value(text.trim()))
        };
        entries.insert(name, value);
    }
    Value::Object(entries)
}

fn value(text: &str) -> Value {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    text.parse::<i64>().map_or_else(|_| text.into(), Into::into)
}
