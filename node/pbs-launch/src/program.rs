// SPDX-License-Identifier: GPL-2.0
//! The programs of a plan, ready to be forked: nothing is left that needs memory, or the
//! node, between fork and exec.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pbs_plan::{Command, Plan, Process, Start};
use pbs_text::Problem;

use crate::check::no_program;
use crate::child_report::Places;
use crate::files::{c_string, Named};
use crate::owner::{Owner, Rights};

/// A program of a plan.
#[derive(Clone, Debug)]
pub struct Program {
    /// The number of its process.
    pub process: u32,
    /// The number of its task, if it is one task.
    pub(crate) task: Option<u32>,
    /// Whether it attaches itself.
    pub(crate) itself: bool,
    /// Whether another program of the process comes after it:
    /// [`ATTACH_ONE_TASK`](pbs_uapi::ATTACH_ONE_TASK).
    pub(crate) one_of_several: bool,
    /// Name of the program in messages.
    pub name: String,
    /// The CPU of its process, as a mask.
    pub(crate) affinity: Vec<libc::c_ulong>,
    /// Files and working directory of the program.
    pub(crate) places: Places,
}

impl Program {
    /// The one with that place among the commands of its process.
    fn new(process: &Process, place: usize, cpu: u32, name: &str, places: Places) -> Self {
        let one_of_several = matches!(process.start, Start::Commands(_));
        let is_task = one_of_several || matches!(process.start, Start::Command(_));
        let task = process.tasks.get(place).filter(|_| is_task);
        Self {
            process: process.id,
            task: task.map(|task| task.id),
            itself: matches!(process.start, Start::Itself(_)),
            one_of_several,
            name: name.into(),
            affinity: mask(cpu),
            places,
        }
    }
}

/// Prepares the programs of all processes of a plan. `device` is for those who attach
/// themselves; `output_to_error` keeps what they print out of the own standard output.
///
/// # Errors
///
/// Everything that can be wrong with the programs, before any is started.
pub fn prepare_plan(
    plan: &Plan,
    device: &Path,
    output_to_error: bool,
) -> Result<Vec<Prepared>, Vec<Problem>> {
    let mut programs = Vec::new();
    let mut problems = Vec::new();
    for (index, process) in plan.processes.iter().enumerate() {
        if process.start == Start::Unsaid {
            problems.push(Problem::at(
                process.line,
                format!(
                    "process {} has nothing to run; add command = [\"program\", \"argument\"], or \
                     attaches = \"itself\" if another program starts it",
                    process.label()
                ),
            ));
        }
        let cpu = plan.cpu_of(index).map_or(0, |cpu| cpu.cpu);
        for place in 0..process.commands().len() {
            match Prepared::new(process, place, cpu, device, output_to_error, None, &[]) {
                Ok(one) => programs.push(one),
                Err(problem) => problems.push(problem),
            }
        }
    }
    if problems.is_empty() {
        Ok(programs)
    } else {
        Err(problems)
    }
}

/// A program that is ready to be forked.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) program: Program,
    /// Possible paths of the program: the first that can be executed is used.
    pub(crate) paths: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) files: Files,
    /// File for standard input that is opened only when the program is executed.
    pub(crate) late_input: Option<CString>,
    /// Whether its standard output is the standard error, unless redirected.
    pub(crate) output_to_error: bool,
    /// Time before which it is not executed, on the monotonic clock.
    pub(crate) not_before_ns: u64,
}

/// Files for standard input, output and error.
#[derive(Debug)]
pub(crate) enum Files {
    /// Files of the user who runs the node, already opened.
    Opened(Vec<(File, RawFd)>),
    /// Files of another user, who must open them himself.
    Of(Box<Rights>, Vec<Named>),
}

impl Prepared {
    /// All programs of a process, which is on that CPU; `owner`: as whom they run, if not
    /// as who runs the node. `device` is for those who attach themselves, and `of_job` are
    /// variables of the environment about the job.
    ///
    /// Without an owner the programs are looked for and their files are opened here, but
    /// for the input of one that is to wait for others. With one nothing is: neither is to
    /// happen with other rights than his.
    pub fn of_process(
        process: &Process,
        cpu: u32,
        device: &Path,
        output_to_error: bool,
        owner: Option<&Owner>,
        of_job: &[Variable],
    ) -> Result<Vec<Self>, Problem> {
        let places = 0..process.commands().len();
        let one = |place| Self::new(process, place, cpu, device, output_to_error, owner, of_job);
        places.map(one).collect()
    }

    fn new(
        process: &Process,
        place: usize,
        cpu: u32,
        device: &Path,
        output_to_error: bool,
        owner: Option<&Owner>,
        of_job: &[Variable],
    ) -> Result<Self, Problem> {
        let command = &process.commands()[place];
        let program = command.argv.first().map_or("", String::as_str);
        let itself = matches!(process.start, Start::Itself(_));
        let variables: Vec<(OsString, OsString)> = match owner {
            Some(owner) => owner.variables(),
            None => env::vars_os().collect(),
        };
        let variables = variables.iter();
        // A planner that is itself a program of a plan hands none of its own figures on.
        let is_own = |name: &OsStr| name.as_encoded_bytes().starts_with(OWN_PREFIX.as_bytes());
        let variables = variables.filter(|(name, _)| {
            (!itself || (name != "PBS_DEVICE" && name != "PBS_PROCESS"))
                && (owner.is_some() || !is_own(name))
        });
        let mut environment: Vec<_> =
            variables.map(|(name, value)| assignment(name, value)).collect();
        if itself {
            environment.push(assignment("PBS_DEVICE".as_ref(), device.as_os_str()));
            let id = process.id.to_string();
            environment.push(assignment("PBS_PROCESS".as_ref(), id.as_ref()));
        }
        let own = own_variables(process, place, cpu).into_iter().chain(of_job.iter().cloned());
        environment.extend(own.map(|(name, value)| assignment(name.as_ref(), value.as_ref())));
        let late = waits(process, place);
        let late_input = command.stdin.as_ref().filter(|_| late);
        let redirections = [
            (command.stdin.as_ref().filter(|_| !late), libc::STDIN_FILENO),
            (command.stdout.as_ref(), libc::STDOUT_FILENO),
            (command.stderr.as_ref(), libc::STDERR_FILENO),
        ];
        let (paths, files) = match owner {
            Some(owner) => (
                owner.candidates(program),
                Files::Of(Box::new(Rights::of(owner)), owner.files(redirections)),
            ),
            None => (vec![path_of(command)?], opened(command, redirections)?),
        };
        Ok(Self {
            program: Program::new(process, place, cpu, program, places(command, owner)),
            paths: paths.iter().map(|path| c_string(path.as_os_str())).collect(),
            argv: command.argv.iter().map(|word| c_string(word.as_ref())).collect(),
            environment,
            files,
            late_input: late_input.map(|file| c_string(file.as_os_str())),
            output_to_error,
            not_before_ns: 0,
        })
    }

    /// The program, not executed before that time of the monotonic clock: a node that is ahead
    /// of its plan grants its process the CPU before.
    #[must_use]
    pub fn not_before(self, not_before_ns: u64) -> Self {
        Self { not_before_ns, ..self }
    }
}

/// A variable of the environment: its name and its value.
pub type Variable = (String, String);

/// Prefix of the variables that tell a program its place.
const OWN_PREFIX: &str = "SCHED_PBS_";

/// Variables that tell a program its place in the plan.
fn own_variables(process: &Process, place: usize, cpu: u32) -> Vec<Variable> {
    let number = |name: &str, number: u64| (format!("{OWN_PREFIX}{name}"), number.to_string());
    let mut variables = vec![
        number("CPU", cpu.into()),
        number("PROGRAM", place as u64 + 1),
        number("PROCESS", process.id.into()),
        number("PROCESS_MEMORY_BYTES", process.memory_bytes),
    ];
    // A command among several is one task; one alone goes through all of them.
    let is_one = matches!(process.start, Start::Commands(_)) || process.tasks.len() == 1;
    let task = process.tasks.get(place).filter(|_| is_one);
    if let Some(task) = task {
        variables.push(number("TASK", task.id.into()));
        variables.push(number("TASK_INSNS", task.planned_insns));
        let name = task.name.iter().map(|name| (format!("{OWN_PREFIX}TASK_NAME"), name.clone()));
        variables.extend(name);
    }
    variables
}

/// The files and the working directory of a command. Without an owner, they are those of this
/// process, and a failure to open a file names it.
fn places(command: &Command, owner: Option<&Owner>) -> Places {
    let Some(owner) = owner else {
        return Places::default();
    };
    let at = |file: &PathBuf| owner.directory.join(file);
    let output = |file: &Option<PathBuf>| file.as_ref().or(owner.output.as_ref()).map(at);
    let files = [command.stdin.as_ref().map(at), output(&command.stdout), output(&command.stderr)];
    Places { directory: Some(owner.directory.clone()), files }
}

/// Opens the files of a command, as who runs the node.
fn opened(
    command: &Command,
    redirections: [(Option<&PathBuf>, RawFd); 3],
) -> Result<Files, Problem> {
    let program = command.argv.first().map_or("", String::as_str);
    let mut files = Vec::new();
    for (file, fd) in redirections {
        if let Some(file) = file {
            let opened = open(file, fd).map_err(|error| {
                Problem::at(
                    command.line,
                    format!("{}: {error}; {program} needs it", file.display()),
                )
            })?;
            files.push((opened, fd));
        }
    }
    Ok(Files::Opened(files))
}

/// Whether the class holds the program back until tasks of other processes have
/// ended. One that attaches itself is let go at once, and held where it attaches.
fn waits(process: &Process, place: usize) -> bool {
    let tasks = match &process.start {
        Start::Command(_) => process.tasks.len(),
        Start::Commands(_) => place + 1,
        Start::Itself(_) | Start::Unsaid => 0,
    };
    let mut tasks = process.tasks.iter().take(tasks);
    tasks.any(|task| !task.after.is_empty())
}

/// Output files are appended to, since several commands of a process may write
/// to the same one; `empty_outputs` empties them once.
fn open(file: &Path, fd: RawFd) -> io::Result<File> {
    if fd == libc::STDIN_FILENO {
        File::open(file)
    } else {
        OpenOptions::new().create(true).append(true).open(file)
    }
}

/// Empties the files that the programs write to, and that were opened for them.
pub fn empty_outputs(prepared: &[Prepared]) -> io::Result<()> {
    let files = prepared.iter().flat_map(|one| match &one.files {
        Files::Opened(files) => files.as_slice(),
        Files::Of(..) => &[],
    });
    for (file, fd) in files {
        if *fd != libc::STDIN_FILENO && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
    }
    Ok(())
}

/// Returns the path of a command's program, or the problem that it is missing.
pub fn path_of(command: &Command) -> Result<PathBuf, Problem> {
    let program = command.argv.first().map_or("", String::as_str);
    find(program).ok_or_else(|| no_program(command))
}

fn find(program: &str) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| executable(path));
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| executable(path))
}

fn assignment(name: &OsStr, value: &OsStr) -> CString {
    let mut text = name.to_os_string();
    text.push("=");
    text.push(value);
    c_string(&text)
}

/// The mask of one CPU.
fn mask(cpu: u32) -> Vec<libc::c_ulong> {
    let cpu = cpu as usize;
    let bits = libc::c_ulong::BITS as usize;
    let mut mask = vec![0; cpu / bits + 1];
    mask[cpu / bits] = 1 << (cpu % bits);
    mask
}

#[cfg(test)]
mod tests {
    use pbs_plan::from_toml;

    use super::*;

    /// Programs of the user who runs the node find their place like those of other users.
    #[test]
    fn a_program_finds_its_place_in_its_environment() {
        let plan = from_toml(
            "[[process]]\nid = 7\nmemory_bytes = 5\ncommands = [[\"true\"], [\"true\"]]\n\
             tasks = [{ id = 3, planned_insns = 10 }, \
             { id = 4, name = \"last\", planned_insns = 20 }]\n\
             [[cpu]]\ncpu = 2\nslots = [7, 7]\n",
        );
        let plan = plan.unwrap_or_else(|problems| panic!("{problems:?}"));
        let of_job = [("SCHED_PBS_JOB_NAME".to_string(), "sort".to_string())];
        let device = Path::new("/dev/null");
        let prepared =
            Prepared::of_process(&plan.processes[0], 2, device, false, None, &of_job).unwrap();
        let own = |prepared: &Prepared| {
            let words = prepared.environment.iter().map(|word| word.to_str().unwrap_or(""));
            let own = words.filter_map(|word| word.strip_prefix(OWN_PREFIX));
            own.map(String::from).collect::<Vec<_>>()
        };
        let expected = "CPU=2 PROGRAM=2 PROCESS=7 PROCESS_MEMORY_BYTES=5 TASK=4 TASK_INSNS=20 \
                        TASK_NAME=last JOB_NAME=sort";
        assert_eq!(own(&prepared[1]).join(" "), expected);
        assert!(own(&prepared[0]).contains(&"TASK=3".to_string()));
        // One program that goes through several tasks is none of them.
        let mut process = plan.processes[0].clone();
        let commands = process.commands().to_vec();
        process.start = Start::Command(commands[0].clone());
        let prepared = Prepared::of_process(&process, 2, device, false, None, &[]).unwrap();
        assert_eq!(own(&prepared[0]).len(), 4, "{:?}", own(&prepared[0]));
    }
}
