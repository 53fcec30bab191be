// SPDX-License-Identifier: GPL-2.0
//! Values that Slurm passes to a step, in its environment.

/// In the name of a job: the number of the node.
const NODE: &str = "%n";

/// A step of a Slurm job, on one of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlurmStep {
    /// The number of Slurm's job.
    pub job: u32,
    /// The number of the node among those of the job.
    pub node: u32,
    /// Number of nodes of the job.
    pub nodes: u32,
}

impl SlurmStep {
    /// Reads the step from an environment.
    ///
    /// # Errors
    ///
    /// In words: the environment is not that of a Slurm job.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: Option<u32>| match (variable(name), default) {
            (Some(text), _) => text.parse().map_err(|_| {
                format!("{name} is \"{text}\", which is not a number; run it with srun")
            }),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("{name} is not set; run it in a job of Slurm, with srun")),
        };
        Ok(Self {
            job: number("SLURM_JOB_ID", None)?,
            node: number("SLURM_NODEID", Some(0))?,
            nodes: number("SLURM_NNODES", Some(1))?,
        })
    }

    /// Name on this node of a job with that name: with `%n` it has another name on each node, and
    /// therefore its own history. `None`: unchanged.
    pub fn name(&self, name: &str) -> Option<String> {
        name.contains(NODE).then(|| name.replace(NODE, &self.node.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<SlurmStep, String> {
        SlurmStep::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn a_step_is_read_from_slurms_environment() {
        let step = of(&[("SLURM_JOB_ID", "71"), ("SLURM_NODEID", "2"), ("SLURM_NNODES", "3")]);
        let expected = SlurmStep { job: 71, node: 2, nodes: 3 };
        assert_eq!(step, Ok(expected));
        let alone = of(&[("SLURM_JOB_ID", "71")]).unwrap();
        assert_eq!((alone.node, alone.nodes), (0, 1));
        assert!(of(&[]).unwrap_err().contains("srun"));
        assert!(of(&[("SLURM_JOB_ID", "7x")]).unwrap_err().contains("7x"));
    }

    #[test]
    fn a_job_may_have_another_name_on_each_node() {
        let step = of(&[("SLURM_JOB_ID", "71"), ("SLURM_NODEID", "12")]).unwrap();
        assert_eq!(step.name("sort"), None);
        assert_eq!(step.name("sort-%n").as_deref(), Some("sort-12"));
    }
}
