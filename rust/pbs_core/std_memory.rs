// SPDX-License-Identifier: GPL-2.0

//! Memory of a user-space program for plans and nodes.

use std::vec;
use std::vec::Vec;

use super::{Input, Memory, NoMemory, Refusal, Tap};

/// Plans and nodes in `Vec`s.
#[derive(Clone, Copy, Debug)]
pub struct StdMemory;

impl Memory for StdMemory {
    type Slice<T: Copy> = Vec<T>;
    type Tap = Notes;

    fn alloc<T: Copy>(len: usize, fill: T) -> Result<Vec<T>, NoMemory> {
        Ok(vec![fill; len])
    }
}

/// Inputs of a node, if they are recorded; else `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(pub Option<Vec<Input>>);

impl Tap for Notes {
    fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn note(&mut self, input: Input) {
        if let Some(inputs) = &mut self.0 {
            inputs.push(input);
        }
    }
}

impl std::error::Error for Refusal {}
