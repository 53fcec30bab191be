// SPDX-License-Identifier: GPL-2.0
//! Notifications to the process that started the service (sd_notify(3)): it serves, and it still
//! does.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::sleep;

use crate::inbox::{Call, Sender};

/// For how long the other end may leave us waiting.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of checks of the service in the allowed time.
const LOOKS: u32 = 4;

/// Sends the notification, if a receiver is configured.
pub fn tell(state: &str) {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET") {
        // A service manager that is gone needs no notification.
        let _ = tell_at(&path, state);
    }
}

fn tell_at(path: &OsStr, state: &str) -> io::Result<()> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// Interval at which the service must be checked; `None`: no checks are requested.
pub fn watched_every() -> Option<Duration> {
    let variable = |name| std::env::var(name).ok();
    every(variable("WATCHDOG_USEC")?, variable("WATCHDOG_PID"), std::process::id())
}

fn every(allowed_us: String, of: Option<String>, own: u32) -> Option<Duration> {
    if of.is_some_and(|pid| pid != own.to_string()) {
        return None;
    }
    let allowed_us = allowed_us.parse().ok().filter(|us| *us > 0)?;
    Some(Duration::from_micros(allowed_us) / LOOKS)
}

/// In the thread of the socket: tells that the service serves for as long as the other
/// thread comes round, too.
pub async fn watch<C: Call>(other: Sender<C>, every: Duration) {
    watch_with(other, every, || tell("WATCHDOG=1")).await;
}

async fn watch_with<C: Call>(other: Sender<C>, every: Duration, mut alive: impl FnMut()) {
    let mut rounds = other.rounds();
    loop {
        // It may have nothing to do.
        other.ring();
        sleep(every).await;
        let now = other.rounds();
        if now != rounds {
            alive();
        }
        rounds = now;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;

    use zlink::futures_util::future::select;

    use super::*;
    use crate::inbox::inbox;
    use crate::inbox::tests::{Nothing, LIMITS};

    #[test]
    fn who_listens_is_told() {
        let name = format!("pbs-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let _ = std::fs::remove_file(&path);
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let ends = [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&abstract_name).unwrap(), format!("@{name}").into()),
        ];
        for (listens, path) in ends {
            tell_at(&path, "READY=1").unwrap();
            let mut text = [0; 32];
            let bytes = listens.recv(&mut text).unwrap();
            assert_eq!(&text[..bytes], b"READY=1");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(tell_at(path.as_os_str(), "READY=1").is_err());
    }

    #[test]
    fn a_watchdog_may_be_for_another_process() {
        let second = Some(Duration::from_millis(250));
        assert_eq!(every("1000000".into(), None, 7), second);
        assert_eq!(every("1000000".into(), Some("7".into()), 7), second);
        assert_eq!(every("1000000".into(), Some("8".into()), 7), None);
        assert_eq!(every("0".into(), None, 7), None);
        assert_eq!(every("soon".into(), None, 7), None);
    }

    /// A service of which one thread hangs does not serve.
    #[test]
    fn only_a_service_that_comes_round_is_alive() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (sender, mut inbox) = inbox::<Nothing>(LIMITS).unwrap();
        let alive = Cell::new(0);
        let mut watched = |comes_round: bool| {
            alive.set(0);
            let watch = watch_with(sender.clone(), Duration::from_millis(1), || {
                alive.set(alive.get() + 1);
            });
            let other = async {
                for _ in 0..20 {
                    if comes_round {
                        inbox.begin();
                        assert!(inbox.take().is_none());
                    }
                    sleep(Duration::from_millis(5)).await;
                }
            };
            runtime.block_on(select(pin!(watch), pin!(other)));
            alive.get()
        };
        assert!(watched(true) > 0);
        assert_eq!(watched(false), 0);
    }
}
