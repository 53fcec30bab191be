// SPDX-License-Identifier: GPL-2.0
//! The memory of one accelerator, counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::accelerator::{Accelerator, Buffer};

/// An accelerator's memory. What is allocated never exceeds it.
#[derive(Debug)]
pub(crate) struct Memory {
    device: String,
    accelerator: Arc<dyn Accelerator>,
    used_bytes: AtomicU64,
}

impl Memory {
    pub(crate) fn new(device: &str, accelerator: Arc<dyn Accelerator>) -> Self {
        Self { device: device.into(), accelerator, used_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn device(&self) -> &str {
        &self.device
    }

    pub(crate) fn accelerator(&self) -> &dyn Accelerator {
        &*self.accelerator
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Memory for so many bytes; nothing if there is not so much left.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Option<Buffer>, String> {
        let limit = self.accelerator.memory_bytes();
        let taken = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes as u64).filter(|sum| *sum <= limit)
        });
        if taken.is_err() {
            return Ok(None);
        }
        let buffer = self.accelerator.allocate(bytes);
        if buffer.is_err() {
            self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
        buffer.map(Some)
    }

    pub(crate) fn free(&self, buffer: &Buffer, bytes: usize) {
        self.accelerator.free(buffer);
        self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
