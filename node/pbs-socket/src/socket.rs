// SPDX-License-Identifier: GPL-2.0
//! The socket: who may connect, how much each may say and how slowly, and that none
//! keeps another waiting.
//!
//! A task for each connection, all in one thread: it reads a call, has it handled, and
//! writes the answer before it reads the next. All connections of a user have some time
//! together, and then it is the turn of others, so that many get no more than one. One that
//! does not read its answers, or sends a call by halves, waits alone, and not for ever.

use std::collections::HashMap;
use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, FromRawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout, Instant, Sleep};
use zlink::connection::socket::{self, ReadResult, Socket};
use zlink::futures_util::future::{select, Either};
use zlink::futures_util::StreamExt;
use zlink::service::{MethodReply, Service};
use zlink::{Connection, Reply};

use crate::caller::{self, Caller};

/// The longest call.
const MOST_BYTES: usize = 1 << 20;
/// For how long a call may come.
const CALL_TIME: Duration = Duration::from_secs(10);
/// For how long an answer may wait to be read.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Connections at once, of all users and of each. Where no more than 1024 files may be open,
/// which is usual, some are left for others than those who connect.
const MOST_CONNECTIONS: usize = 960;
const MOST_OF_USER: usize = 64;
/// Time for which the calls of a user are answered before it is the next user's turn.
const TURN: Duration = Duration::from_millis(1);
/// Time for which no connection is accepted when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The users that have connections.
type Connections = Arc<Mutex<HashMap<u32, User>>>;

/// Number of a user's connections, and the state of their turn.
#[derive(Default)]
struct User {
    count: usize,
    turn: UserTurn,
}

/// Turns of the connections of a user, and the time that they have had.
#[derive(Clone)]
struct UserTurn {
    one: Arc<Semaphore>,
    spent_ns: Arc<AtomicU64>,
}

impl Default for UserTurn {
    fn default() -> Self {
        Self { one: Arc::new(Semaphore::new(1)), spent_ns: Arc::default() }
    }
}

impl UserTurn {
    /// Waits until the user's other connections that came before have had their turn and, if
    /// they have had enough together, all other users too.
    async fn come(&self) {
        let _turn = self.one.acquire().await;
        if self.spent_ns.load(Ordering::Relaxed) >= TURN.as_nanos() as u64 {
            tokio::task::yield_now().await;
            self.spent_ns.store(0, Ordering::Relaxed);
        }
    }

    /// One of them has had so much. It has had something, however little that was.
    fn spend(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1000);
        let spent_ns = self.spent_ns.load(Ordering::Relaxed);
        self.spent_ns.store(spent_ns.saturating_add(ns), Ordering::Relaxed);
    }
}

/// The socket that was handed over by who started us (sd_listen_fds(3)).
#[allow(unsafe_code)]
pub fn handed_over() -> Option<StdListener> {
    let own = std::process::id().to_string();
    let is_ours = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == own);
    let count = std::env::var("LISTEN_FDS").ok()?;
    // SAFETY: descriptor 3 was opened for us by who started us, and is nobody else's.
    let listener = (is_ours && count == "1").then(|| unsafe { StdListener::from_raw_fd(3) });
    // Programs do not inherit the copy.
    listener?.try_clone().ok()
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
pub async fn serve<S>(listener: StdListener, session: impl Fn(Caller) -> S) -> io::Result<()>
where
    S: Service<Nowhere> + 'static,
{
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let connections = Connections::default();
    loop {
        // One who connects again and again would keep all others waiting.
        tokio::task::yield_now().await;
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptors, or no memory.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(caller) = Caller::of(stream.as_fd(), caller::operators()) else {
            continue;
        };
        // Beyond that one is closed at once: an answer would have to be waited for.
        let Some(place) = CountedConnection::of(&connections, &caller) else {
            continue;
        };
        let session = session(caller);
        tokio::task::spawn_local(async move {
            converse(stream, session, &place.turn).await;
        });
    }
}

/// A connection that is counted.
struct CountedConnection {
    connections: Connections,
    uid: u32,
    turn: UserTurn,
}

impl CountedConnection {
    fn of(connections: &Connections, caller: &Caller) -> Option<Self> {
        let uid = caller.uid;
        let mut counts = connections.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().map(|user| user.count).sum();
        let User { count: own, turn } = counts.entry(uid).or_default();
        // Whoever has to set things right gets in.
        if !caller.is_operator && (all >= MOST_CONNECTIONS || *own >= MOST_OF_USER) {
            return None;
        }
        *own += 1;
        Some(Self { connections: connections.clone(), uid, turn: turn.clone() })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let counts = self.connections.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&self.uid) {
            own.count -= 1;
            if own.count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

/// Answers one connection until it ends, or does not behave.
async fn converse(stream: UnixStream, mut session: impl Service<Nowhere>, turn: &UserTurn) {
    let (calls, answers) = stream.into_split();
    let (mut calls, _) = Connection::new(Calls(calls)).split();
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
                say(&answers, &reply, turn).await
            }
            MethodReply::Error(error) => say(&answers, &error, turn).await,
            MethodReply::Multi(mut replies) => {
                let mut is_said = true;
                loop {
                    let gone = pin!(gone(&answers));
                    let Either::Left((next, _)) = select(replies.next(), gone).await else {
                        return;
                    };
                    let Some((reply, _)) = next else {
                        break;
                    };
                    is_said = match reply {
                        Ok(reply) => say(&answers, &reply, turn).await,
                        Err(error) => say(&answers, &error, turn).await,
                    };
                    if !is_said {
                        break;
                    }
                    turn.come().await;
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

/// Waits until the other end is closed: who watches says nothing more, and would count
/// until there is something to tell him.
async fn gone(answers: &OwnedWriteHalf) {
    // Of urgent data there is none, so this is the end of what can be read.
    let _ = answers.ready(Interest::PRIORITY).await;
}

/// Writes an answer, unless that takes too long. zlink would make it anew for every 256
/// bytes of it, which for a list of some thousand jobs takes minutes.
async fn say(answers: &OwnedWriteHalf, answer: &impl Serialize, turn: &UserTurn) -> bool {
    let began = Instant::now();
    let Ok(mut bytes) = serde_json::to_vec(answer) else {
        return false;
    };
    turn.spend(began.elapsed());
    bytes.push(0);
    let write = async {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            answers.ready(Interest::WRITABLE).await?;
            match answers.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    matches!(timeout(ANSWER_TIME, write).await, Ok(Ok(())))
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
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Each of some connections has ten calls that take so long; says whose calls were handled,
    /// one by one.
    fn handled(connections: &[(&'static str, UserTurn)], time: Duration) -> Vec<&'static str> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        for (whose, turn) in connections {
            let (whose, turn, order) = (*whose, turn.clone(), Rc::clone(&order));
            local.spawn_local(async move {
                for _ in 0..10 {
                    turn.come().await;
                    order.borrow_mut().push(whose);
                    turn.spend(time);
                }
            });
        }
        runtime.block_on(local);
        order.take()
    }

    #[test]
    fn many_connections_of_a_user_get_no_more_done_than_one() {
        // Ten for ten, or ten times as many as there is time for, and what was under way.
        for (time, most) in [(TURN, 30), (TURN / 4, 100)] {
            let (many, one) = (UserTurn::default(), UserTurn::default());
            let mut connections = vec![("many", many); 64];
            connections.push(("one", one));
            let order = handled(&connections, time);
            assert_eq!(order.len(), 650);
            let last = order.iter().rposition(|&whose| whose == "one");
            assert!(last.is_some_and(|last| last < most), "{last:?}");
        }
    }
}
