// SPDX-License-Identifier: GPL-2.0
//! The socket of the service: one call and its answer, in some time and no more.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::io::{self, ErrorKind, Read};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest answer that is read.
const MOST_BYTES: u64 = 64 << 10;

// Of the C library, which is there anyway; numbers are those of Linux.
const AF_UNIX: c_int = 1;
const SOCK_STREAM: c_int = 1;
const SOCK_NONBLOCK: c_int = 0o4000;
const SOCK_CLOEXEC: c_int = 0o2_000_000;
const MSG_NOSIGNAL: c_int = 0x4000;

/// `struct sockaddr_un`
#[repr(C)]
struct Address {
    family: u16,
    path: [c_char; 108],
}

#[allow(unsafe_code)]
extern "C" {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(fd: c_int, address: *const Address, bytes: c_uint) -> c_int;
    fn send(fd: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize;
}

/// Answer of the service on that socket, within that time.
pub(crate) fn ask(path: &Path, message: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut stream = connected(path)?;
    say(&stream, message.as_bytes())?;
    stream.set_nonblocking(false)?;
    let mut answer = Vec::new();
    let mut part = [0u8; 4096];
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut part) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let read = part.get(..count).unwrap_or_default();
        let end = read.iter().position(|byte| *byte == 0);
        answer.extend(read.iter().take(end.unwrap_or(count)));
        if end.is_some() {
            return Ok(answer);
        }
        if answer.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("the answer has no end"));
        }
    }
}

/// Connects at once or not at all: where many wait to be let in, connect(2) would wait with
/// them, for as long as that takes.
#[allow(unsafe_code)]
fn connected(path: &Path) -> io::Result<UnixStream> {
    let mut address = Address { family: AF_UNIX as u16, path: [0; 108] };
    let name = path.as_os_str().as_bytes();
    // The zero byte behind it has to fit as well.
    if name.len() >= address.path.len() || name.contains(&0) {
        return Err(io::Error::other("the path of the socket is too long"));
    }
    for (to, from) in address.path.iter_mut().zip(name) {
        *to = *from as c_char;
    }
    // SAFETY: the call gives a new descriptor, or -1.
    let fd = unsafe { socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened, and nobody else owns it.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let bytes = size_of::<Address>() as c_uint;
    const _: () = assert!(offset_of!(Address, path) == 2);
    // SAFETY: the address is so long, and valid for reading.
    match unsafe { connect(fd, &raw const address, bytes) } {
        0 => Ok(stream),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends all of it at once, or it fails: a call is far shorter than what a socket takes. Not
/// by write(2), which raises SIGPIPE where the other end has gone, and that may end the
/// daemon.
#[allow(unsafe_code)]
fn say(stream: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let (fd, from) = (stream.as_raw_fd(), bytes.as_ptr().cast());
    // SAFETY: `from` is valid for reading so many bytes.
    let sent = unsafe { send(fd, from, bytes.len(), MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
