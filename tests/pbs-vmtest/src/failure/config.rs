// SPDX-License-Identifier: GPL-2.0
//! The numbers of the configuration, in plans and in sysfs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use pbs_core::wire::HEADER_BYTES;
use pbs_core::{Config, IdlePolicy};
use pbs_uapi::Device;

use crate::harness::{set_sysfs, sysfs_number, Context, Plan, Verdict};
use crate::input::kit::{last_refusal, refused};
use crate::{check, check_eq};

/// A number: name, default, least and most beside the others' defaults, and a
/// value that is none of these.
type Number = (&'static str, u64, u64, u64, u64);

/// The numbers of include/uapi/linux/pbs.h, in its order.
const NUMBERS: [Number; Config::COUNT] = [
    ("sigma_t1_permille", 1_050, 1_001, 100_000, 1_200),
    ("preemption_limit_ns", 50_000_000, 0, 1 << 48, 60_000_000),
    ("no_preemption_ns", 4_000_000, 0, 50_000_000, 5_000_000),
    ("ceiling_factor_permille", 2_000, 1_000, 1_000_000, 3_000),
    ("ceiling_extra_ns", 10_000_000, 100_000, 3_600_000_000_000, 20_000_000),
    ("window_period_ns", 100_000_000, 1_000_000, 10_000_000_000, 200_000_000),
    ("window_unallocated_ns", 5_000_000, 1_000_000, 90_000_000, 6_000_000),
    ("sigma_t2_permille", 1_500, 1_051, 100_000, 1_700),
    ("t2_spacer_ns", 20_000_000, 4_000_001, 1 << 49, 30_000_000),
    ("t2_task_signaling_limit_ns", 1_000_000_000, 50_000_001, 1 << 49, 2_000_000_000),
    ("max_preemptions", 5, 1, 1_000_000, 9),
    ("capacity_buffer_permille", 1_111, 1_000, 100_000, 1_300),
    ("available_plan_buffer_permille", 500, 0, 1_000, 700),
    ("reschedule_time_ns", 10_000_000, 0, 1 << 48, 11_000_000),
    ("t2_min_process_ns", 20_000_000, 0, 1 << 48, 21_000_000),
    ("t2_node_lateness_cap_permille", 1_100, 1_000, 100_000, 1_200),
    ("tm2_node_earliness_cap_permille", 100, 0, 1_000, 200),
    ("stress_reset", 50, 0, 1_000_000, 60),
    ("stress_gain_ns", 4_000_000, 0, 1 << 40, 5_000_000),
    ("nominal_tick_ns", 4_000_000, 100_000, 1_000_000_000, 1_000_000),
    ("thresholds", 2047, 0, 2047, 170),
    ("idle_policy", 0, 0, IdlePolicy::ALL.len() as u64 - 1, 1),
    ("idle_is_lateness", 0, 0, 1, 1),
    ("t1_spares_last_slot", 1, 0, 1, 0),
    ("kernel_budget_permille", 20, 1, 1000, 30),
    ("tm2_node_lower_bound_ns", 100_000_000, 0, 1 << 48, 21_000_000),
    ("sigma_memory_permille", 1_100, 0, 100_000, 1_200),
    ("memory_spacer_bytes", 1 << 20, 0, 1 << 48, 2 << 20),
    ("memory_signaling_limit_bytes", 256 << 20, 1 << 20, 1 << 56, 512 << 20),
    ("preemption_way", 0, 0, 3, 2),
    ("idle_piece_ns", 10_000_000, 100_000, 1 << 48, 5_000_000),
    ("dispatch", 0, 0, 1, 1),
    ("stress_cause", 0, 0, 2, 1),
    ("reschedule_time_measured", 0, 0, 1, 1),
    ("info_is_dealt", 0, 0, 1, 1),
    ("least_progress_permille", 0, 0, 1000, 100),
    ("sigma_tm2_permille", 0, 0, 1000, 600),
    ("tm2_spacer_ns", 0, 0, 1 << 49, 5_000_000),
    ("tm2_task_signaling_limit_ns", 0, 0, 1 << 49, 3_000_000),
    ("t1_state", 0, 0, 2, 1),
    ("suspends_failed", 0, 0, 1, 1),
    ("t2_message_ns", 20_000_000, 0, 1 << 48, 5_000_000),
    ("tm2_message_ns", 100_000_000, 0, 1 << 48, 6_000_000),
    ("timeliness_ns", 0, 0, 1 << 48, 7_000_000),
    ("volatile_interval_ns", 0, 0, 1 << 48, 8_000_000),
];

/// Numbers whose value bounds that of another.
const BOUND_OTHERS: [&str; 5] = [
    "sigma_t1_permille",
    "preemption_limit_ns",
    "no_preemption_ns",
    "window_period_ns",
    "memory_spacer_bytes",
];

/// The defaults with the number at `place` replaced.
fn with(place: usize, value: u64) -> Config {
    let mut values = Config::DEFAULT.values();
    values[place] = value;
    Config::from_values(values)
}

/// None of the numbers is the default.
fn all_others() -> Config {
    Config::from_values(NUMBERS.map(|(.., other)| other))
}

/// The values just outside its range.
fn outside(least: u64, most: u64) -> impl Iterator<Item = u64> {
    least.checked_sub(1).into_iter().chain([most + 1])
}

fn plan(config: Config) -> Plan {
    Plan::new(1).config(config).slot(1, 0, 1_000_000)
}

/// t1 that would not lie below t2_task in every case, by one of the numbers of
/// t1: the number of t2_task is named.
const T1_ABOVE_T2: [(&str, u64, &str); 3] = [
    ("sigma_t1_permille", 1_500, "sigma_t2_permille"),
    ("preemption_limit_ns", 1_000_000_000, "t2_task_signaling_limit_ns"),
    ("no_preemption_ns", 20_000_000, "t2_spacer_ns"),
];

fn place_of(name: &str) -> Result<usize, String> {
    let place = NUMBERS.iter().position(|number| number.0 == name);
    place.ok_or_else(|| format!("{name} is no number"))
}

/// Each number of a plan is taken and read back, and refused outside its range
/// with a reason that says what to write.
pub fn numbers_of_a_plan() -> Verdict {
    let device = Device::open().context("open")?;
    check_eq!(
        Config::DEFAULT,
        Config::from_values(NUMBERS.map(|(_, default, ..)| default)),
        "defaults"
    );
    let take = |what: &str, config| {
        let plan = plan(config);
        device.write_plan(&plan.bytes()).context(what)?;
        check_eq!(
            device.get_plan(0).context("get plan")?,
            plan.read_back(0),
            "what is read back of {what}"
        );
        Ok::<(), String>(())
    };
    take("all others", all_others())?;
    for (place, (name, _, least, most, other)) in NUMBERS.into_iter().enumerate() {
        take(name, with(place, other))?;
        if !BOUND_OTHERS.contains(&name) {
            take(name, with(place, least))?;
            take(name, with(place, most))?;
        }
        for value in outside(least, most) {
            let bytes = plan(with(place, value)).bytes();
            let reason = refused(name, device.write_plan(&bytes), libc::EINVAL)?;
            let words = {
                let why = Config::why_not_less(name, value, least);
                format!("{name} is {value}; write {least} to {most}{why}")
            };
            check_eq!(reason, words, "reason");
            check_eq!(
                last_refusal(&device)?.offset_bytes,
                (HEADER_BYTES + 8 * place) as u64,
                "where {name} is wrong"
            );
        }
    }
    for (name, value, of_t2) in T1_ABOVE_T2 {
        let bytes = plan(with(place_of(name)?, value)).bytes();
        let reason = refused(name, device.write_plan(&bytes), libc::EINVAL)?;
        check!(reason.contains(of_t2), "{name} of {value}: {reason}");
    }
    Ok(())
}

/// The kernel's log from now on.
struct Log(File);

impl Log {
    fn open() -> Result<Self, String> {
        let mut options = File::options();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut file = file.open("/dev/kmsg").context("/dev/kmsg")?;
        file.seek(SeekFrom::End(0)).context("/dev/kmsg")?;
        Ok(Self(file))
    }

    /// Returns the log since the last call.
    fn read(&mut self) -> String {
        let mut text = String::new();
        let mut record = [0; 1024];
        // Each read is one record; after the last it fails.
        while let Ok(count) = self.0.read(&mut record) {
            text += &String::from_utf8_lossy(&record[..count]);
        }
        text
    }
}

/// Each number of the node is shown, taken, and refused outside its range; the
/// log says why. Plans that bring no numbers run with these.
pub fn numbers_in_sysfs() -> Verdict {
    let mut log = Log::open()?;
    let file = |name: &str| format!("config/{name}");
    let mut refuse = |name: &str, text: &str, words: &str| {
        let before = sysfs_number(&file(name))?;
        let error = set_sysfs(&file(name), text).err().unwrap_or_default();
        check!(
            error.contains("os error 22"),
            "{text} in {name} was not refused with EINVAL, but: {error}"
        );
        check_eq!(sysfs_number(&file(name))?, before, "{name} after {text}");
        let said = log.read();
        check!(said.contains(words), "the log says of {text} in {name}: {said}");
        Ok::<(), String>(())
    };
    for (name, default, least, most, _) in NUMBERS {
        check_eq!(sysfs_number(&file(name))? as u64, default, "default of {name}");
        for value in outside(least, most) {
            let words = {
                let why = Config::why_not_less(name, value, least);
                format!("{name} is {value}; write {least} to {most}{why}")
            };
            refuse(name, &value.to_string(), &words)?;
        }
        for text in ["\n", "-1", "1.5", "many"] {
            refuse(name, text, "")?;
        }
    }
    for (name, value, of_t2) in T1_ABOVE_T2 {
        refuse(name, &value.to_string(), of_t2)?;
    }
    for (name, .., other) in NUMBERS {
        set_sysfs(&file(name), &other.to_string())?;
        check_eq!(sysfs_number(&file(name))? as u64, other, "{name}");
    }
    let device = Device::open().context("open")?;
    let bare = Plan::new(1).without_config().slot(1, 0, 1_000_000);
    device.write_plan(&bare.bytes()).context("plan")?;
    check_eq!(
        device.get_plan(0).context("get plan")?,
        plan(all_others()).read_back(0),
        "a plan without numbers"
    );
    Ok(())
}
