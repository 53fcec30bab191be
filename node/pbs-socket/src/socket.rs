// SPDX-License-Identifier: GPL-2.0
//! The socket: who may connect, how much each may say and how slowly, and that none
//! keeps another waiting.
//!
//! A task for each connection, all in one thread: it reads a call, has it handled, and
//! writes the answer before it reads the next. All connections of a user have some time
//! together, and then it is the turn of others, so that many get no more than one. One that
//! does not read its answers, or sends a call by halves, waits alone, and not for ever.

use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::pin::{pin, Pin};
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep_until, timeout, Instant, Sleep};
use zlink::connection::socket::{self, ReadResult, Socket};
use zlink::futures_util::future::{select, Either};
use zlink::futures_util::{Stream, StreamExt};
use zlink::service::{MethodReply, Service};
use zlink::{Connection, Reply};

use crate::accounts::AccountFiles;
use crate::caller::{Caller, Operators};
use crate::connections::{ConnectionLimits, Connections, CountedConnection, UserTurn};
use crate::places::Places;

/// The longest call.
const MOST_BYTES: usize = 1 << 20;
/// For how long a call may come.
const CALL_TIME: Duration = Duration::from_secs(10);
/// For how long an answer may wait to be read.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Time for which no connection is accepted when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The number of sockets that were handed over by who started us (sd_listen_fds(3)).
pub fn handed_over_count() -> usize {
    let own = std::process::id().to_string();
    let is_ours = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == own);
    let count = std::env::var("LISTEN_FDS").ok().filter(|_| is_ours);
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The socket that was handed over by who started us, if it is one only.
#[allow(unsafe_code)]
pub fn handed_over() -> Option<OwnedFd> {
    // SAFETY: descriptor 3 was opened for us by who started us, and is nobody else's.
    let socket = (handed_over_count() == 1).then(|| unsafe { OwnedFd::from_raw_fd(3) });
    // Programs do not inherit the copy.
    socket?.try_clone().ok()
}

/// Listens at that path, where nobody else does.
pub fn listen(path: &Path) -> io::Result<StdListener> {
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        if !directory.is_dir() {
            fs::create_dir_all(directory)?;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
    }
    if path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket()) {
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AddrInUse)),
            // Of one that was killed.
            Err(_) => fs::remove_file(path)?,
        }
    }
    let listener = StdListener::bind(path)?;
    // Who may do what is asked of each caller.
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Serves all who connect, for ever; `session` is the service as one caller sees it.
///
/// Has to run in a [`LocalSet`](tokio::task::LocalSet).
pub async fn serve<S>(
    listener: StdListener,
    limits: ConnectionLimits,
    session: impl Fn(Caller) -> S,
) -> io::Result<()>
where
    S: Service<Nowhere> + 'static,
{
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let connections = Connections::default();
    let unread = Places::of_answers();
    let mut account_files = AccountFiles::default();
    let mut operators_group = Operators::new();
    loop {
        // One who connects again and again would keep all others waiting.
        tokio::task::yield_now().await;
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptors, or no memory.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (operators, accounts) = (operators_group.number(), account_files.accounts());
        let Ok(caller) = Caller::of(stream.as_fd(), operators, &accounts) else {
            continue;
        };
        // Beyond that one is closed at once: an answer would have to be waited for.
        let Some(place) = CountedConnection::of(&connections, &caller, limits) else {
            continue;
        };
        let (id, turn) = (place.id(), place.turn().clone());
        let shared = Shared { caller: caller.clone(), turn, unread: unread.clone() };
        let session = session(caller);
        let task = tokio::task::spawn_local(async move {
            converse(stream, session, &shared).await;
            drop(place);
        });
        connections.can_close(id, task.abort_handle());
    }
}

/// State that a connection shares with others: the turn of its user, and the places of answers that
/// were not read yet.
struct Shared {
    caller: Caller,
    turn: UserTurn,
    unread: Places,
}

/// Answers one connection until it ends, or does not behave.
async fn converse(stream: UnixStream, mut session: impl Service<Nowhere>, shared: &Shared) {
    let (calls, answers) = stream.into_split();
    let (mut calls, _) = Connection::new(Calls(calls)).split();
    let turn = &shared.turn;
    // No method asks for its connection, which a call has borrowed.
    let mut none = Connection::new(Nowhere);
    loop {
        let Ok((call, _)) = calls.receive_call().await else {
            return;
        };
        // One whose calls never end, and wait for nothing, would keep all others waiting.
        turn.come().await;
        let began = Instant::now();
        let (reply, _) = session.handle(&call, &mut none, Vec::new()).await;
        turn.spend(began.elapsed());
        let is_said = match reply {
            _ if call.oneway() && !matches!(reply, MethodReply::Multi(_)) => true,
            MethodReply::Single(parameters) => {
                let reply = Reply::new(parameters).set_continues(Some(false));
                say(&answers, reply, shared).await
            }
            MethodReply::Error(error) => say(&answers, error, shared).await,
            MethodReply::Multi(mut replies) => {
                let mut is_said = true;
                loop {
                    let gone = pin!(gone(&answers));
                    let next = pin!(next_in_turn(&mut replies, turn));
                    let Either::Left((next, _)) = select(next, gone).await else {
                        return;
                    };
                    let Some((reply, _)) = next else {
                        break;
                    };
                    is_said = match reply {
                        Ok(reply) => say(&answers, reply, shared).await,
                        Err(error) => say(&answers, error, shared).await,
                    };
                    if !is_said {
                        break;
                    }
                }
                is_said
            }
            // Nothing is spoken here but varlink.
            _ => false,
        };
        if !is_said {
            return;
        }
    }
}

/// Waits for the next of many answers. Whenever the answers are woken, the user has to have a turn
/// before the answer is made, and what that takes is spent: an answer may be as large as all that
/// others do, and one event may wake all connections of a user.
async fn next_in_turn<S: Stream + Unpin>(answers: &mut S, turn: &UserTurn) -> Option<S::Item> {
    let mut come = Box::pin(turn.come());
    std::future::poll_fn(|context| {
        if come.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let began = Instant::now();
        let next = answers.poll_next_unpin(context);
        turn.spend(began.elapsed());
        if next.is_pending() {
            // The next one to wake it needs another turn.
            come = Box::pin(turn.come());
        }
        next
    })
    .await
}

/// Waits until the other end is closed: who watches says nothing more, and would count
/// until there is something to tell him.
async fn gone(answers: &OwnedWriteHalf) {
    // Of urgent data there is none, so this is the end of what can be read.
    let _ = answers.ready(Interest::PRIORITY).await;
}

/// Writes an answer, unless that takes too long, or too much waits already to be read by the user.
/// zlink would make the answer anew for every 256 bytes of it, which for a list of some thousand
/// jobs takes minutes.
async fn say(answers: &OwnedWriteHalf, answer: impl Serialize, shared: &Shared) -> bool {
    let began = Instant::now();
    let Ok(mut bytes) = serde_json::to_vec(&answer) else {
        return false;
    };
    // Its text is all that is held while nobody reads it.
    drop(answer);
    shared.turn.spend(began.elapsed());
    bytes.push(0);
    // The kernel takes at once what the caller reads, or has room for: only the rest is held here.
    let Ok(written) = write_some(answers, &bytes) else {
        return false;
    };
    let rest = bytes.split_off(written);
    drop(bytes);
    if rest.is_empty() {
        return true;
    }
    let Some(_place) = shared.unread.take(&shared.caller, rest.len()) else {
        return false;
    };
    let write = async {
        let mut rest = rest.as_slice();
        while !rest.is_empty() {
            answers.ready(Interest::WRITABLE).await?;
            rest = &rest[write_some(answers, rest)?..];
        }
        io::Result::Ok(())
    };
    matches!(timeout(ANSWER_TIME, write).await, Ok(Ok(())))
}

/// Writes as much as the socket takes without waiting. Returns how many bytes that is.
fn write_some(answers: &OwnedWriteHalf, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match answers.try_write(&bytes[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Calls that come without descriptors, and are neither long nor slow.
#[derive(Debug)]
struct Calls(OwnedReadHalf);

/// Socket of no connection, for places that require the type of one.
#[derive(Debug)]
pub struct Nowhere;

impl Socket for Nowhere {
    type ReadHalf = Self;
    type WriteHalf = Self;

    fn split(self) -> (Self, Self) {
        (Self, Self)
    }
}

impl socket::ReadHalf for Nowhere {
    async fn read(&mut self, _: &mut [u8]) -> zlink::Result<ReadResult> {
        Ok(ReadResult::new(0))
    }
}

impl socket::WriteHalf for Nowhere {
    async fn write(
        &mut self,
        _: &[u8],
        _: &[impl AsFd],
        _: Option<&zlink::connection::PassedCredentials>,
    ) -> zlink::Result<()> {
        Ok(())
    }
}

/// Reading half of a connection.
#[derive(Debug)]
struct ReadHalf {
    stream: OwnedReadHalf,
    /// Bytes of a call that has begun and not ended.
    begun_bytes: usize,
    /// Time by which that call must have ended.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Socket for Calls {
    type ReadHalf = ReadHalf;
    type WriteHalf = Nowhere;

    fn split(self) -> (ReadHalf, Nowhere) {
        let read = ReadHalf { stream: self.0, begun_bytes: 0, deadline: None };
        (read, Nowhere)
    }
}

impl ReadHalf {
    /// Takes note of what was read.
    fn came(&mut self, bytes: &[u8]) -> io::Result<()> {
        let rest = bytes.iter().rev().position(|&byte| byte == 0);
        self.begun_bytes = rest.unwrap_or(self.begun_bytes + bytes.len());
        if self.begun_bytes > MOST_BYTES {
            return Err(io::Error::other("the call is too long"));
        }
        match self.begun_bytes {
            0 => self.deadline = None,
            _ if rest.is_some() || self.deadline.is_none() => {
                let at = Instant::now() + CALL_TIME;
                self.deadline = Some(Box::pin(sleep_until(at)));
            }
            _ => {}
        }
        Ok(())
    }
}

impl socket::ReadHalf for ReadHalf {
    async fn read(&mut self, buffer: &mut [u8]) -> zlink::Result<ReadResult> {
        let read = std::future::poll_fn(|context| loop {
            if let Some(deadline) = &mut self.deadline {
                if deadline.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)));
                }
            }
            match self.stream.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.stream.as_ref().poll_read_ready(context) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(ready) => ready?,
                    }
                }
                read => return Poll::Ready(read),
            }
        });
        let bytes = read.await?;
        self.came(&buffer[..bytes])?;
        Ok(ReadResult::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::UNREAD_ANSWERS;

    /// Many streams of one user are woken at once, and each takes a turn to make its answer:
    /// another user's answer comes after a few of them.
    #[test]
    fn woken_streams_of_a_user_make_their_answers_in_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let order = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let bell = std::rc::Rc::new(tokio::sync::Notify::new());
        let local = tokio::task::LocalSet::new();
        let (many, one) = (UserTurn::default(), UserTurn::default());
        let waiting = std::rc::Rc::new(std::cell::Cell::new(0));
        for (whose, turn) in std::iter::repeat_n(("many", many), 64).chain([("one", one)]) {
            let (order, bell, waiting) = (order.clone(), bell.clone(), waiting.clone());
            local.spawn_local(async move {
                let mut answers = Box::pin(zlink::futures_util::stream::once(async move {
                    waiting.set(waiting.get() + 1);
                    bell.notified().await;
                    // As long as it takes to make a large answer.
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_millis(2) {}
                    whose
                }));
                let answer = next_in_turn(&mut answers, &turn).await;
                order.borrow_mut().extend(answer);
            });
        }
        local.spawn_local(async move {
            while waiting.get() < 65 {
                tokio::task::yield_now().await;
            }
            bell.notify_waiters();
        });
        runtime.block_on(local);
        let order = order.take();
        assert_eq!(order.len(), 65);
        let place = order.iter().position(|&whose| whose == "one");
        assert!(place.is_some_and(|place| place < 8), "{place:?}");
    }

    /// Only what the socket does not take at once counts as an answer that was not read: other
    /// answers of the user keep none from one that is read.
    #[test]
    fn an_answer_that_is_read_needs_no_place() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (one, other) = UnixStream::pair().unwrap();
            let caller = Caller {
                uid: 1000,
                gid: 1000,
                groups: Vec::new(),
                is_operator: false,
                pid: 0,
                account: 1000,
            };
            let (turn, unread) = (UserTurn::default(), Places::of_answers());
            let shared = Shared { caller, turn, unread };
            let all = shared.unread.take(&shared.caller, UNREAD_ANSWERS.user_bytes).unwrap();
            let (_calls, answers) = one.into_split();
            assert!(say(&answers, "short", &shared).await);
            let mut read = [0; 16];
            other.readable().await.unwrap();
            assert_eq!(other.try_read(&mut read).unwrap(), 8);
            assert_eq!(&read[..8], b"\"short\"\0");
            // The socket has no room for this one, and the user has no place left.
            let long = "x".repeat(8 << 20);
            assert!(!say(&answers, &long, &shared).await);
            drop(all);
            assert!(shared.unread.take(&shared.caller, UNREAD_ANSWERS.user_bytes).is_some());
        });
    }
}
