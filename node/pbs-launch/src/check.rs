// SPDX-License-Identifier: GPL-2.0
//! Programs and files of a job, checked by the user who submits it.
//!
//! A service must not look for them: it has other rights, and a file system of the user may never
//! answer. The user's own process can, before it submits the job, and says at once what the job
//! would fail of.

use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use pbs_plan::Command;
use pbs_text::Problem;

use crate::files::c_string;
use crate::owner::candidates;

/// Surroundings in which the programs of a job are to run.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The working directory, as an absolute path.
    pub directory: &'a Path,
    /// Value of `PATH`; `None`: there is no such variable.
    pub search_path: Option<&'a str>,
    /// Output file of programs that name none; `None`: a new file in the working directory.
    pub output: Option<&'a Path>,
}

/// A command of a job, with its parts that earlier tasks of the job may make.
#[derive(Clone, Copy, Debug)]
pub struct JobCommand<'a> {
    /// The command.
    pub command: &'a Command,
    /// Whether other tasks of the job end before the program is executed.
    pub has_late_program: bool,
    /// Whether other tasks of the job end before the input is opened.
    pub has_late_input: bool,
}

/// Returns what the programs of a job lack that this process could not give them: a program, a
/// working directory, an input, or a place for an output. Nothing is opened or made. Programs and
/// inputs that earlier tasks of the job may make are not checked.
pub fn check_programs(commands: &[JobCommand<'_>], at: &Surroundings<'_>) -> Vec<Problem> {
    if let Err(error) = at.usable_directory() {
        let directory = at.directory.display();
        let line = commands.first().and_then(|one| one.command.line);
        let text = format!("{directory}: {error}; write another working directory (--chdir)");
        return vec![Problem::at(line, text)];
    }
    commands.iter().flat_map(|one| at.check(one, commands)).collect()
}

impl Surroundings<'_> {
    fn usable_directory(&self) -> io::Result<()> {
        if !self.directory.metadata()?.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        may(self.directory, libc::X_OK)
    }

    fn check(&self, one: &JobCommand<'_>, all: &[JobCommand<'_>]) -> Vec<Problem> {
        let JobCommand { command, has_late_program, has_late_input } = *one;
        let program = command.argv.first().map_or("", String::as_str);
        let mut problems = Vec::new();
        let needs = |file: &Path, error: &io::Error| {
            Problem::at(command.line, format!("{}: {error}; {program} needs it", file.display()))
        };
        let mut candidates = candidates(program, self.search_path).into_iter();
        let mut is_there = || candidates.any(|path| is_program(&self.directory.join(path)));
        if !has_late_program && !is_there() {
            problems.push(no_program(command));
        }
        // An input that another program of the job writes need not be there yet.
        let input = command.stdin.as_ref().filter(|_| !has_late_input).filter(|file| {
            let all = all.iter().map(|one| one.command);
            let mut outputs = all.flat_map(|one| [&one.stdout, &one.stderr]);
            !outputs.any(|output| output.as_ref() == Some(file))
        });
        let input = input.and_then(|file| Some((file, self.readable(file).err()?)));
        problems.extend(input.map(|(file, error)| needs(file, &error)));
        for (file, fd) in
            [(&command.stdout, libc::STDOUT_FILENO), (&command.stderr, libc::STDERR_FILENO)]
        {
            let Some((file, error)) = self.output_problem(file.as_deref(), fd, command) else {
                continue;
            };
            let file = file.display();
            problems.push(Problem::at(
                command.line,
                format!(
                    "{file}: {error}; {program} writes its output there: name another file (stdout, \
                     or --output)"
                ),
            ));
        }
        problems
    }

    fn readable(&self, file: &Path) -> io::Result<()> {
        may(&self.directory.join(file), libc::R_OK)
    }

    /// The output file that cannot be written, and why. `None`: all is well, or the other output
    /// has the same file and is checked.
    fn output_problem(
        &self,
        file: Option<&Path>,
        fd: RawFd,
        command: &Command,
    ) -> Option<(PathBuf, io::Error)> {
        let is_told_before = |other: Option<&Path>| fd == libc::STDERR_FILENO && other == file;
        if is_told_before(command.stdout.as_deref()) {
            return None;
        }
        match file.or(self.output) {
            Some(file) => {
                let error = writable(&self.directory.join(file)).err()?;
                Some((file.into(), error))
            }
            None => {
                let error = may(self.directory, libc::W_OK | libc::X_OK).err()?;
                Some((self.directory.into(), error))
            }
        }
    }
}

/// The problem that a program is missing.
pub(crate) fn no_program(command: &Command) -> Problem {
    let program = command.argv.first().map_or("", String::as_str);
    Problem::at(
        command.line,
        format!("there is no program {program}; write the path of an executable file"),
    )
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file()) && may(path, libc::X_OK).is_ok()
}

/// Whether a file can be written, or made.
fn writable(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(file) if file.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(_) => may(path, libc::W_OK),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(Path::new("/"));
            may(parent, libc::W_OK | libc::X_OK)
        }
        Err(error) => Err(error),
    }
}

/// Whether this process may use a file so, with its effective rights.
#[allow(unsafe_code)]
fn may(path: &Path, mode: libc::c_int) -> io::Result<()> {
    let path = c_string(OsStr::new(path));
    // SAFETY: the path is a live C string.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn command(argv: &str) -> Command {
        Command { argv: vec![argv.into()], ..Command::default() }
    }

    fn problems(commands: &[Command], at: &Surroundings<'_>) -> Vec<String> {
        let commands = commands.iter().map(|command| JobCommand {
            command,
            has_late_program: false,
            has_late_input: false,
        });
        let commands: Vec<_> = commands.collect();
        let problems = check_programs(&commands, at).into_iter();
        problems.map(|problem| problem.message).collect()
    }

    #[test]
    fn what_a_job_lacks_is_named() {
        let directory = std::env::temp_dir().join(format!("pbs-check-{}", std::process::id()));
        let bin = directory.join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("tool"), "").unwrap();
        fs::set_permissions(bin.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(bin.join("text"), "").unwrap();
        let search = format!("/nowhere:{}", bin.display());
        let at = Surroundings { directory: &directory, search_path: Some(&search), output: None };
        for there in ["tool", "bin/tool"] {
            assert_eq!(problems(&[command(there)], &at), [] as [&str; 0], "{there}");
        }
        let absolute = bin.join("tool").display().to_string();
        assert_eq!(problems(&[command(&absolute)], &at), [] as [&str; 0]);
        for missing in ["gone", "bin/text", "text", "bin", "./tool"] {
            let text =
                format!("there is no program {missing}; write the path of an executable file");
            assert_eq!(problems(&[command(missing)], &at), [text]);
        }
        let none = "No such file or directory (os error 2); tool needs it";
        let input = Command { stdin: Some("in".into()), ..command("tool") };
        assert_eq!(problems(std::slice::from_ref(&input), &at), [format!("in: {none}")]);
        let makes = Command { stdout: Some("in".into()), ..command("tool") };
        assert_eq!(problems(&[makes, input], &at), [] as [&str; 0]);
        let both = Command {
            stdout: Some("gone/out".into()),
            stderr: Some("gone/out".into()),
            ..command("tool")
        };
        let writes = "; tool writes its output there: name another file (stdout, or --output)";
        let no_place = format!("No such file or directory (os error 2){writes}");
        assert_eq!(problems(&[both], &at), [format!("gone/out: {no_place}")]);
        let is_directory = Command { stdout: Some("bin".into()), ..command("tool") };
        let told = problems(&[is_directory], &at);
        assert_eq!(told, [format!("bin: Is a directory (os error 21){writes}")]);
        let output = Surroundings { output: Some(Path::new("gone/all")), ..at };
        assert_eq!(problems(&[command("tool")], &output), [format!("gone/all: {no_place}")]);
        let gone = directory.join("gone");
        let elsewhere = Surroundings { directory: &gone, ..at };
        let told = problems(&[command("tool")], &elsewhere);
        let text = "No such file or directory (os error 2); write another working directory";
        assert_eq!(told, [format!("{}: {text} (--chdir)", gone.display())]);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// No file is opened: a FIFO without a writer would keep the user waiting.
    #[test]
    fn a_fifo_is_not_opened() {
        let directory = std::env::temp_dir().join(format!("pbs-fifo-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let made = std::process::Command::new("mkfifo").arg(directory.join("fifo")).status();
        assert!(made.unwrap().success());
        let at = Surroundings { directory: &directory, search_path: None, output: None };
        let reads =
            Command { stdin: Some("fifo".into()), stdout: Some("fifo".into()), ..command("true") };
        assert_eq!(problems(&[reads], &at), [] as [&str; 0]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
