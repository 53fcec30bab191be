// SPDX-License-Identifier: GPL-2.0
//! Whereabouts of the CPUs of a machine that makes no progress.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{Image, Monitor};

/// Number of looks, and the time between them.
const LOOKS: u32 = 5;
const BETWEEN: Duration = Duration::from_secs(2);

/// `pbs-bench whereabouts MONITOR OBJ MEMORY`: the kernel functions that all CPUs are in, a few
/// times, by the socket MONITOR and the kernel's object tree OBJ. Leaves the machine's memory in
/// the file MEMORY.
pub fn whereabouts(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some(monitor), Some(obj), Some(memory), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("whereabouts wants the monitor, the object tree and a file".into());
    };
    let image = Image::open(Path::new(&obj))?;
    let mut monitor = Monitor::connect(Path::new(&monitor))?;
    for look in 1..=LOOKS {
        println!("look {look}:");
        print(&image, &monitor.say("info registers -a")?);
        thread::sleep(BETWEEN);
    }
    monitor.say(&format!("dump-guest-memory {memory}"))?;
    Ok(())
}

fn print(image: &Image, registers: &str) {
    for word in registers.split_whitespace() {
        if word.starts_with("CPU#") {
            println!("  {word}");
        }
        for register in ["PC=", "X30="] {
            let value = word.strip_prefix(register);
            let address = value.and_then(|hex| u64::from_str_radix(hex, 16).ok());
            if let Some(address) = address {
                println!("    {register}{address:#018x} {}", image.place(address));
            }
        }
    }
}
