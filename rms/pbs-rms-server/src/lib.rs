// SPDX-License-Identifier: GPL-2.0
//! Resource manager for evolving applications, as a service: [`pbs_rms`] with a clock, a socket and
//! a file.
//!
//! All work is done in one thread. [`Hub`] has the manager and the notices of all sessions. A task
//! for each connection calls it, and one more task makes its passes. No task keeps it borrowed
//! while waiting.

mod budget;
mod convert;
mod firm;
mod hub;
mod journal;
mod kept;
mod session;
#[cfg(test)]
mod tests;

pub use hub::{Hub, Managed, Settings};
pub use journal::Error as JournalError;

use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use zlink::futures_util::future::{pending, select, Either};

use crate::session::Session;

/// Serves until a failure: the socket is gone, or changes can't be stored.
pub fn serve(listener: UnixListener, hub: Hub) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let hub = Rc::new(RefCell::new(hub));
    let passes = Rc::clone(&hub);
    let session = move |caller| Session { caller, hub: Rc::clone(&hub) };
    LocalSet::new().block_on(&runtime, async move {
        let limits = pbs_socket::ConnectionLimits::DEFAULT;
        let served = std::pin::pin!(pbs_socket::serve(listener, limits, session));
        let passed = std::pin::pin!(pass(passes));
        match select(served, passed).await {
            Either::Left((ended, _)) | Either::Right((ended, _)) => ended,
        }
    })
}

/// Makes a pass whenever there is something to do.
async fn pass(hub: Rc<RefCell<Hub>>) -> io::Result<()> {
    let bell = hub.borrow().bell();
    loop {
        let wait_ns = hub.borrow().wait_ns();
        let wait = async {
            match wait_ns {
                Some(0) => tokio::task::yield_now().await,
                Some(ns) => tokio::time::sleep(Duration::from_nanos(ns)).await,
                None => pending().await,
            }
        };
        let rung = std::pin::pin!(bell.notified());
        select(rung, std::pin::pin!(wait)).await;
        hub.borrow_mut().work()?;
    }
}
