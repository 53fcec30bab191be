// SPDX-License-Identifier: GPL-2.0
//! Profile of the instructions of a measure, by kernel function.
//!
//! QEMU records every instruction that the guest executes between two marks, which are calls of
//! times(2). Nothing is sampled, and nothing in the guest takes part in it: the counts here are
//! those of the PMU.

mod calls;
mod image;
mod monitor;
mod trace;
mod whereabouts;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use calls::{Calls, Cost};
use image::Image;
use monitor::Monitor;
pub use whereabouts::whereabouts;

/// Time that the guest may take to reach the part that is measured.
const PATIENCE: Duration = Duration::from_secs(600);

/// Functions with less than this each time are added up.
const LEAST_INSNS: f64 = 1.0;

/// `pbs-bench profile SHARE OBJ`: SHARE is the guest's /mnt, with the monitor of
/// the machine and its output in it, and OBJ the kernel's object tree.
pub fn profile(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some(share), Some(obj), None) = (words.next(), words.next(), words.next()) else {
        return Err("profile wants the shared folder and the object tree".into());
    };
    let (share, obj) = (Path::new(&share), Path::new(&obj));
    let image = Image::open(obj)?;
    let times = wait_for_stretch(&share.join("out"))?;
    let calls = record(share, &image)?;
    print(&image, &calls, times)
}

/// Waits until the guest stands before the stretch; how often the work is done
/// in it.
fn wait_for_stretch(out: &Path) -> Result<f64, String> {
    let begin = Instant::now();
    loop {
        let text = fs::read_to_string(out).unwrap_or_default();
        let mut lines = text.lines();
        let times = lines.clone().find_map(|line| line.strip_prefix("times "));
        if let (Some(times), true) = (times, lines.any(|line| line == "ready")) {
            return times.parse().map_err(|error| format!("times {times}: {error}"));
        }
        if begin.elapsed() > PATIENCE {
            return Err("the guest does not come to what is to be measured".into());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Lets the guest go on and adds up what it executes between the marks.
fn record<'a>(share: &Path, image: &'a Image) -> Result<Calls<'a>, String> {
    let fifo = share.join("trace");
    let made = Command::new("mkfifo").arg(&fifo).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err(format!("mkfifo {} failed", fifo.display()));
    }
    let mark = image.address_of("__arm64_sys_times")?;
    thread::scope(|scope| {
        // QEMU waits for a reader when it opens the file.
        let reader = scope.spawn(|| read_trace(&fifo, image, mark));
        let mut monitor = Monitor::connect(&share.join("monitor"))?;
        monitor.say(&format!("logfile {}", fifo.display()))?;
        // One instruction at a time, and each from the table of blocks, so that
        // each is written down.
        monitor.say("singlestep on")?;
        monitor.say("log exec,nochain")?;
        File::create(share.join("go")).map_err(|error| format!("go: {error}"))?;
        let calls = reader.join().map_err(|_| "the reader of the trace failed")??;
        monitor.say("log none")?;
        monitor.say("singlestep off")?;
        Ok(calls)
    })
}

/// Reads to the second mark; what comes after it is thrown away by a thread that
/// ends with the machine.
fn read_trace<'a>(fifo: &Path, image: &'a Image, mark: u64) -> Result<Calls<'a>, String> {
    let file = File::open(fifo).map_err(|error| format!("{}: {error}", fifo.display()))?;
    let mut lines = BufReader::with_capacity(1 << 20, file);
    let mut calls = Calls::new(image);
    let (mut line, mut marks) = (Vec::new(), 0);
    while marks < 2 {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        if read.map_err(|error| format!("trace: {error}"))? == 0 {
            return Err("the machine ended before the stretch did".into());
        }
        match trace::parse(&line) {
            Some(trace::Step::Executes(pc)) => {
                marks += u32::from(pc == mark);
                if marks == 1 {
                    calls.execute(pc);
                }
            }
            Some(trace::Step::TakenBack) => calls.take_back(),
            None => {}
        }
    }
    thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    calls.finish();
    Ok(calls)
}

fn print(image: &Image, calls: &Calls<'_>, times: f64) -> Result<(), String> {
    let mut costs: Vec<(&str, &Cost)> =
        calls.costs().iter().map(|(symbol, cost)| (image.name(*symbol), cost)).collect();
    costs.sort_by_key(|(name, cost)| (std::cmp::Reverse(cost.insns), *name));
    let names = demangled(&costs)?;
    let each = |count: u64| count as f64 / times;
    let total: u64 = costs.iter().map(|(_, cost)| cost.insns).sum();
    println!("{:>9} {:>7} {:>9}  function", "insns", "calls", "a call");
    let mut rest = 0;
    for (name, cost) in &costs {
        if each(cost.insns) < LEAST_INSNS {
            rest += cost.insns;
            continue;
        }
        let inclusive = match cost.whole_calls {
            0 => String::new(),
            whole => format!("{:.0}", cost.inclusive_insns as f64 / whole as f64),
        };
        println!(
            "{:>9.1} {:>7.2} {inclusive:>9}  {}",
            each(cost.insns),
            each(cost.calls),
            names.get(*name).map_or(*name, String::as_str),
        );
    }
    println!("{:>9.1} {:>7} {:>9}  (less than {LEAST_INSNS} each)", each(rest), "", "");
    println!("{:>9.1} {:>7} {:>9}  kernel instructions each of {times} times", each(total), "", "");
    println!("a call: with all that it calls, where no switch of threads comes between");
    Ok(())
}

/// Names of Rust as they stand in the source.
fn demangled<'a>(costs: &[(&'a str, &Cost)]) -> Result<HashMap<&'a str, String>, String> {
    let error = |error: std::io::Error| format!("llvm-cxxfilt: {error}");
    let mut filter = Command::new("llvm-cxxfilt")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(error)?;
    let text: String = costs.iter().map(|(name, _)| format!("{name}\n")).collect();
    let mut stdin = filter.stdin.take().ok_or("llvm-cxxfilt: no input")?;
    let writer = thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = filter.wait_with_output().map_err(error)?;
    let _written = writer.join();
    let names = String::from_utf8_lossy(&output.stdout);
    let pairs = costs.iter().zip(names.lines());
    Ok(pairs.map(|((name, _), line)| (*name, line.to_owned())).collect())
}
