// SPDX-License-Identifier: GPL-2.0
//! The plugin in a daemon, which is a program in C that loads it as Slurm's do and calls its
//! hooks: what it says to the service, and that nothing that the service does, or does not,
//! is anything to the daemon.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{mpsc, OnceLock};
use std::thread;

use serde_json::{json, Value};

/// The program, and the plugin, which are made once.
fn made() -> &'static (PathBuf, PathBuf) {
    static MADE: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Cargo makes a library that no program can be linked to for no test.
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--lib", "--manifest-path"])
            .arg(here.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .status();
        assert!(built.unwrap().success());
        let host = target.join("host");
        let compiled = Command::new("gcc")
            .args(["-Wall", "-Werror", "-rdynamic", "-o"])
            .arg(&host)
            .arg(here.join("tests/host.c"))
            .arg("-ldl")
            .status();
        assert!(compiled.unwrap().success());
        (host, target.join("debug/libspank_pbsd.so"))
    })
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("pbs-spank-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A step as Slurm has it.
const STEP: [(&str, &str); 6] = [
    ("CONTEXT", "2"),
    ("UID_OF", "1000"),
    ("JOB", "71"),
    ("STEP", "0xfffffffb"),
    ("CORES", "0-1,4"),
    ("MEMORY", "512"),
];

/// Output of the daemon for that step, some of which differs, with those arguments of
/// plugstack.conf. The step has gone through both hooks, and both have reported success.
fn run(other: &[(&str, Option<&str>)], arguments: &[&str]) -> Vec<String> {
    let (host, plugin) = made();
    let mut command = Command::new(host);
    command.env_clear().envs(STEP).arg(plugin).args(arguments);
    for (name, value) in other {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{:?}: {text}", output.status);
    let mut lines: Vec<_> = text.lines().map(String::from).collect();
    for hook in ["slurm_spank_init_post_opt: 0", "slurm_spank_exit: 0"] {
        let place = lines.iter().position(|line| line == hook);
        lines.remove(place.unwrap_or_else(|| panic!("{hook}: {text}")));
    }
    lines
}

/// Lets in those who come, one after the other, and hands each over when he has said what he
/// had to. The answer is the argument of `plugstack.conf`, and where what was said is heard.
fn listen(
    directory: &Path,
    serve: impl Fn(UnixStream) + Send + 'static,
) -> (String, mpsc::Receiver<Value>) {
    let path = directory.join("pbs.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut call = Vec::new();
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() == 1 && byte != [0] {
                call.extend(byte);
            }
            said.send(serde_json::from_slice(&call).unwrap()).unwrap();
            serve(stream);
        }
    });
    (format!("socket={}", path.display()), heard)
}

const WELL: &[u8] = b"{\"parameters\":{\"cpus\":[0,1,4]}}\0";

#[test]
fn slurm_loads_the_plugin_of_its_release() {
    let lines = run(&[("CONTEXT", Some("1"))], &[]);
    // As SLURM_VERSION_NUMBER of 22.05.8 is.
    assert_eq!(lines, ["plugin: pbsd spank 0x160508 1"]);
}

/// The messages are what the interface says.
#[test]
fn begin_and_end_of_a_step_are_reported() {
    let directory = directory("told");
    let (socket, heard) = listen(&directory, |mut stream| stream.write_all(WELL).unwrap());
    let lines = run(&[], &[&socket]);
    let told = "verbose: pbsd: informed of this step";
    assert_eq!(lines[1..], [told, told]);
    let begun = json!({
        "method": "org.sched-pbs.Node.Allocate",
        "parameters": {
            "job": 71, "step": 0xffff_fffb_u32, "uid": 1000, "cores": [0, 1, 4],
            "memory_bytes": 512 << 20,
        },
    });
    assert_eq!(heard.recv().unwrap(), begun);
    let ended = json!({
        "method": "org.sched-pbs.Node.Deallocate",
        "parameters": { "job": 71, "step": 0xffff_fffb_u32 },
    });
    assert_eq!(heard.recv().unwrap(), ended);
    let interface = include_str!("../../../node/pbs-node-api/org.sched-pbs.Node.varlink");
    for (call, method) in [(begun, "Allocate("), (ended, "Deallocate(")] {
        let (_, parameters) = interface.split_once(&format!("method {method}")).unwrap();
        let (parameters, _) = parameters.split_once(')').unwrap();
        for name in call["parameters"].as_object().unwrap().keys() {
            let is_known = parameters.split(", ").any(|it| it.starts_with(&format!("{name}: ")));
            assert!(is_known, "{name}: {parameters}");
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}

/// Nor is more memory said than Slurm has a limit of.
#[test]
fn without_a_limit_of_memory_none_is_reported() {
    for memory in [None, Some("0")] {
        let directory = directory("memory");
        let (socket, heard) = listen(&directory, |mut stream| stream.write_all(WELL).unwrap());
        run(&[("MEMORY", memory)], &[&socket]);
        assert_eq!(heard.recv().unwrap()["parameters"].get("memory_bytes"), None);
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// In srun, sbatch and slurmd it does nothing, not even try.
#[test]
fn the_plugin_does_nothing_outside_slurmstepd() {
    for context in ["0", "1", "3", "4", "5"] {
        let lines = run(&[("CONTEXT", Some(context))], &["socket=/nowhere"]);
        assert_eq!(lines.len(), 1, "{context}: {lines:?}");
    }
}

#[test]
fn without_a_service_the_step_continues() {
    let directory = directory("missing");
    let nobody = directory.join("nobody.sock");
    // One that was left behind, where nobody listens.
    drop(UnixListener::bind(&nobody).unwrap());
    let long = "x".repeat(200);
    for path in ["/nowhere/pbs.sock", nobody.to_str().unwrap(), &long, ""] {
        let lines = run(&[], &[&format!("socket={path}")]);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[1..].iter().all(|it| it.starts_with("error: pbsd: ")), "{lines:?}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

/// One that lets nobody in, one that hears and says nothing, one that says the half of it
/// byte by byte: all that ends.
#[test]
fn a_silent_service_delays_no_step_for_long() {
    let directory = directory("silent");
    let full = directory.join("full.sock");
    let _listener = UnixListener::bind(&full).unwrap();
    // Until nobody more is let in at once.
    let mut waiting = Vec::new();
    while let Some(stream) = connect_at_once(&full) {
        waiting.push(stream);
    }
    let lines = run(&[], &[&format!("socket={}", full.display()), "timeout_ms=20"]);
    assert_eq!(lines.len(), 3, "{lines:?}");

    let (socket, heard) = listen(&directory, std::mem::forget);
    let lines = run(&[], &[&socket, "timeout_ms=20"]);
    assert!(lines[1].starts_with("error: pbsd: ") && lines[1].contains("timed out"), "{lines:?}");
    // All was said all the same.
    assert_eq!(heard.iter().take(2).count(), 2);

    fs::remove_file(directory.join("pbs.sock")).unwrap();
    let (socket, _heard) = listen(&directory, |mut stream| {
        thread::spawn(move || while stream.write_all(b" ").is_ok() {});
    });
    let lines = run(&[], &[&socket, "timeout_ms=20"]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    fs::remove_dir_all(&directory).unwrap();
}

/// A connection that is made at once, or none.
fn connect_at_once(path: &Path) -> Option<UnixStream> {
    let (done, made) = mpsc::channel();
    let path = path.to_path_buf();
    // It waits for ever where it has to, and ends with the test.
    thread::spawn(move || done.send(UnixStream::connect(path)));
    made.recv_timeout(std::time::Duration::from_millis(300)).ok()?.ok()
}

#[test]
fn malformed_answers_do_no_harm() {
    let answers: [&[u8]; 8] = [
        b"",
        b"\0",
        b"%s%n%s%n\n\n\0",
        b"\xff\xfe{\"parameters\":{}}\0",
        b"{\"error\":\"org.sched-pbs.Node.NotPermitted\",\"parameters\":{\"what\":\"x\"}}\0",
        b"{\"parameters\":{\"error\":1}}\0",
        b"[[[[[[[[[[[[[[[[[[[\0",
        &[b'x'; 300_000],
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let directory = directory(&format!("junk-{number}"));
        let (socket, _heard) = listen(&directory, move |mut stream| {
            let _ = stream.write_all(answer);
        });
        let lines = run(&[], &[&socket]);
        assert_eq!(lines.len(), 3, "{number}: {lines:?}");
        assert!(
            lines[1..].iter().all(|it| it.starts_with("error: pbsd: ") && it.len() < 500),
            "{number}: {lines:?}"
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// Values that Slurm does not give, or gives in another form, are not reported.
#[test]
fn unknown_values_of_slurm_are_not_reported() {
    let cores = ["", "-", "1-", "3-1", "0-99999999999", "0-65536", "a", "0,,1", "0-4294967295"];
    let cores = cores.map(|cores| ("CORES", Some(cores)));
    let unknown = ["CORES", "JOB", "STEP", "UID_OF"].map(|name| (name, None));
    for other in cores.into_iter().chain(unknown) {
        let lines = run(&[other], &["socket=/nowhere"]);
        assert!(lines[1].starts_with("error: pbsd: "), "{other:?}: {lines:?}");
        assert!(!lines[1].contains("/nowhere"), "{other:?}: {lines:?}");
    }
}

#[test]
fn unknown_arguments_are_reported_and_ignored() {
    let arguments = ["sockets=/a", "timeout_ms=0", "timeout_ms=x", "\u{1b}[2J"];
    for argument in arguments {
        let lines = run(&[], &["socket=/nowhere", argument]);
        // For each hook: that one, and that nobody listens.
        assert_eq!(lines.len(), 5, "{argument}: {lines:?}");
        assert!(lines[1].contains("plugstack.conf"), "{argument}: {lines:?}");
        assert!(lines[2].contains("/nowhere"), "{argument}: {lines:?}");
    }
}
