// SPDX-License-Identifier: GPL-2.0
//! The service as a process, with a ledger of its own, and clients of several users.

#![allow(dead_code)] // No test needs all of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use pbs_cluster_api::{Client, Submission};
use pbs_manager::ledger::{Access, Ledger};

/// Users of every system, beside root.
pub(crate) const DAEMON: u32 = 1;
pub(crate) const BIN: u32 = 2;

/// A running service; it is killed at the end.
pub(crate) struct Served {
    pub(crate) directory: PathBuf,
    pub(crate) child: Child,
    options: Vec<String>,
}

/// Site of so many nodes with 16 cores each.
pub(crate) fn site(nodes: u32) -> String {
    format!("name = 'test'\n[[nodes]]\nname = 'n%03d'\ncount = {nodes}\nhas = 'ncpus=16'\n")
}

/// Serves a new ledger with that site in a directory of that name.
pub(crate) fn serve(name: &str, site: &str, options: &[&str]) -> Served {
    serve_prepared(name, options, |ledger| {
        Ledger::create(ledger, site, pbs_uapi::clock::unix_s()).unwrap();
    })
}

/// Serves the ledger that `prepare` creates, in a directory of that name.
pub(crate) fn serve_prepared(name: &str, options: &[&str], prepare: impl FnOnce(&Path)) -> Served {
    let directory =
        std::env::temp_dir().join(format!("pbs-clusterd-{name}-{}", std::process::id()));
    // One of an earlier process with the same number.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    prepare(&directory.join("cluster.db"));
    let options: Vec<String> = options.iter().map(|option| option.to_string()).collect();
    let child = start(&directory, &options);
    wait_for(&directory);
    Served { directory, child, options }
}

fn start(directory: &Path, options: &[String]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbs-clusterd"));
    command.arg("--socket").arg(directory.join("cluster.sock"));
    command.arg("--ledger").arg(directory.join("cluster.db")).args(options);
    // Programs that a test plays.
    if let Ok(path) = std::env::var("PATH") {
        command.env("PATH", format!("{}:{path}", directory.display()));
    }
    command.spawn().unwrap()
}

/// Waits until a service listens.
fn wait_for(directory: &Path) {
    for _ in 0..6000 {
        if Client::connect(&directory.join("cluster.sock")).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the service does not listen");
}

impl Served {
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("cluster.sock")
    }

    /// A client of the user who runs the test.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap()
    }

    /// A client of another user; only root can have one.
    pub(crate) fn client_of(&self, uid: u32) -> Client {
        let socket = self.socket();
        let thread = thread::spawn(move || {
            become_user(uid);
            Client::connect(&socket).unwrap()
        });
        thread.join().unwrap()
    }

    /// Kills the service without a warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the service without a warning, and starts it anew.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = start(&self.directory, &self.options);
        wait_for(&self.directory);
    }

    /// The ledger, read.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.directory.join("cluster.db"), Access::Read).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A service that a test has killed is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The system removes what is left of temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Makes the calling thread another user; only root can.
pub(crate) fn become_user(uid: u32) {
    // SAFETY: without the library's wrapper, only this thread becomes another user.
    #[allow(unsafe_code)]
    let became = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    assert_eq!(became, 0);
}

/// Whether the test runs as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: it only answers.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}

/// A request for so much, for so long.
pub(crate) fn wanted(rset: &str, duration_s: u64) -> Submission {
    Submission { rset: rset.into(), duration_s: Some(duration_s), ..Submission::default() }
}
