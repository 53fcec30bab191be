// SPDX-License-Identifier: GPL-2.0
//! Memory of a child that waits at the gate.
//!
//! A forked child has the pages of its parent until it executes its program. The class samples the
//! memory of a process from its first grant on, and therefore before that: a small program would
//! be charged what the service has. The child gives back the areas of the parent before it reports
//! that it is ready; what is in the smallest ones still counts. The words that it still needs, such
//! as the arguments of its program, are in an area of their own ([`Words`]).

use std::ffi::CString;
use std::fs;
use std::io;
use std::ops::Range;

use crate::program::Prepared;

/// Number of areas that are given back at most: the largest.
const MOST_AREAS: usize = 32;

/// Size from which an area is given back: below it, the call costs more than the memory is worth.
const LEAST_BYTES: usize = 256 << 10;

/// Bytes after the thread's own data that stay.
const KEPT_BYTES: usize = 64 << 10;

/// Size of a page on the machines with the largest: areas begin and end at multiples of it.
const PAGE_BYTES: usize = 64 << 10;

/// Areas of private memory of this process, as a child gets them. They are found before the fork,
/// since the child cannot allocate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Areas {
    areas: [(usize, usize); MOST_AREAS],
    count: usize,
}

impl Areas {
    /// The areas of this process; none if they cannot be read.
    pub(crate) fn own() -> Self {
        // Without the list no area is given back, which costs memory alone.
        Self::of(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    /// The areas in the lines of proc_pid_maps(5): writable and private, without a file, and not
    /// directly after one. What follows a file is its zero-initialized data, which libraries use.
    fn of(maps: &str) -> Self {
        let mut found = Vec::new();
        let mut end_of_file = 0;
        for line in maps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let bounds = fields.next().and_then(|bounds| bounds.split_once('-'));
            let address = |text| usize::from_str_radix(text, 16).ok();
            let Some((Some(start), Some(end))) =
                bounds.map(|(start, end)| (address(start), address(end)))
            else {
                continue;
            };
            let permissions = fields.next().unwrap_or_default();
            let name = fields.nth(3).unwrap_or_default();
            if !matches!(name, "" | "[heap]") {
                end_of_file = end;
            } else if permissions == "rw-p" && start != end_of_file && end - start >= LEAST_BYTES {
                found.push((start, end));
            }
        }
        found.sort_unstable_by_key(|(start, end)| std::cmp::Reverse(end - start));
        let mut areas = [(0, 0); MOST_AREAS];
        let count = found.len().min(MOST_AREAS);
        areas[..count].copy_from_slice(&found[..count]);
        Self { areas, count }
    }

    /// In a forked child: gives the areas back, except for the words, the stack and the data of
    /// the thread.
    ///
    /// # Safety
    ///
    /// The process has no other thread, and from now on uses nothing but its stack, the words,
    /// and data of the program file. It allocates nothing and drops nothing.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn give_back(&self, words: &Range<usize>) {
        let local = 0u8;
        let stack = &raw const local as usize;
        // SAFETY: the call returns an address in the data of the thread.
        let thread = unsafe { libc::__errno_location() } as usize;
        for &area in &self.areas[..self.count] {
            let (start, end) = rest(area, stack, thread);
            // On both sides of the words.
            for (start, end) in [(start, end.min(words.start)), (start.max(words.end), end)] {
                if end.saturating_sub(start) >= LEAST_BYTES {
                    // SAFETY: private memory of this process that is not used any more.
                    unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) };
                }
            }
        }
    }
}

/// The part of an area that is not needed. The data of a thread is above its stack, in the same
/// area, and that of a first thread may be at the begin of the heap.
fn rest((start, end): (usize, usize), stack: usize, thread: usize) -> (usize, usize) {
    let has = |address| start <= address && address < end;
    match (has(thread), has(stack)) {
        (false, false) => (start, end),
        (false, true) => (end, end),
        (true, _) => ((thread + KEPT_BYTES).next_multiple_of(PAGE_BYTES), end),
    }
}

/// Words with which a child executes its program, in an area of their own: vectors that end with
/// a null pointer, and the strings to which they point.
#[derive(Debug)]
pub(crate) struct Words {
    area: Range<usize>,
    /// Arguments of the program.
    pub(crate) argv: *const *const libc::c_char,
    /// Environment of the program.
    pub(crate) environment: *const *const libc::c_char,
    /// Paths at which the program may be.
    pub(crate) paths: *const *const libc::c_char,
    /// File for its standard input that is opened last; null: there is none.
    pub(crate) late_input: *const libc::c_char,
}

impl Words {
    /// The words of a program.
    #[allow(unsafe_code)]
    pub(crate) fn of(prepared: &Prepared) -> io::Result<Self> {
        let late: Vec<_> = prepared.late_input.iter().cloned().collect();
        let lists: [&[CString]; 4] =
            [&prepared.argv, &prepared.environment, &prepared.paths, &late];
        let pointers: usize = lists.iter().map(|list| list.len() + 1).sum();
        let texts = lists.iter().flat_map(|list| list.iter());
        let texts: usize = texts.map(|text| text.as_bytes_with_nul().len()).sum();
        let bytes = pointers * size_of::<*const libc::c_char>() + texts;
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        // SAFETY: asks for new memory; nothing else is there.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut pointer = start.cast::<*const libc::c_char>();
        // SAFETY: all pointers and all texts have room in the new area, one after the other. The
        // pointers come first, and the area is aligned for them.
        unsafe {
            let mut text = pointer.add(pointers).cast::<u8>();
            let lists = lists.map(|list| {
                let first = pointer.cast_const();
                for word in list {
                    let word = word.as_bytes_with_nul();
                    std::ptr::copy_nonoverlapping(word.as_ptr(), text, word.len());
                    pointer.write(text.cast());
                    pointer = pointer.add(1);
                    text = text.add(word.len());
                }
                pointer.write(std::ptr::null());
                pointer = pointer.add(1);
                first
            });
            let [argv, environment, paths, late] = lists;
            let area = start as usize..start as usize + bytes;
            Ok(Self { area, argv, environment, paths, late_input: late.read() })
        }
    }

    /// Bounds of the area.
    pub(crate) fn area(&self) -> Range<usize> {
        self.area.clone()
    }
}

impl Drop for Words {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the area is this value's alone, and nothing points to it any more.
        unsafe { libc::munmap(self.area.start as *mut _, self.area.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_memory_without_a_file_is_given_back() {
        let maps = "\
00400000-00500000 r-xp 00000000 08:01 17 /usr/bin/pbsd
00500000-00600000 rw-p 00100000 08:01 17 /usr/bin/pbsd
00600000-00700000 rw-p 00000000 00:00 0
01000000-02000000 rw-p 00000000 00:00 0                          [heap]
7e0000000000-7e000003f000 rw-p 00000000 00:00 0
7f0000000000-7f0001800000 rw-p 00000000 00:00 0
7f0001800000-7f0004000000 ---p 00000000 00:00 0
7f0005000000-7f0005010000 rw-p 00000000 00:00 0
7f0006000000-7f0006100000 rw-s 00000000 00:01 99 /memfd:x (deleted)
7f0007000000-7f0007100000 r--p 00000000 00:00 0
7ffe00000000-7ffe00800000 rw-p 00000000 00:00 0                  [stack]
nonsense
";
        let areas = Areas::of(maps);
        let found = &areas.areas[..areas.count];
        assert_eq!(found, [(0x7f00_0000_0000, 0x7f00_0180_0000), (0x0100_0000, 0x0200_0000)]);
        assert_eq!(Areas::of("").count, 0);
    }

    #[test]
    fn the_stack_and_the_data_of_the_thread_stay() {
        let area = (0x10_0000, 0x90_0000);
        assert_eq!(rest(area, 0xf0_0000, 0xf0_1000), area);
        assert_eq!(rest(area, 0x20_0000, 0x20_8000), (0x22_0000, 0x90_0000));
        assert_eq!(rest(area, 0xf0_0000, 0x10_0040), (0x12_0000, 0x90_0000));
        // A stack that is not that of a thread of the C library.
        assert_eq!(rest(area, 0x20_0000, 0xf0_0000), (0x90_0000, 0x90_0000));
    }
}
