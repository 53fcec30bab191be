// SPDX-License-Identifier: GPL-2.0
//! The part of a client that every interface needs: a connection, and answers that are waited
//! for.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::pin;

use tokio::runtime::{Builder, Runtime};
use zlink::futures_util::{Stream, StreamExt};
use zlink::tokio::unix::Connection;

/// Reason for which a call has no answer, or a refusal as the answer.
#[derive(Debug)]
pub enum Failure<R> {
    /// The service was not reached, or violates the protocol.
    Connection(zlink::Error),
    /// The service refused the call.
    Refused(R),
}

/// A refusal of one service.
pub trait Refusal: fmt::Debug + fmt::Display {
    /// The service, as messages name it.
    const SERVICE: &'static str;
}

/// Waits for answers.
#[derive(Debug)]
pub struct Waiter(Runtime);

/// Connects to the service that listens at a path.
///
/// # Errors
///
/// No service listens there.
pub fn connect<R>(path: &Path) -> Result<(Connection, Waiter), Failure<R>> {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(|error| Failure::Connection(error.into()))?;
    let connection = runtime.block_on(zlink::tokio::unix::connect(path));
    Ok((connection.map_err(Failure::Connection)?, Waiter(runtime)))
}

impl Waiter {
    /// Waits for the answer to one call.
    pub fn answer<T, R>(
        &self,
        call: impl Future<Output = zlink::Result<Result<T, R>>>,
    ) -> Result<T, Failure<R>> {
        answered(self.0.block_on(call))
    }

    /// Hands over each answer to a call that has many, until `goes_on` is false for one.
    pub fn answers<T, R, S>(
        &self,
        call: impl Future<Output = zlink::Result<S>>,
        mut goes_on: impl FnMut(T) -> bool,
    ) -> Result<(), Failure<R>>
    where
        S: Stream<Item = zlink::Result<Result<T, R>>>,
    {
        self.0.block_on(async {
            let mut answers = pin!(call.await.map_err(Failure::Connection)?);
            while let Some(next) = answers.next().await {
                if !goes_on(answered(next)?) {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn answered<T, R>(answer: zlink::Result<Result<T, R>>) -> Result<T, Failure<R>> {
    answer.map_err(Failure::Connection)?.map_err(Failure::Refused)
}

impl<R: Refusal> fmt::Display for Failure<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "{} does not answer: {error}", R::SERVICE),
            Self::Refused(refusal) => fmt::Display::fmt(refusal, f),
        }
    }
}

impl<R: Refusal> std::error::Error for Failure<R> {}
