// SPDX-License-Identifier: GPL-2.0
//! Plan processes that wait for what they read, which Linux counts apart
//! (`in_iowait`).

use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;

use crate::check;
use crate::harness::{cvt, fork, sleep_ms, Context, Plan, Verdict};
use crate::linux::accounts::{all_at_rest, waiting_for_input};
use crate::linux::scene::{ends_well, Scene, SharedWords, Turns, PLAN_CPU};

const SHARE: &CStr = c"/mnt";
const FILE: &str = "/mnt/input";
const BYTES: usize = 1 << 20;
/// Number of times that the plan process must be seen where it waits for a page.
const WAITS: u32 = 3;

/// Makes reads of the shared folder use the page cache, where a reader waits for pages.
fn read_through_the_cache() -> Verdict {
    // SAFETY: texts that end with a null byte.
    let mounted = unsafe {
        cvt(libc::umount(SHARE.as_ptr())).context("unmount the shared folder")?;
        libc::mount(
            c"share".as_ptr(),
            SHARE.as_ptr(),
            c"9p".as_ptr(),
            0,
            c"trans=virtio,version=9p2000.L,cache=loose".as_ptr().cast(),
        )
    };
    cvt(mounted).context("mount it again")?;
    Ok(())
}

/// Reads all of the file, and again when the cache has forgotten it. One of two that do
/// so waits for pages that the other one fetches.
fn read_again_and_again(words: &SharedWords) {
    let file = File::open(FILE).expect(FILE);
    let mut bytes = vec![0; BYTES];
    while words.go.load(SeqCst) == 0 {
        // SAFETY: no memory is involved.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        file.read_exact_at(&mut bytes, 0).expect("read");
    }
}

/// A process that waits for its input is counted as such while it does, whether the CPU is
/// another's meanwhile or its slot is over when the input arrives, and not any more afterwards.
pub fn waits_for_input_are_counted() -> Verdict {
    fs::write(FILE, vec![7; BYTES]).context(FILE)?;
    read_through_the_cache()?;
    let mut scene = Scene::new()?;
    let mut plan = Plan::new(17).config(Turns::config()).cpu(PLAN_CPU);
    for task in 0..10_000 {
        plan = plan.slot(1, task, 200_000).slot(2, task, 200_000);
    }
    scene.node.load(&plan)?;
    let (reader_words, spinner_words) = (SharedWords::shared()?, SharedWords::shared()?);
    let other_words = SharedWords::shared()?;
    let mut other = fork(|| read_again_and_again(other_words))?;
    let mut reader = scene.spawn(1, || read_again_and_again(reader_words))?;
    let mut spinner = scene.spawn(2, || spinner_words.spin())?;
    let (mut samples, mut seen, mut most) = (0, 0, 0);
    while seen < WAITS {
        let place = fs::read_to_string(format!("/proc/{}/wchan", reader.pid)).context("wchan")?;
        let waiting = waiting_for_input()?;
        seen += u32::from(waiting > 0 && place.starts_with("folio_wait"));
        most = most.max(waiting);
        samples += 1;
        check!(samples < 100_000, "it waited for a page {seen} times only");
        sleep_ms(1);
    }
    println!("seen to wait {seen} times in {samples}");
    check!(most <= 2, "{most} processes that wait for input");
    other_words.release();
    ends_well(&mut other, "the other reader")?;
    reader_words.release();
    ends_well(&mut reader, "the reader")?;
    spinner_words.release();
    ends_well(&mut spinner, "the spinner")?;
    scene.plan_ends()?;
    all_at_rest()
}
