// SPDX-License-Identifier: GPL-2.0
//! A second slurmctld beside that of the cluster, with nodes of any kind.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use pbs_slurm::conf::{read, Conf};

use crate::lab::{run, slurm_directory, until};

/// Partition of all nodes of the second slurmctld.
pub(crate) const PARTITION: &str = "all";
/// Word in lines about nodes that becomes the address of this machine. Slurm looks up the name of
/// a node without an address, and waits.
pub(crate) const HERE: &str = "HERE";
/// Number of ports of the cluster at most: one of its slurmctld, and one of each node.
const PORTS: u64 = 98;

/// A slurmctld with a configuration of its own, until this is dropped.
pub(crate) struct Slurmctld {
    directory: PathBuf,
    daemons: Vec<Child>,
}

impl Slurmctld {
    /// Starts slurmctld with `SelectTypeParameters` and lines about nodes. No node runs.
    pub(crate) fn new(name: &str, select: &str, nodes: &str) -> Self {
        let directory = slurm_directory().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("state")).unwrap();
        let cluster = read(&slurm_directory().join("slurm.conf")).unwrap();
        let of = |key| cluster.value(key).unwrap_or_else(|| panic!("{key} of the cluster"));
        let port = of("SlurmctldPort").parse::<u64>().unwrap() + PORTS;
        let directory_text = directory.display();
        let host = of("SlurmctldHost");
        let (name_of_host, address) = host.trim_end_matches(')').split_once('(').unwrap();
        let here = format!("NodeAddr={address} NodeHostName={name_of_host} Port={}", port + 1);
        let text = format!(
            "ClusterName={name}\nSlurmctldHost={host}\nSlurmctldPort={port}\nSlurmUser=slurm\n\
             AuthType=auth/munge\nAuthInfo={}\nStateSaveLocation={directory_text}/state\n\
             SlurmctldPidFile={directory_text}/slurmctld.pid\n\
             SlurmctldLogFile={directory_text}/slurmctld.log\n\
             SlurmdPidFile={directory_text}/slurmd.pid\nSlurmdLogFile={directory_text}/slurmd.log\n\
             SlurmdSpoolDir={directory_text}/spool\nSlurmdParameters=config_overrides\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             MailProg=/bin/true\nSchedulerParameters=batch_sched_delay=0\n\
             SelectType=select/cons_tres\nSelectTypeParameters={select}\n\
             {}\nPartitionName={PARTITION} Nodes=ALL Default=YES\n",
            of("AuthInfo"),
            nodes.replace(HERE, &here),
        );
        fs::write(directory.join("slurm.conf"), text).unwrap();
        run("chown", &["-R", "slurm", &directory.to_string_lossy()]);
        let mut this = Self { directory, daemons: Vec::new() };
        this.start("slurmctld", &[]);
        until("slurmctld answers", || this.ask("scontrol", &["ping"]).contains("is UP"));
        this
    }

    /// Starts slurmd of a node, whatever this machine is.
    pub(crate) fn start_node(&mut self, node: &str) {
        self.start("slurmd", &["-N", node]);
        until("the node is there", || {
            self.ask("sinfo", &["-h", "-o", "%t", "-n", node]) == "idle\n"
        });
    }

    /// Starts a daemon in the foreground.
    fn start(&mut self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.arg("-D").arg("-f").arg(self.directory.join("slurm.conf")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    /// Returns the output of a command of Slurm that asks this slurmctld.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.directory.join("slurm.conf"));
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// The configuration as the planner reads it.
    pub(crate) fn conf(&self) -> Conf {
        read(&self.directory.join("slurm.conf")).unwrap()
    }
}

impl Drop for Slurmctld {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Returns a number of a line of `scontrol show node -o`; 0 if it is not shown.
pub(crate) fn shown(line: &str, key: &str) -> u64 {
    let value = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.map_or(0, |value| value.parse().unwrap())
}
