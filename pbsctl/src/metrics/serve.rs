// SPDX-License-Identifier: GPL-2.0
//! Pages over HTTP, for collectors on this machine.
//!
//! Every call has a time limit and a size limit, and few are answered at once: a user of this
//! machine who calls and says nothing, or does not read, gives way to those who come later.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Calls that are answered at once.
const CALLS: usize = 16;
/// Time for a call, and for its answer.
const TIME: Duration = Duration::from_secs(2);
/// The longest call.
const CALL_BYTES: usize = 8192;

/// Address to listen at: `9845`, `127.0.0.1:9845` or `[::1]:9845`.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = port.or_else(|_| text.parse()).map_err(|_| {
        format!("{text:?} is no address; write a port, or an address with a port: 127.0.0.1:9845")
    })?;
    of_this_machine(address)
}

/// The address, if only programs of this machine can reach it.
pub(super) fn of_this_machine(address: SocketAddr) -> Result<SocketAddr, String> {
    if !address.ip().is_loopback() {
        return Err(format!(
            "{address} can be reached from other machines; write an address of this machine only, \
             such as 127.0.0.1:{}, and put a server with access control before it",
            address.port()
        ));
    }
    Ok(address)
}

/// Callers that are waited for, the oldest first, and the number of all. Only while the page is
/// made, a caller waits for this process.
#[derive(Debug, Default)]
struct Callers {
    /// Callers whose whole call is not there yet.
    silent: VecDeque<(u64, TcpStream)>,
    /// Callers that have not read the whole answer yet.
    unread: VecDeque<(u64, TcpStream)>,
    count: usize,
    last: u64,
}

/// The place of a caller, until its thread ends.
struct Place {
    callers: Arc<Mutex<Callers>>,
    number: u64,
}

fn locked(callers: &Mutex<Callers>) -> MutexGuard<'_, Callers> {
    callers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    /// Takes a place, if need be that of the caller that has said nothing for longest, or has not
    /// read for longest. `None`: the page is being made for all of them, or `stream` is none any
    /// more.
    fn take(callers: &Arc<Mutex<Callers>>, stream: &TcpStream) -> Option<Self> {
        let own = stream.try_clone().ok()?;
        let mut all = locked(callers);
        if all.count >= CALLS {
            let silent = all.silent.pop_front();
            let (_, oldest) = silent.or_else(|| all.unread.pop_front())?;
            // Its thread reads the end of the call, or can't write, and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        all.count += 1;
        all.last += 1;
        let number = all.last;
        all.silent.push_back((number, own));
        Some(Self { callers: callers.clone(), number })
    }

    /// The whole call is there.
    fn has_called(&self) {
        locked(&self.callers).silent.retain(|(number, _)| *number != self.number);
    }

    /// The caller has to read its answer now.
    fn is_answered(&self, stream: &TcpStream) -> io::Result<()> {
        let own = stream.try_clone()?;
        locked(&self.callers).unread.push_back((self.number, own));
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.has_called();
        let mut all = locked(&self.callers);
        all.unread.retain(|(number, _)| *number != self.number);
        all.count -= 1;
    }
}

/// Answers calls with the page that `page` makes, of that content type, until the process ends.
pub(super) fn serve(
    listener: &TcpListener,
    content_type: &'static str,
    page: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> ! {
    let page = Arc::new(page);
    let callers = Arc::default();
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // The caller has gone already, or this process has too many files for the moment.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        // Without a place or a thread the connection is closed, and the caller comes later.
        if let Some(place) = Place::take(&callers, &stream) {
            let page = Arc::clone(&page);
            let answer = move || {
                // A caller that does not read has its own loss.
                let _ = answer(stream, &place, content_type, &*page);
            };
            drop(thread::Builder::new().spawn(answer));
        }
    }
}

fn answer(
    mut stream: TcpStream,
    place: &Place,
    content_type: &str,
    page: &dyn Fn() -> Option<String>,
) -> io::Result<()> {
    let until = Instant::now() + TIME;
    let mut call = Vec::new();
    let mut some = [0; 1024];
    while !is_whole(&call) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || call.len() > CALL_BYTES {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut some)? {
            0 => return Ok(()),
            bytes => call.extend_from_slice(&some[..bytes]),
        }
    }
    place.has_called();
    let plain = |status, body: &str| (status, "text/plain", body.to_string());
    let target = target(&call);
    let (status, content_type, body) = match target {
        None => plain("405 Method Not Allowed", "Only GET and HEAD.\n"),
        Some(_) if !is_for_here(&call) => {
            plain("403 Forbidden", "The page is for this machine: call it localhost.\n")
        }
        Some((_, "/metrics")) => match page() {
            Some(page) => ("200 OK", content_type, page),
            None => plain("500 Internal Server Error", "The page could not be written.\n"),
        },
        Some(_) => plain("404 Not Found", "The page is /metrics.\n"),
    };
    let is_head = target.is_some_and(|(is_head, _)| is_head);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let body = if is_head { "" } else { &body };
    place.is_answered(&stream)?;
    write_until(&mut stream, (head + body).as_bytes(), Instant::now() + TIME)
}

/// Writes all of it, or fails when the time is over.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Whether the head of a call is there up to its empty line.
fn is_whole(call: &[u8]) -> bool {
    call.windows(4).any(|four| four == b"\r\n\r\n")
}

/// Whether only the head of the answer is wanted, and the page, without its parameters. `None`:
/// neither GET nor HEAD.
fn target(call: &[u8]) -> Option<(bool, &str)> {
    let line = call.split(|&byte| byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let is_head = match words.next()? {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let page = words.next()?;
    Some((is_head, page.split('?').next().unwrap_or(page)))
}

/// Whether the call names this machine, if it names any: a page of another site that has a browser
/// of this machine call it gets nothing.
fn is_for_here(call: &[u8]) -> bool {
    let text = String::from_utf8_lossy(call);
    let mut lines = text.split("\r\n").skip(1);
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let Some(host) = host else {
        return true;
    };
    let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if has_port(port) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_taken() {
        let local = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(local("9845").unwrap(), "127.0.0.1:9845");
        assert_eq!(local("127.0.0.2:80").unwrap(), "127.0.0.2:80");
        assert_eq!(local("[::1]:80").unwrap(), "[::1]:80");
        for (text, words) in [
            ("0.0.0.0:80", "can be reached from other machines"),
            ("[::]:80", "such as 127.0.0.1:80"),
            ("localhost", "\"localhost\" is no address; write a port"),
            ("70000", "is no address"),
        ] {
            let why = local(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    fn server() -> SocketAddr {
        server_of("a page\n".into())
    }

    fn server_of(page: String) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, "text/plain", move || Some(page.clone())));
        address
    }

    fn call(address: SocketAddr, text: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn calls_are_answered() {
        let address = server();
        let page = call(address, "GET /metrics?a=b HTTP/1.1\r\nHost: localhost:9845\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"), "{page}");
        assert!(page.contains("Content-Length: 7\r\n") && page.ends_with("\r\n\r\na page\n"));
        let head = call(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(call(address, "GET / HTTP/1.0\r\n\r\n").contains("404 Not Found"));
        assert!(call(address, "POST /metrics HTTP/1.1\r\n\r\n").contains("405 Method"));
        assert!(call(address, "\u{fffd}\r\n\r\n").contains("405 Method"));
    }

    /// However many callers say nothing, one that calls is answered at once.
    #[test]
    fn callers_that_say_nothing_give_way() {
        let address = server();
        let silent: Vec<_> = (0..3 * CALLS).map(|_| TcpStream::connect(address).unwrap()).collect();
        for _ in 0..3 {
            let page = call(address, "GET /metrics HTTP/1.1\r\n\r\n");
            assert!(page.contains("200 OK"), "{page}");
        }
        // The oldest have lost their places.
        let mut answer = Vec::new();
        let _ = (&silent[0]).read_to_end(&mut answer);
        assert!(answer.is_empty());
    }

    /// However many callers read no answer, one that reads gets all of it at once.
    #[test]
    fn callers_that_do_not_read_give_way() {
        // More than the buffers of a connection hold.
        const PAGE_BYTES: usize = 16 << 20;
        let address = server_of("x".repeat(PAGE_BYTES));
        let mut deaf = Vec::new();
        for _ in 0..2 * CALLS {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            // Its answer has begun.
            stream.read_exact(&mut [0; 8]).unwrap();
            deaf.push(stream);
        }
        for _ in 0..3 {
            let page = call(address, "GET /metrics HTTP/1.1\r\n\r\n");
            assert!(page.starts_with("HTTP/1.1 200 OK") && page.len() > PAGE_BYTES);
        }
    }

    #[test]
    fn only_calls_that_name_this_machine_are_answered() {
        for (host, is_answered) in [
            ("localhost", true),
            ("LOCALHOST:9845", true),
            ("127.0.0.1:9845", true),
            ("[::1]:9845", true),
            ("127.8.8.8", true),
            ("other.example:9845", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            let call = format!("GET /metrics HTTP/1.1\r\nA: b\r\nhost: {host}\r\n\r\n");
            assert_eq!(is_for_here(call.as_bytes()), is_answered, "{host}");
        }
        let page = call(server(), "GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{page}");
    }

    #[test]
    fn a_call_has_a_greatest_size() {
        let mut stream = TcpStream::connect(server()).unwrap();
        let _ = stream.write_all(&vec![b'a'; 10 * CALL_BYTES]);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
}
