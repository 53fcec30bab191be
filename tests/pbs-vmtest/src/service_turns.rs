// SPDX-License-Identifier: GPL-2.0
//! Users take turns at the service, and what they changed survives it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pbs_node_api::{Alteration, Client, Submission};

use crate::harness::{Context, Verdict};
use crate::service::{
    all, all_over, as_user, begin_as_user, job, number, prepare, serve, with_log, ANN, BOB, DIR,
    SOCKET,
};
use crate::{check, check_eq};

/// Connections of the user who asks for much.
const CONNECTIONS: usize = 12;

/// A job that takes long to plan.
fn large() -> Submission {
    let process = |id: usize| {
        let tasks = vec!["1_000_000"; 20].join(", ");
        format!(
            "[[process]]\nid = {id}\nmemory_bytes = 1_000_000\ncommand = [\"true\"]\nattaches = \"itself\"\n\
             tasks = [{tasks}]\n"
        )
    };
    let processes: Vec<_> = (1..=40).map(process).collect();
    let request = format!("name = \"large\"\ndeadline_ns = \"1h\"\n{}", processes.concat());
    Submission { request, ..job("large", "true", 1, 1) }
}

/// A user has a dozen costly requests waiting all the time. Another's request is answered after
/// the one that is being answered and one more.
pub fn service_takes_turns() -> Verdict {
    with_log(takes_turns_inner)
}

fn takes_turns_inner() -> Verdict {
    prepare()?;
    let (_service, _client) = serve()?;
    let (answered, stop) = (format!("{DIR}/answered"), format!("{DIR}/stop"));
    let ann = begin_as_user(ANN, || {
        fs::write(&answered, "").context("answered")?;
        std::thread::scope(|scope| {
            let asks = || -> Verdict {
                let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
                let mut file = fs::OpenOptions::new().append(true).open(&answered);
                let file = file.as_mut().map_err(|error| error.to_string())?;
                while !Path::new(&stop).exists() {
                    client.explain(&large()).context("explain")?;
                    file.write_all(b".").context("answered")?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(asks)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "thread")?)
        })
    })?;
    let count = || fs::metadata(&answered).map_or(0, |file| file.len());
    let until = Instant::now() + Duration::from_secs(30);
    while count() < CONNECTIONS as u64 {
        check!(Instant::now() < until, "{} were answered", count());
        sleep(Duration::from_millis(5));
    }
    let bob = as_user(BOB, || {
        let mut client = Client::connect(Path::new(SOCKET)).context("connect")?;
        for _ in 0..5 {
            let before = count();
            client.status().context("status")?;
            let others = count() - before;
            // One may have been answered and not counted yet, before and after.
            check!(others <= 4, "{others} of the other user's requests were answered before");
            sleep(Duration::from_millis(20));
        }
        Ok(())
    });
    fs::write(&stop, "").context("stop")?;
    ann.end()?;
    bob
}

/// A deadline that was changed while the job ran, and a cancellation that its programs ignored,
/// are known to the service that comes after one that was killed.
pub fn service_keeps_changes() -> Verdict {
    with_log(keeps_changes_inner)
}

fn keeps_changes_inner() -> Verdict {
    prepare()?;
    let (service, mut client) = serve()?;
    let waits = "echo began >> began; while test ! -e go; do sleep 0.05; done";
    let stubborn = format!("trap '' TERM; {waits}");
    let long = job("long", waits, 20_000_000, 300_000);
    let jobs = client.submit(&[long, job("stubborn", &stubborn, 20_000_000, 300_000)]);
    let jobs = jobs.context("submit")?;
    let until = Instant::now() + Duration::from_secs(30);
    while fs::read_to_string(format!("{DIR}/began")).map_or(0, |text| text.lines().count()) < 2 {
        check!(Instant::now() < until, "they do not begin");
        sleep(Duration::from_millis(10));
    }
    let [long, stubborn] = [jobs[0].number, jobs[1].number];
    let later = Alteration { deadline_ns: Some(400_000_000_000), ..Alteration::default() };
    client.alter(&number(long), &later).context("alter")?;
    client.cancel(&number(stubborn)).context("cancel")?;
    // At once, so it can't have killed its programs.
    drop(service);
    let (_service, mut client) = serve()?;
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let jobs = all(&mut client)?;
        let known = jobs.iter().find(|job| job.number == stubborn).ok_or("stubborn")?;
        if known.state == "over" {
            check_eq!(known.outcome.as_deref(), Some("cancelled"), "stubborn: {known:?}");
            break;
        }
        check!(Instant::now() < until, "it goes on: {known:?}");
        sleep(Duration::from_millis(20));
    }
    let shown = client.show(&number(long)).context("show")?.job;
    check_eq!(shown.state, "running", "long: {shown:?}");
    let deadline_ns = shown.deadline_unix_ns.map(|ns| ns - shown.submitted_unix_ns);
    // The two clocks are read one after the other.
    let near = deadline_ns.is_some_and(|ns| ns.abs_diff(400_000_000_000) < 100_000_000);
    check!(near, "its deadline: {deadline_ns:?}");
    fs::write(format!("{DIR}/go"), "").context("go")?;
    let over = all_over(&mut client)?;
    check!(over.iter().any(|job| job.number == long && job.kept == Some(true)), "{over:?}");
    Ok(())
}
