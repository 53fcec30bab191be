// SPDX-License-Identifier: GPL-2.0
//! Memory that the check of a job takes, counted in bytes by the allocator: a text of which
//! everything is wrong is about as long as the problems that are told of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use pbs_job::{job_from_toml, MAX_NAME_BYTES, MAX_TASKS};
use pbs_text::{Problem, Problems};

/// Bytes that are allocated now, and the most that were since the last look.
static NOW_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
/// One test at a time: the count is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: the system's allocator does the work; the counters allocate nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW_BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        PEAK_BYTES.fetch_max(now, SeqCst);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW_BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's arguments, unchanged.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const HEAD: &str = "name = \"a\"\ndeadline_ns = \"1s\"\n";

/// The longest text of a call, less the rest of the call.
const TEXT_BYTES: usize = 930_000;

/// Lengthens a text by items until it is as long as a call can have it.
fn filled(mut text: String, item: impl Fn(usize) -> String, end: &str) -> String {
    for number in 0.. {
        if text.len() >= TEXT_BYTES {
            break;
        }
        text += &item(number);
    }
    text + end
}

/// Checks a text; returns the problems, the bytes that they keep, and the most bytes on the way.
fn checked(text: &str) -> (Vec<Problem>, usize, usize) {
    let before = NOW_BYTES.load(SeqCst);
    PEAK_BYTES.store(before, SeqCst);
    let problems = job_from_toml(text).expect_err("everything is wrong");
    // The harness may free something of its own meanwhile.
    let kept = NOW_BYTES.load(SeqCst).saturating_sub(before);
    (problems, kept, PEAK_BYTES.load(SeqCst).saturating_sub(before))
}

#[test]
fn problems_of_a_long_text_take_little_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = |rest: &str| format!("{HEAD}[[process]]\nid = 1\nmemory_bytes = 0\n{rest}");
    let long_name = format!("name = \"{}\"\n", "n".repeat(MAX_NAME_BYTES));
    let mut own = String::new();
    for number in 0..40_000 {
        write!(own, "{number},").unwrap();
    }
    let texts = [
        // The lengths of tasks are none.
        filled(process("tasks = ["), |_| "[],".into(), "]\n"),
        // ... and of no more tasks than a job may have.
        process(&format!("tasks = [{}]\n", "[],".repeat(MAX_TASKS))),
        // Texts, where numbers are to be.
        process(&format!("tasks = [{}]\n", "\"\",".repeat(MAX_TASKS))),
        // Tasks without anything, below a name that each message repeats.
        process(&format!("{long_name}tasks = [{}]\n", "{},".repeat(MAX_TASKS))),
        // Names of tasks that are not there.
        filled(process("tasks = [1,{insns=1,after=["), |it| format!("\"t{it}\","), "]}]\n"),
        // CPUs that are named twice, and CPUs that are none of the job's.
        filled(format!("cpus = [{own}]\n{}", process("tasks=[1]\ncpus=[")), |_| "7,".into(), "]\n"),
        filled(
            format!("cpus = [1]\n{}", process(&format!("{long_name}tasks=[1]\ncpus=["))),
            |it| format!("{},", it + 2),
            "]\n",
        ),
        // Processes without a number, and keys that there are not.
        filled(format!("{HEAD}process = ["), |_| "{},".into(), "]\n"),
        filled(HEAD.into(), |it| format!("k{it}=1\n"), ""),
        // A name of its own length, which problems of all tasks would repeat.
        process(&format!(
            "name = \"{}\"\ntasks = [{}]\n",
            "n".repeat(TEXT_BYTES / 2),
            "{},".repeat(MAX_TASKS)
        )),
    ];
    for text in texts {
        let (problems, kept, peak) = checked(&text);
        let start = &text[..text.len().min(120)];
        println!("{} problems, {kept} bytes, peak {peak}: {start}", problems.len());
        assert!((1..=Problems::MOST + 1).contains(&problems.len()), "{start}");
        assert!(kept < 64 << 10, "{kept} bytes of problems: {start}");
        // The document itself takes some hundred bytes for each value of two letters.
        let most = 160 << 20;
        assert!(peak < most, "{peak} bytes on the way: {start}");
        assert!(problems.iter().all(|it| it.message.len() < 2000), "{start}");
    }
}

#[test]
fn more_tasks_than_a_job_may_have_are_counted_only() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = format!(
        "{HEAD}[[process]]\nid = 1\nmemory_bytes = 0\ntasks = [{}]\n",
        "1,".repeat(MAX_TASKS + 1)
    );
    let (problems, ..) = checked(&text);
    let messages: Vec<_> = problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        ["the job has 100_001 tasks, and at most 100_000 are allowed; write fewer"]
    );
    assert!(job_from_toml(&text.replacen("1,", "", 1)).is_ok());
}

#[test]
fn a_name_of_a_process_or_task_is_short() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = |process: usize, task: usize| {
        format!(
            "{HEAD}[[process]]\nid = 1\nname = \"{}\"\nmemory_bytes = 0\n\
             tasks = [{{ name = \"{}\", insns = 1 }}]\n",
            "p".repeat(process),
            "t".repeat(task)
        )
    };
    assert!(job_from_toml(&text(MAX_NAME_BYTES, MAX_NAME_BYTES)).is_ok());
    for text in [text(MAX_NAME_BYTES + 1, 1), text(1, MAX_NAME_BYTES + 1)] {
        let (problems, ..) = checked(&text);
        assert!(problems[0].message.contains("201 bytes, and at most 200"), "{problems:?}");
    }
}
