// SPDX-License-Identifier: GPL-2.0
//! Programming models.

use std::fmt;

/// Programming models (T5.2). Their numbers are those in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Model {
    /// One thread of the CPU.
    Cpu = 0,
    /// Several threads of the CPU.
    Omp = 1,
    /// A GPU, however it is programmed.
    Gpu = 2,
    /// CUDA.
    Cuda = 3,
    /// OpenCL.
    Ocl = 4,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Omp, Self::Gpu, Self::Cuda, Self::Ocl];

    /// Returns the number of the model.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The one of a number.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.number() == number)
    }

    /// Returns the name, as in job files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Omp => "OMP",
            Self::Gpu => "GPU",
            Self::Cuda => "CUDA",
            Self::Ocl => "OCL",
        }
    }

    /// Whether it runs on threads of the CPU.
    pub fn is_of_cpu(self) -> bool {
        matches!(self, Self::Cpu | Self::Omp)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
