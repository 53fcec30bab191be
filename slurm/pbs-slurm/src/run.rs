// SPDX-License-Identifier: GPL-2.0
//! Programs that must not be silent for long.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::steer::Fault;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, Pid, Signal};

/// Greatest length of what a program prints.
const MOST_BYTES: usize = 1 << 28;
/// Greatest number of times that `patience` is waited for all of the output.
const MOST_PATIENCE: u32 = 12;
/// Time between two looks whether a program has ended that has closed its output.
const REAP: Duration = Duration::from_millis(1);

/// Returns the output of a program. One that is silent for longer than `patience` is killed.
///
/// # Errors
///
/// [`Fault::Unreachable`] with the first line of its errors, or that it was silent.
pub(crate) fn output_of(
    program: &str,
    arguments: &[&str],
    patience: Duration,
) -> Result<String, Fault> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Seconds since 1970, whatever the time zone.
    command.env("SLURM_TIME_FORMAT", "%s").env("LC_ALL", "C");
    let failed = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::TimedOut => {
                format!("{program} was silent for {} ms, and was killed", patience.as_millis())
            }
            _ => format!("{program}: {error}"),
        };
        Fault::Unreachable(why)
    };
    // With those that it has started, which may keep its output open.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let ended = read_all(&mut child, patience);
    if ended.is_err() {
        // A group that has ended cannot be killed.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        // A child that was waited for has no status.
        let _ = child.wait();
    }
    let (status, output, errors) = ended.map_err(failed)?;
    if status.success() {
        Ok(String::from_utf8_lossy(&output).into_owned())
    } else {
        let said = String::from_utf8_lossy(&errors);
        Err(Fault::Unreachable(said.lines().next().unwrap_or("it failed").to_string()))
    }
}

/// Reads all that a child prints, until it has ended.
fn read_all(child: &mut Child, patience: Duration) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let mut output = child.stdout.take().ok_or_else(gone)?;
    let mut errors = child.stderr.take().ok_or_else(gone)?;
    let (mut printed, mut said) = (Vec::new(), Vec::new());
    let last = Instant::now() + patience * MOST_PATIENCE;
    let (mut is_printing, mut is_saying) = (true, true);
    while is_printing || is_saying {
        let of_output = is_printing.then(|| output.as_fd());
        let of_errors = is_saying.then(|| errors.as_fd());
        let until = (Instant::now() + patience).min(last);
        let [prints, says] = match ready([of_output, of_errors], until) {
            // What it has started keeps its output open.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => match child.try_wait()? {
                Some(status) => return Ok((status, printed, said)),
                None => return Err(error),
            },
            ready => ready?,
        };
        if prints {
            is_printing = read_some(&mut output, &mut printed)?;
        }
        if says {
            is_saying = read_some(&mut errors, &mut said)?;
        }
    }
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, printed, said));
        }
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(REAP);
    }
}

/// Waits until one of them can be read, and returns which can.
fn ready(fds: [Option<BorrowedFd<'_>>; 2], until: Instant) -> io::Result<[bool; 2]> {
    let there = fds.into_iter().flatten();
    let mut there: Vec<PollFd<'_>> =
        there.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
    let count = match poll(&mut there, Some(&left)) {
        Err(error) if error == rustix::io::Errno::INTR => return Ok([false; 2]),
        polled => polled?,
    };
    if count == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut events = there.iter().map(|fd| !fd.revents().is_empty());
    Ok(fds.map(|fd| fd.is_some() && events.next().unwrap_or(false)))
}

/// Reads a part, and returns whether there may be more.
fn read_some(from: &mut impl Read, to: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 65_536];
    let count = from.read(&mut buffer)?;
    to.extend_from_slice(&buffer[..count]);
    if to.len() > MOST_BYTES {
        return Err(io::Error::other("its output is too long"));
    }
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn sh(script: &str, patience: Duration) -> Result<String, Fault> {
        output_of("/bin/sh", &["-c", script], patience)
    }

    #[test]
    fn output_and_errors_are_read() {
        assert_eq!(sh("echo well; echo ill >&2", LONG), Ok("well\n".into()));
        let much = sh("yes 0123456789 | head -c 1000000; yes | head -c 1000000 >&2", LONG);
        assert_eq!(much.map(|text| text.len()), Ok(1_000_000));
        let failed =
            sh("echo 'slurm_load_jobs error: no'; echo first >&2; echo b >&2; exit 1", LONG);
        assert_eq!(failed, Err(Fault::Unreachable("first".into())));
        assert!(matches!(output_of("/no/such/program", &[], LONG), Err(Fault::Unreachable(_))));
    }

    #[test]
    fn a_silent_program_is_killed_and_reported() {
        let begun = Instant::now();
        let short = Duration::from_millis(200);
        // The second closes its output before.
        for script in ["exec sleep 600", "exec sleep 600 >&- 2>&-"] {
            let Err(Fault::Unreachable(why)) = sh(script, short) else {
                panic!("{script} has ended");
            };
            assert!(why.contains("/bin/sh was silent for 200 ms"), "{why}");
        }
        assert!(begun.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn what_a_silent_program_has_started_is_killed_with_it() {
        let file = std::env::temp_dir().join(format!("pbs-slurm-run-{}", std::process::id()));
        let script = format!("sleep 600 & echo $! >{}; exec sleep 600", file.display());
        assert!(sh(&script, Duration::from_secs(5)).is_err());
        let started: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        // Nobody may take its status, and it is a zombie then.
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{started}/stat"));
            stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|it| !it.starts_with('Z')))
        };
        let begun = Instant::now();
        while is_there() {
            assert!(begun.elapsed() < LONG);
            sleep(REAP);
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn output_of_a_program_that_has_ended_is_complete() {
        let script = "sleep 60 & echo well";
        assert_eq!(sh(script, Duration::from_secs(5)), Ok("well\n".into()));
    }
}
