// SPDX-License-Identifier: GPL-2.0
//! Data regions: what tasks read and write, wherever it is at the moment (§5.6.5).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use crate::accelerator::Buffer;
use crate::memory::Memory;

/// Data of tasks. Clones are the same region.
#[derive(Clone, Debug)]
pub struct Region(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    bytes: usize,
    pub(crate) host: RwLock<Vec<u8>>,
    state: Mutex<State>,
}

/// Memories in which the content is valid.
#[derive(Debug)]
struct State {
    is_home: bool,
    copies: Vec<Copied>,
}

#[derive(Debug)]
struct Copied {
    memory: Arc<Memory>,
    buffer: Arc<Buffer>,
    is_valid: bool,
}

/// A transfer, for the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transferred {
    pub(crate) device: String,
    pub(crate) bytes: u64,
    pub(crate) took_ns: u64,
}

impl Region {
    /// A region with this content, in host memory.
    pub fn new(content: Vec<u8>) -> Self {
        Self(Arc::new(Inner {
            bytes: content.len(),
            host: RwLock::new(content),
            state: Mutex::new(State { is_home: true, copies: Vec::new() }),
        }))
    }

    /// Returns the length in bytes, which never changes.
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of its content. After [`crate::Runtime::run`] all data are at home.
    pub fn content(&self) -> Vec<u8> {
        let host = self.0.host.read();
        host.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Copies its content, as far as it fits; the rest of `to` stays.
    pub fn copy_to(&self, to: &mut [u8]) {
        let host = self.0.host.read().unwrap_or_else(PoisonError::into_inner);
        let length = to.len().min(host.len());
        to[..length].copy_from_slice(&host[..length]);
    }

    /// Replaces the content, as far as it fits; the rest stays.
    pub fn fill(&self, content: &[u8]) {
        let mut host = self.0.host.write().unwrap_or_else(PoisonError::into_inner);
        let length = content.len().min(host.len());
        host[..length].copy_from_slice(&content[..length]);
        drop(host);
        self.written(None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the same region as that.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Number that no other living region has.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Brings the content to host memory; copies stay.
    pub(crate) fn to_host(&self) -> Result<Option<Transferred>, String> {
        self.home(&mut self.state())
    }

    fn home(&self, state: &mut State) -> Result<Option<Transferred>, String> {
        if state.is_home {
            return Ok(None);
        }
        let from = state.copies.iter().find(|copy| copy.is_valid);
        let from = from.ok_or("the content of a region is nowhere")?;
        let began = Instant::now();
        let mut host = self.0.host.write().unwrap_or_else(PoisonError::into_inner);
        from.memory.accelerator().read(&from.buffer, &mut host)?;
        let transferred = self.transferred(&from.memory, began);
        state.is_home = true;
        Ok(Some(transferred))
    }

    /// Brings the region to the memory of a device, with its content if that will be read. Returns
    /// `None` if there is not enough memory.
    pub(crate) fn to_memory(
        &self,
        memory: &Arc<Memory>,
        is_read: bool,
        transfers: &mut Vec<Transferred>,
    ) -> Result<Option<Arc<Buffer>>, String> {
        let mut state = self.state();
        let is_here = |copy: &Copied| Arc::ptr_eq(&copy.memory, memory);
        let index = match state.copies.iter().position(is_here) {
            Some(index) => index,
            None => {
                let Some(buffer) = memory.allocate(self.0.bytes)? else {
                    return Ok(None);
                };
                state.copies.push(Copied {
                    memory: memory.clone(),
                    buffer: Arc::new(buffer),
                    is_valid: false,
                });
                state.copies.len() - 1
            }
        };
        let buffer = state.copies[index].buffer.clone();
        if is_read && !state.copies[index].is_valid {
            // From one accelerator to another the way is by the host.
            transfers.extend(self.home(&mut state)?);
            let began = Instant::now();
            let host = self.0.host.read().unwrap_or_else(PoisonError::into_inner);
            memory.accelerator().write(&buffer, &host)?;
            transfers.push(self.transferred(memory, began));
            state.copies[index].is_valid = true;
        }
        Ok(Some(buffer))
    }

    fn transferred(&self, memory: &Memory, began: Instant) -> Transferred {
        Transferred {
            device: memory.device().to_string(),
            bytes: self.0.bytes as u64,
            took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// A task has written it there; in host memory, if none is named. All else is old.
    pub(crate) fn written(&self, memory: Option<&Arc<Memory>>) {
        let mut state = self.state();
        state.is_home = memory.is_none();
        for copy in &mut state.copies {
            copy.is_valid = memory.is_some_and(|memory| Arc::ptr_eq(memory, &copy.memory));
        }
    }

    /// Removes the region from the memory of a device, and saves its content if that is nowhere
    /// else. Returns whether it was there.
    pub(crate) fn evict(&self, memory: &Arc<Memory>) -> Result<bool, String> {
        let mut state = self.state();
        let is_here = |copy: &Copied| Arc::ptr_eq(&copy.memory, memory);
        let Some(index) = state.copies.iter().position(is_here) else {
            return Ok(false);
        };
        self.home(&mut state)?;
        let copy = state.copies.swap_remove(index);
        copy.memory.free(&copy.buffer, self.0.bytes);
        Ok(true)
    }

    /// Brings the content home and gives all device memory back. Where the content can't be
    /// had, memory is given back all the same.
    pub(crate) fn go_home(&self) -> Result<Option<Transferred>, String> {
        let mut state = self.state();
        let transferred = self.home(&mut state);
        state.is_home = true;
        for copy in state.copies.drain(..) {
            copy.memory.free(&copy.buffer, self.0.bytes);
        }
        transferred
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::thread::{sleep, spawn, JoinHandle};
    use std::time::Duration;

    use super::*;
    use crate::accelerator::{Accelerator, Simulated};
    use crate::execute::execute;
    use crate::graph::{Task, Variant};
    use crate::{Access, Model};

    fn memory(bytes: u64) -> Arc<Memory> {
        let simulated: Arc<dyn Accelerator> = Arc::new(Simulated::new(&[Model::Gpu], bytes));
        Arc::new(Memory::new("gpu", simulated))
    }

    #[test]
    fn content_is_copied_as_far_as_it_fits() {
        let region = Region::new(vec![1, 2, 3]);
        let (mut short, mut long) = ([0; 2], [9; 4]);
        region.copy_to(&mut short);
        region.copy_to(&mut long);
        assert_eq!((short, long), ([1, 2], [1, 2, 3, 9]));
    }

    #[test]
    fn content_goes_where_it_is_read() {
        let (one, other) = (memory(8), memory(8));
        let region = Region::new(vec![1, 2, 3]);
        let mut transfers = Vec::new();
        let buffer = region.to_memory(&one, false, &mut transfers).unwrap();
        assert!(transfers.is_empty(), "it is only written there");
        let accelerator = one.accelerator();
        accelerator.write(&buffer.unwrap(), &[4, 5, 6]).unwrap();
        region.written(Some(&one));
        assert_eq!(region.content(), [1, 2, 3]);
        region.to_memory(&other, true, &mut transfers).unwrap();
        assert_eq!(transfers.len(), 2, "by way of the host");
        assert_eq!(region.content(), [4, 5, 6]);
        assert_eq!((one.used_bytes(), other.used_bytes()), (3, 3));
        region.go_home().unwrap();
        assert_eq!((one.used_bytes(), other.used_bytes()), (0, 0));
    }

    #[test]
    fn memory_is_not_overdrawn_and_eviction_makes_room() {
        let memory = memory(4);
        let (one, other) = (Region::new(vec![7; 3]), Region::new(vec![8; 3]));
        let mut transfers = Vec::new();
        assert!(one.to_memory(&memory, true, &mut transfers).unwrap().is_some());
        one.written(Some(&memory));
        assert!(other.to_memory(&memory, true, &mut transfers).unwrap().is_none());
        assert!(one.evict(&memory).unwrap());
        assert!(!one.evict(&memory).unwrap(), "it is not there any more");
        assert!(other.to_memory(&memory, true, &mut transfers).unwrap().is_some());
        assert_eq!(one.content(), [7; 3]);
        assert_eq!(memory.used_bytes(), 3);
    }

    /// A task of the CPU writes all of what is on a device, from where it is evicted while
    /// the task runs.
    #[test]
    fn what_is_written_is_not_overwritten_by_an_eviction() {
        let memory = memory(4);
        let region = Region::new(vec![1; 3]);
        region.to_memory(&memory, true, &mut Vec::new()).unwrap();
        region.written(Some(&memory));
        let evicts: Arc<OnceLock<JoinHandle<()>>> = Arc::default();
        let (evicting, evicted, there) = (evicts.clone(), region.clone(), memory.clone());
        let writes = Variant::cpu(move |context| {
            context.write(0)?.fill(9);
            let (region, memory) = (evicted.clone(), there.clone());
            let evicts = evicting.get_or_init(|| {
                spawn(move || {
                    region.evict(&memory).unwrap();
                })
            });
            // To its end, or to where it waits for what this task has.
            while !evicts.is_finished() && evicted.0.state.try_lock().is_ok() {
                sleep(Duration::from_micros(100));
            }
            Ok(())
        });
        let task = Task::new("t").variant(writes).region(&region, Access::Write);
        execute(&task, 0, None, &[]).unwrap();
        drop(task);
        let evicts = Arc::into_inner(evicts).and_then(OnceLock::into_inner);
        evicts.unwrap().join().unwrap();
        assert_eq!(region.content(), [9; 3]);
        assert_eq!(memory.used_bytes(), 0);
    }
}
