// SPDX-License-Identifier: GPL-2.0
//! Conversion of the files of Glaß's prototype (Glaß 2024, 5.1.1 and 5.1.2).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pbs_job::glass::{import_job, import_machine, Fault, File, Files};
use pbs_job::{job_to_toml, machine_to_toml, Problem};
use serde_json::json;

use super::ImportOptions;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::summary::{JobSummary, MachineSummary};

const MACHINE: &str = "machine_details.csv";

/// Makes TOML of the job, and of the machine if that is wanted.
pub(super) fn import(out: Output, options: &ImportOptions) -> Result<ExitCode, Failure> {
    if options.cpu.is_some() || options.plan_id.is_some() {
        return Err(Failure::Usage(format!(
            "{} is a directory, which becomes a job; leave out --cpu and --plan-id, which are for \
             plans of Leppert's simulation",
            options.file.display()
        )));
    }
    if options.rate.is_some() || options.runtime.is_some() {
        return Err(Failure::Usage(format!(
            "{} is a directory, whose tasks have their lengths; leave out --rate and --runtime, \
             which are for workflows",
            options.file.display()
        )));
    }
    let paths = Paths::find(&options.file, options.job)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => format!("glass-{}", paths.number),
    };
    let job = paths.job(&name)?;
    let job_text = job_to_toml(&job);
    let machine = match &options.machine {
        Some(file) => {
            let path = options.file.join(MACHINE);
            let machine = import_machine(&files::read(&path)?);
            let machine = machine
                .map_err(|problems| Failure::Invalid { file: files::name(&path), problems })?;
            Some((file, machine))
        }
        None => None,
    };
    // Nothing was wrong with any of them.
    let mut written = Vec::new();
    let mut text = String::new();
    if let Some(file) = &options.output {
        files::write(file, &job_text)?;
        written.push(file);
        let summary = JobSummary::new(&job).text();
        text = format!("{}: written\n{summary}", file.display());
    }
    if let Some((file, machine)) = &machine {
        files::write(file, &machine_to_toml(machine))?;
        written.push(file);
        if options.output.is_some() {
            let summary = MachineSummary::new(machine).text();
            text += &format!("{}: written\n{summary}", file.display());
        }
    }
    let machine = machine.as_ref();
    let json = json!({
        "job": JobSummary::new(&job),
        "machine": machine.map(|(_, machine)| MachineSummary::new(machine)),
        "toml": options.output.is_none().then_some(&job_text),
        "written": written,
    });
    // Where the job goes to standard output, nothing else does.
    out.print(&json, || match options.output {
        Some(_) => text,
        None => job_text.clone(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The files of a job.
struct Paths {
    number: u64,
    details: PathBuf,
    processes: PathBuf,
    tasks: PathBuf,
}

impl Paths {
    /// Finds the files of the job with that number, or of the only one.
    fn find(directory: &Path, wanted: Option<u64>) -> Result<Self, Failure> {
        let failed = |error| Failure::file(directory, &error);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            let number = name.strip_prefix("job_details_");
            let number = number.and_then(|rest| rest.strip_suffix(".csv"));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let number = match (wanted, &numbers[..]) {
            (Some(wanted), _) => wanted,
            (None, [number]) => *number,
            (None, []) => {
                return Err(Failure::Failed(format!(
                    "{}: there is no job_details_N.csv; name the directory with the four files \
                     of a job",
                    directory.display()
                )))
            }
            (None, several) => {
                let several: Vec<_> = several.iter().map(ToString::to_string).collect();
                return Err(Failure::Usage(format!(
                    "{} has the jobs {}; name one of them with --job",
                    directory.display(),
                    several.join(", ")
                )));
            }
        };
        Ok(Self {
            number,
            details: directory.join(format!("job_details_{number}.csv")),
            processes: directory.join(format!("job_processes_{number}.csv")),
            tasks: directory.join(format!("job_tasks_{number}.txt")),
        })
    }

    fn job(&self, name: &str) -> Result<pbs_job::Job, Failure> {
        let (details, processes, tasks) =
            (files::read(&self.details)?, files::read(&self.processes)?, files::read(&self.tasks)?);
        let texts = Files { details: &details, processes: &processes, tasks: &tasks };
        import_job(name, &texts).map_err(|faults| self.invalid(faults))
    }

    /// Collects the problems of one file or several.
    fn invalid(&self, faults: Vec<Fault>) -> Failure {
        let mut by_file: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
        for Fault { file, problem } in faults {
            // Where they do not fit together, the net is the one to look at.
            let path = match file {
                Some(File::Details) => &self.details,
                Some(File::Processes) => &self.processes,
                Some(File::Tasks) | None => &self.tasks,
            };
            by_file.entry(files::name(path)).or_default().push(problem);
        }
        let mut by_file = by_file.into_iter();
        let Some((file, mut problems)) = by_file.next() else {
            return Failure::Failed("the job is not valid".into());
        };
        for (other, more) in by_file {
            let told = more.iter().map(|problem| problem.in_file(&other));
            problems.extend(told.map(|told| Problem::at(None, format!("also {told}"))));
        }
        Failure::Invalid { file, problems }
    }
}
