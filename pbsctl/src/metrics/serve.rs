// SPDX-License-Identifier: GPL-2.0
//! Pages over HTTP, for collectors on this machine.
//!
//! Every call has a time limit and a size limit, and few are answered at once: a user of this
//! machine who calls without reading keeps a place for that time only.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
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
    if !address.ip().is_loopback() {
        return Err(format!(
            "{address} can be reached from other machines; write an address of this machine only, \
             such as 127.0.0.1:{}, and put a server with access control before it",
            address.port()
        ));
    }
    Ok(address)
}

/// A place among the calls that are answered at once.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// `None`: there is none left.
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        if taken.fetch_add(1, Ordering::Relaxed) < CALLS {
            return Some(Self(taken.clone()));
        }
        taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers calls with the page that `page` makes, of that content type, until the process ends.
pub(super) fn serve(
    listener: &TcpListener,
    content_type: &'static str,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> ! {
    let page = Arc::new(page);
    let taken = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // The caller has gone already, or this process has too many files for the moment.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        // Beyond the limit the connection is closed, which tells the caller to come later.
        if let Some(place) = Place::take(&taken) {
            let page = Arc::clone(&page);
            let answer = move || {
                let _place = place;
                // A caller that does not read has its own loss.
                let _ = answer(stream, content_type, &*page);
            };
            // Without a thread the connection is closed, too.
            drop(thread::Builder::new().spawn(answer));
        }
    }
}

fn answer(mut stream: TcpStream, content_type: &str, page: &dyn Fn() -> String) -> io::Result<()> {
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
    let (status, content_type, body, is_head) = match target(&call) {
        Some((is_head, "/metrics")) => ("200 OK", content_type, page(), is_head),
        Some((is_head, _)) => {
            ("404 Not Found", "text/plain", "The page is /metrics.\n".into(), is_head)
        }
        None => ("405 Method Not Allowed", "text/plain", "Only GET and HEAD.\n".into(), false),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let body = if is_head { "" } else { &body };
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, "text/plain", || "a page\n".into()));
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
        let page = call(address, "GET /metrics?a=b HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"), "{page}");
        assert!(page.contains("Content-Length: 7\r\n") && page.ends_with("\r\n\r\na page\n"));
        let head = call(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(call(address, "GET / HTTP/1.0\r\n\r\n").contains("404 Not Found"));
        assert!(call(address, "POST /metrics HTTP/1.1\r\n\r\n").contains("405 Method"));
        assert!(call(address, "\u{fffd}\r\n\r\n").contains("405 Method"));
    }

    /// Callers that say nothing keep their places for a while, and others are told to come later;
    /// when their time is over, all are answered again.
    #[test]
    fn callers_that_say_nothing_keep_no_place() {
        let address = server();
        let silent: Vec<_> = (0..CALLS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let page = "GET /metrics HTTP/1.1\r\n\r\n";
        let mut refused = TcpStream::connect(address).unwrap();
        let mut answer = Vec::new();
        // A closed connection is an end or a reset.
        let _ = refused.write_all(page.as_bytes());
        let _ = refused.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
        for mut stream in silent {
            let _ = stream.read_to_end(&mut answer);
        }
        while !call_or_reset(address, page).contains("200 OK") {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn call_or_reset(address: SocketAddr, text: &str) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.read_to_string(&mut answer);
        }
        answer
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
