// SPDX-License-Identifier: GPL-2.0

//! Memory of a user-space program for plans and nodes.

use std::vec;
use std::vec::Vec;

use super::{Memory, NoMemory, Refusal};

/// Plans and nodes in `Vec`s.
#[derive(Clone, Copy, Debug)]
pub struct StdMemory;

impl Memory for StdMemory {
    type Slice<T: Copy> = Vec<T>;

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<Vec<T>, NoMemory> {
        Ok(vec![fill; len])
    }
}

impl std::error::Error for Refusal {}
