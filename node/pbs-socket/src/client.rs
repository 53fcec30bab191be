// SPDX-License-Identifier: GPL-2.0
//! The part of a client that every interface needs: a connection, and answers that are waited
//! for.

use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
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
            Self::Connection(error) => match reason(error) {
                Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    write!(f, "{} is not running", R::SERVICE)
                }
                Some(ErrorKind::PermissionDenied) => {
                    write!(f, "{} lets nobody but its users connect to its socket", R::SERVICE)
                }
                _ => write!(f, "{} does not answer: {error}", R::SERVICE),
            },
            Self::Refused(refusal) => fmt::Display::fmt(refusal, f),
        }
    }
}

/// The kind of a failure of the system below the protocol.
fn reason(error: &zlink::Error) -> Option<ErrorKind> {
    match error {
        zlink::Error::Io(error) => Some(error.kind()),
        _ => None,
    }
}

impl<R: Refusal> std::error::Error for Failure<R> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct None;

    impl fmt::Display for None {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("refused")
        }
    }

    impl Refusal for None {
        const SERVICE: &str = "the service";
    }

    #[test]
    fn a_service_that_is_not_there_is_not_running() {
        let told = |kind: ErrorKind| {
            let error = std::io::Error::from(kind);
            Failure::<None>::Connection(zlink::Error::Io(error)).to_string()
        };
        assert_eq!(told(ErrorKind::NotFound), "the service is not running");
        assert_eq!(told(ErrorKind::ConnectionRefused), "the service is not running");
        assert!(told(ErrorKind::PermissionDenied).starts_with("the service lets nobody but"));
        assert!(told(ErrorKind::TimedOut).starts_with("the service does not answer: "));
        assert_eq!(Failure::Refused(None).to_string(), "refused");
    }
}
