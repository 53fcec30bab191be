// SPDX-License-Identifier: GPL-2.0
//! The open CSIMF, and the lock on it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files::{self, Trust};
use crate::layout::{
    CsiRecord, CsimfHeader, DeviceRecord, EntryRecord, CSIMF_BYTES, CSIMF_MAGIC, CSIMF_NAME,
    DEVICE_CAPACITY, DONE, ENTRY_CAPACITY, GENERATION_AT, LAYOUT, NOT_STARTED, RUNNING, STATE_AT,
};
use crate::lock;
use crate::map::Page;
use crate::owner::World;
use crate::{Error, Owner};

/// Default directory of the files.
pub const DEFAULT_DIRECTORY: &str = "/dev/shm";
/// Default of [`Options::overdue_factor`].
pub const OVERDUE_FACTOR: u32 = 10;

/// Options for opening a node's shared memory.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the files. Where users do not trust each other one of the group's
    /// own (mode 0770) is better than `/dev/shm`: in that anybody can make files, and only
    /// their owners can remove them.
    pub directory: PathBuf,
    /// The group that shares them, by its number: files are of mode 0660. Without one only
    /// this user, and root, have them: mode 0600.
    pub group: Option<u32>,
    /// Maximum wait for the lock, and maximum time for which a master may compute before it is
    /// replaced.
    pub patience: Duration,
    /// Multiple of its expected runtime after which a task in execution is overdue. While its
    /// process is stopped, others plan around it then, and use its devices. `None`: never.
    pub overdue_factor: Option<u32>,
    /// Called before each change of shared memory. For tests that kill the process there.
    pub on_step: Option<fn()>,
}

impl Options {
    /// The files of this directory, for this user alone, with a second of patience.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            group: None,
            patience: Duration::from_secs(1),
            overdue_factor: Some(OVERDUE_FACTOR),
            on_step: None,
        }
    }

    pub(crate) fn step(&self) {
        if let Some(on_step) = self.on_step {
            on_step();
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new(DEFAULT_DIRECTORY)
    }
}

/// Status of a co-scheduling (§5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// None is calculated, and all have fetched the last.
    NotStarted,
    /// This process calculates one.
    Running(Owner),
    /// A result exists that not all processes have fetched.
    Done,
}

/// The files that this program has opened so far; `exec` empties it.
static OPENED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// The CSIMF of a node, open.
#[derive(Debug)]
pub struct Node {
    pub(crate) directory: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) trust: Trust,
    pub(crate) own: Owner,
    world: World,
    file: File,
    page: Page,
    /// Threads of this process: the other lock is of the open file, which they share.
    threads: Mutex<()>,
}

impl Node {
    /// Opens the CSIMF, or makes it if there is none, and removes what the dead have left.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] and [`Error::NotTrusted`] where there is one that can't be used.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let node = match Self::attach(options)? {
            Some(node) => node,
            None => {
                let mut content = vec![0; CSIMF_BYTES];
                let header = fresh(World::this()?).to_bytes();
                content[..CsimfHeader::BYTES].copy_from_slice(&header);
                let path = options.directory.join(CSIMF_NAME);
                files::publish(&path, options, &content)?;
                let gone = || Error::io(path, io::ErrorKind::NotFound.into());
                Self::attach(options)?.ok_or_else(gone)?
            }
        };
        let mut locked = node.lock()?;
        locked.forget_before_exec()?;
        locked.sweep()?;
        drop(locked);
        node.remove_orphans(2 * ENTRY_CAPACITY);
        Ok(node)
    }

    /// Opens the CSIMF, if there is one, and leaves it as it is.
    pub(crate) fn attach(options: &Options) -> Result<Option<Self>, Error> {
        // The process may go to another directory.
        let directory = std::path::absolute(&options.directory);
        let directory = directory.map_err(|error| Error::io(&options.directory, error))?;
        let path = directory.join(CSIMF_NAME);
        let trust = Trust::new(options.group);
        let file = match files::open(&path, trust, CSIMF_BYTES as u64) {
            Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            file => file?,
        };
        let page = Page::new(&file).map_err(|error| Error::io(&path, error))?;
        Ok(Some(Self {
            directory,
            path,
            options: options.clone(),
            trust,
            own: Owner::this()?,
            world: World::this()?,
            file,
            page,
            threads: Mutex::new(()),
        }))
    }

    /// This process.
    pub fn owner(&self) -> Owner {
        self.own
    }

    /// The generation: one load, which is all of the check before a task (§5.6.2). If it
    /// is another than at the last fetch there is something to fetch.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.page.generation().load(Ordering::Acquire)
    }

    /// Takes the lock, and repairs the state of a holder that was killed with it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] after [`Options::patience`]; [`Error::Damaged`].
    pub fn lock(&self) -> Result<Locked<'_>, Error> {
        if std::process::id() != self.own.pid {
            return Err(Error::Forked);
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = lock::take(&self.file, self.options.patience);
        if !taken.map_err(|error| Error::io(&self.path, error))? {
            let header = self.read_header();
            return Err(Error::Locked {
                path: self.path.clone(),
                holder_pid: header.map_or(0, |header| header.holder_pid),
            });
        }
        let mut locked =
            Locked { node: self, header: CsimfHeader::zero(), is_held: false, _threads: threads };
        locked.header = self.read_header()?;
        self.check(&locked.header)?;
        // Only now, so that the reasons that can still be seen are told first.
        if self.page.is_lost() {
            let why = "it was made shorter, and has its length again";
            return Err(Error::damaged(&self.path, why));
        }
        let has_died = locked.header.holder_pid != 0;
        locked.header.holder_pid = self.own.pid;
        locked.header.holder_start_ticks = self.own.start_ticks;
        locked.write_state()?;
        locked.is_held = true;
        if has_died {
            locked.repair()?;
        }
        Ok(locked)
    }

    fn read_header(&self) -> Result<CsimfHeader, Error> {
        let mut bytes = [0; CsimfHeader::BYTES];
        self.read(&mut bytes, 0)?;
        Ok(CsimfHeader::from_bytes(&bytes))
    }

    /// Copies bytes out of the file.
    pub(crate) fn read(&self, bytes: &mut [u8], at: usize) -> Result<(), Error> {
        let read = self.file.read_exact_at(bytes, at as u64);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::damaged(&self.path, "it was made shorter"),
            _ => Error::io(&self.path, error),
        })
    }

    /// Whether a header is one of this layout, boot and namespace.
    fn check(&self, header: &CsimfHeader) -> Result<(), Error> {
        let about = self.file.metadata();
        let about = about.map_err(|error| Error::io(&self.path, error))?;
        let told = |why: &str| Err(Error::damaged(&self.path, why));
        if about.nlink() == 0 {
            return told("it was removed while it was in use");
        }
        // Whoever comes now finds none, or another, and there would be two masters.
        let named = fs::symlink_metadata(&self.path);
        let is_named = named.is_ok_and(|named| file_id(&named) == file_id(&about));
        if !is_named {
            return told("its name was taken away while it was in use");
        }
        if about.len() != CSIMF_BYTES as u64 {
            return told("its length was changed");
        }
        check_header(header, self.world).or_else(|why| told(&why))
    }

    pub(crate) fn step(&self) {
        self.options.step();
    }
}

/// Returns the identity of a file, whatever its name.
fn file_id(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// The header of a new CSIMF.
fn fresh(world: World) -> CsimfHeader {
    let mut header = CsimfHeader::zero();
    header.magic = CSIMF_MAGIC;
    header.layout = LAYOUT;
    header.header_bytes = CsimfHeader::BYTES as u32;
    header.device_bytes = DeviceRecord::BYTES as u32;
    header.device_capacity = DEVICE_CAPACITY as u32;
    header.entry_bytes = EntryRecord::BYTES as u32;
    header.entry_capacity = ENTRY_CAPACITY as u32;
    header.csi_bytes = CsiRecord::BYTES as u32;
    header.boot_id = world.boot_id;
    header.pid_namespace = world.namespaces;
    header.generation = 1;
    header.status = NOT_STARTED;
    header
}

/// Whether a header can be used, or why not.
pub(crate) fn check_header(header: &CsimfHeader, world: World) -> Result<(), String> {
    let expected = fresh(world);
    if header.magic != expected.magic {
        return Err("it is no CSIMF".into());
    }
    if header.layout != LAYOUT {
        return Err(format!(
            "it has shm layout {}, and this program knows {LAYOUT}",
            header.layout
        ));
    }
    let sizes = |of: &CsimfHeader| {
        let bytes = [of.header_bytes, of.device_bytes, of.entry_bytes];
        (bytes, of.csi_bytes, of.device_capacity, of.entry_capacity)
    };
    if sizes(header) != sizes(&expected) {
        return Err("its records have other sizes".into());
    }
    if header.boot_id != world.boot_id {
        return Err("it is of another boot".into());
    }
    if header.pid_namespace != world.namespaces {
        let why = "it is of another container: its pids or clocks are not those of here";
        return Err(why.into());
    }
    let is_status = [NOT_STARTED, RUNNING, DONE].contains(&header.status);
    if !is_status || header.device_count as usize > DEVICE_CAPACITY {
        return Err("its content can't be".into());
    }
    Ok(())
}

/// The lock on a [`Node`]; released when dropped.
#[derive(Debug)]
pub struct Locked<'a> {
    pub(crate) node: &'a Node,
    pub(crate) header: CsimfHeader,
    is_held: bool,
    _threads: MutexGuard<'a, ()>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // The child of a fork: the lock, and what the header says of it, are its parent's.
        if std::process::id() != self.node.own.pid {
            return;
        }
        // Who panicked may have left half of something: the next one finds a holder.
        if self.is_held && !std::thread::panicking() {
            self.header.holder_pid = 0;
            self.header.holder_start_ticks = 0;
            // A write that fails leaves a dead holder, which the next process finds.
            let _ = self.write_state();
        }
        // The end of the process releases the lock, too.
        let _ = lock::release(&self.node.file);
    }
}

impl Locked<'_> {
    /// Returns the status of co-scheduling.
    pub fn status(&self) -> Status {
        match self.header.status {
            RUNNING => Status::Running(self.master()),
            DONE => Status::Done,
            _ => Status::NotStarted,
        }
    }

    /// The generation; it does not change as long as the lock is held, but by its holder.
    pub fn generation(&self) -> u64 {
        self.node.generation()
    }

    pub(crate) fn master(&self) -> Owner {
        Owner { pid: self.header.master_pid, start_ticks: self.header.master_start_ticks }
    }

    pub(crate) fn set_status(&mut self, status: u32, master: Option<Owner>) {
        self.header.status = status;
        self.header.master_pid = master.map_or(0, |of| of.pid);
        self.header.master_start_ticks = master.map_or(0, |of| of.start_ticks);
    }

    /// Writes the part of the header that changes.
    pub(crate) fn write_state(&self) -> Result<(), Error> {
        let bytes = self.header.to_bytes();
        self.write(&bytes[STATE_AT..], STATE_AT)
    }

    /// Changes the generation, which makes all processes check the status.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.node.step();
        // Zero is what a file reads as that was made shorter.
        let next = self.node.generation().wrapping_add(1).max(1);
        self.node.page.generation().store(next, Ordering::Release);
        next
    }

    /// Writes into the file. If it was made shorter, its length tells the next who locks.
    pub(crate) fn write(&self, bytes: &[u8], at: usize) -> Result<(), Error> {
        self.node.step();
        let written = self.node.file.write_all_at(bytes, at as u64);
        written.map_err(|error| Error::io(&self.node.path, error))
    }

    /// `exec` keeps the pid and the start time: what the program before this one has entered
    /// looks as if it were ours, and nobody would ever end it. The first time that this
    /// program opens a file all of that goes.
    fn forget_before_exec(&mut self) -> Result<(), Error> {
        let about = self.node.file.metadata();
        let about = about.map_err(|error| Error::io(&self.node.path, error))?;
        let file = file_id(&about);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.contains(&file) {
            return Ok(());
        }
        let own = self.node.own;
        self.sweep_of(|owner| owner == own)?;
        if self.header.status == RUNNING && self.master() == own {
            self.take_back()?;
        }
        opened.push(file);
        Ok(())
    }

    /// After one died with the lock: what was half done is taken back or brought to an end.
    fn repair(&mut self) -> Result<(), Error> {
        self.sweep()?;
        match self.header.status {
            RUNNING if self.master().is_alive() => {}
            RUNNING => self.take_back()?,
            _ => {
                self.next_generation();
            }
        }
        Ok(())
    }
}

const _: () = assert!(GENERATION_AT + 8 == STATE_AT);
