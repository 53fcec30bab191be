// SPDX-License-Identifier: GPL-2.0
//! Hostile neighbours: programs that an ordinary user may write, which do one thing without end.

use std::fs::{read_dir, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::{mem, ptr, thread};

use pbs_uapi::Device;

use crate::harness::{burn, cvt, Mapping};

/// A neighbour: a name and what it does until it is killed.
pub type Neighbour = (&'static str, fn(&Device));

/// Neighbours by what they make the kernel do.
pub const ALL: &[Neighbour] = &[
    // System calls.
    ("getppid", |_| forever(|| call(libc::SYS_getppid))),
    ("sched-yield", |_| forever(|| call(libc::SYS_sched_yield))),
    ("uname", |_| forever(uname)),
    ("read-zeroes", |_| read_zeroes(96 << 20)),
    ("read-bytes", |_| read_zeroes(1)),
    ("write-null", |_| write_null()),
    ("open-close", |_| forever(|| drop(File::open("/proc/self/status")))),
    ("read-proc", |_| forever(|| drop(std::fs::read("/proc/self/smaps")))),
    ("list-proc", |_| forever(|| drop(read_dir("/proc").map(Iterator::count)))),
    ("sync-file", |_| sync_file()),
    ("short-sleep", |_| forever(|| thread::sleep(std::time::Duration::from_micros(50)))),
    ("wrong-calls", wrong_calls),
    ("affinity", |_| forever(set_affinity)),
    // Memory.
    ("touch-memory", |_| forever(|| drop(Mapping::touched()))),
    ("map-gigabytes", |_| forever(map_gigabyte)),
    ("fault-again", |_| fault_again()),
    ("protect-again", |_| protect_again()),
    // Processes and threads.
    ("fork", |_| forever(fork_one)),
    ("fork-unreaped", |_| fork_unreaped()),
    ("exec", |_| forever(|| drop(Command::new("/bin/true").status()))),
    ("threads", |_| forever(|| drop(thread::spawn(|| ()).join()))),
    // Signals and timers.
    ("signals", |_| signal_self()),
    ("timers", |_| many_timers()),
    ("interval-timer", |_| interval_timer()),
    // Switches.
    ("pipe-self", |_| pipe_self()),
    ("pipe-pair", |_| pipe_pair()),
    ("socket-pair", |_| socket_pair()),
    ("futex-pair", |_| futex_pair()),
    ("eventfd", |_| event_fd()),
    // Counters.
    ("perf-samples", |_| perf_samples()),
];

/// Does some work without end.
pub fn forever(mut work: impl FnMut()) {
    loop {
        work();
    }
}

/// A system call without arguments.
pub fn call(number: libc::c_long) {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(number) };
}

fn uname() {
    // SAFETY: `name` is a valid place for the answer.
    unsafe {
        let mut name = mem::zeroed();
        libc::uname(&mut name);
    }
}

/// Reads so many zeroes, again and again.
pub fn read_zeroes(bytes: usize) {
    let mut zero = File::open("/dev/zero").expect("/dev/zero");
    let mut buffer = vec![0; bytes];
    forever(|| zero.read_exact(&mut buffer).expect("zeroes"));
}

fn write_null() {
    let mut null = OpenOptions::new().write(true).open("/dev/null").expect("/dev/null");
    forever(|| null.write_all(&[0]).expect("/dev/null"));
}

fn sync_file() {
    let path = format!("/tmp/hostile-{}", std::process::id());
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(&path).expect("a file");
    let bytes = vec![7; 1 << 20];
    forever(|| {
        file.rewind().expect("rewind");
        file.write_all(&bytes).expect("write");
        file.sync_all().expect("fsync");
    });
}

/// Calls of the class that are refused.
fn wrong_calls(device: &Device) {
    let fd = device.as_fd().as_raw_fd();
    forever(|| {
        // SAFETY: the call is refused before it uses its argument, which is null.
        unsafe { libc::ioctl(fd, 0xbcff, ptr::null_mut::<libc::c_void>()) };
    });
}

fn set_affinity() {
    // SAFETY: the set is valid for its size.
    unsafe {
        let mut cpus: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(0, &mut cpus);
        libc::sched_setaffinity(0, mem::size_of_val(&cpus), &cpus);
    }
}

const GIGABYTE: usize = 1 << 30;

/// New memory that nobody has touched.
fn map(bytes: usize) -> *mut libc::c_void {
    // SAFETY: new memory.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED, "mmap");
    memory
}

/// Maps a GiB and unmaps it.
pub fn map_gigabyte() {
    let memory = map(GIGABYTE);
    // SAFETY: what was mapped, and is used no more.
    unsafe { libc::munmap(memory, GIGABYTE) };
}

/// Touches pages that the kernel takes back each time.
fn fault_again() {
    const BYTES: usize = 4 << 20;
    let memory = map(BYTES);
    forever(|| {
        // SAFETY: every byte that is written lies in the mapping.
        unsafe {
            for offset in (0..BYTES).step_by(4096) {
                memory.cast::<u8>().add(offset).write_volatile(1);
            }
            libc::madvise(memory, BYTES, libc::MADV_DONTNEED);
        }
    });
}

fn protect_again() {
    const BYTES: usize = 4 << 20;
    let memory = map(BYTES);
    forever(|| {
        // SAFETY: the mapping is this function's own.
        unsafe {
            libc::mprotect(memory, BYTES, libc::PROT_READ);
            libc::mprotect(memory, BYTES, libc::PROT_READ | libc::PROT_WRITE);
            memory.cast::<u8>().write_volatile(1);
        }
    });
}

/// Forks a child that ends at once.
pub fn fork_one() {
    // SAFETY: the child ends at once, and its parent waits for it.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            pid => libc::waitpid(pid, ptr::null_mut(), 0),
        };
    }
}

/// Children that end and stay zombies, as many as the limit allows, and then all of them anew.
fn fork_unreaped() {
    const CHILDREN: usize = 100;
    forever(|| {
        for _ in 0..CHILDREN {
            // SAFETY: the child ends at once.
            unsafe {
                if libc::fork() == 0 {
                    libc::_exit(0);
                }
            }
        }
        // SAFETY: no memory is involved.
        while unsafe { libc::waitpid(-1, ptr::null_mut(), 0) } > 0 {}
    });
}

/// Sends the other one of two signals to the thread that handles one of them.
extern "C" fn handle(signal: libc::c_int) {
    let other = libc::SIGUSR1 + libc::SIGUSR2 - signal;
    // SAFETY: no memory is involved.
    unsafe { libc::raise(other) };
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Handles a signal by `handler`, in which both signals wait.
fn on_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the action is valid, and the handlers make system calls at most.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        libc::sigaddset(&mut action.sa_mask, libc::SIGUSR1);
        libc::sigaddset(&mut action.sa_mask, libc::SIGUSR2);
        libc::sigaction(signal, &action, ptr::null_mut());
    }
}

/// Keeps a signal to handle at all times.
pub fn signal_self() {
    on_signal(libc::SIGUSR1, handle);
    on_signal(libc::SIGUSR2, handle);
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGUSR1) };
}

/// Timers a few microseconds apart, whose signal is ignored.
fn many_timers() {
    const TIMERS: u32 = 900;
    const PERIOD_NS: i64 = 4_000_000;
    // SAFETY: all structs are valid for the calls.
    unsafe {
        libc::signal(libc::SIGUSR1, libc::SIG_IGN);
        for number in 0..TIMERS {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGUSR1;
            let mut timer: libc::timer_t = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) != 0 {
                break;
            }
            let first_ns = 1_000_000 + i64::from(number) * PERIOD_NS / i64::from(TIMERS);
            let times = libc::itimerspec {
                it_interval: libc::timespec { tv_sec: 0, tv_nsec: PERIOD_NS },
                it_value: libc::timespec { tv_sec: 0, tv_nsec: first_ns },
            };
            libc::timer_settime(timer, 0, &times, ptr::null_mut());
        }
    }
    burn(1 << 40);
}

fn interval_timer() {
    on_signal(libc::SIGALRM, ignore);
    let short = libc::timeval { tv_sec: 0, tv_usec: 50 };
    let times = libc::itimerval { it_interval: short, it_value: short };
    // SAFETY: the times are valid; no old ones are asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &times, ptr::null_mut()) };
    burn(1 << 40);
}

/// The two ends of a pipe.
fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both.
    cvt(unsafe { libc::pipe(ends.as_mut_ptr()) }).expect("pipe");
    // SAFETY: both descriptors are new and nobody else's.
    unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) }
}

fn pipe_self() {
    let (mut read, mut write) = pipe();
    let mut byte = [0];
    forever(|| {
        write.write_all(&byte).expect("pipe");
        read.read_exact(&mut byte).expect("pipe");
    });
}

/// Two threads that pass a byte to and fro.
fn pipe_pair() {
    let ((mut read_a, mut write_a), (mut read_b, mut write_b)) = (pipe(), pipe());
    thread::spawn(move || {
        let mut byte = [0];
        forever(|| {
            read_a.read_exact(&mut byte).expect("pipe");
            write_b.write_all(&byte).expect("pipe");
        });
    });
    let mut byte = [0];
    forever(|| {
        write_a.write_all(&byte).expect("pipe");
        read_b.read_exact(&mut byte).expect("pipe");
    });
}

fn socket_pair() {
    let (mut here, mut there) = UnixStream::pair().expect("sockets");
    let mut bytes = [0; 256];
    forever(|| {
        here.write_all(&bytes).expect("socket");
        there.read_exact(&mut bytes).expect("socket");
    });
}

/// Two threads that wake each other up.
fn futex_pair() {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let take_turns = |mine: u32| {
        forever(|| {
            let turn = TURN.load(SeqCst);
            let word = TURN.as_ptr();
            if turn == mine {
                TURN.store(1 - mine, SeqCst);
                // SAFETY: the word lives for ever.
                unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1) };
            } else {
                let no_time = ptr::null::<libc::timespec>();
                // SAFETY: the word lives for ever, and the time may be null.
                unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, turn, no_time) };
            }
        });
    };
    thread::spawn(move || take_turns(1));
    take_turns(0);
}

fn event_fd() {
    // SAFETY: the descriptor is new and nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) };
    let mut file = File::from(fd);
    let mut number = 1u64.to_ne_bytes();
    forever(|| {
        file.write_all(&number).expect("eventfd");
        file.read_exact(&mut number).expect("eventfd");
    });
}

/// A counter of its own time that interrupts as often as the kernel allows.
fn perf_samples() {
    #[repr(C)]
    #[derive(Default)]
    struct Attr {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        more: [u64; 2],
    }
    const SOFTWARE: u32 = 1;
    const PERIOD_NS: u64 = 20_000;
    let size = mem::size_of::<Attr>() as u32;
    let attr = Attr { kind: SOFTWARE, size, sample_period: PERIOD_NS, ..Attr::default() };
    // SAFETY: the attributes are valid for their size; the event is of this thread.
    unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, 0, -1, -1, 0) };
    burn(1 << 40);
}
