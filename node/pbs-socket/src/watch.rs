// SPDX-License-Identifier: GPL-2.0
//! Answers to a call that watches: each notice is one, until the service ends.

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::Receiver;
use zlink::futures_util::stream::{unfold, Stream, StreamExt};
use zlink::Reply;

use crate::inbox::NotAnswered;

/// Notices for one who watches.
#[derive(Debug)]
pub struct Watch<N, W> {
    /// All notices.
    pub notices: Receiver<N>,
    /// Whether a notice is wanted.
    pub is_wanted: W,
    /// Whether the caller wants more than one answer.
    pub more: bool,
    /// The last notice that there is; nothing follows it. `None`: notices are to come.
    pub last: Option<N>,
}

enum Watched<N, W, R> {
    Notices(Watch<N, W>, R),
    Refused(R),
    Over,
}

/// Returns the answers: wanted notices, or the refusal. `lagged` is the last answer of one who reads
/// too slowly. When the sender of notices is dropped, the last answer is that the service is
/// stopping.
pub fn watch<N, W, R>(
    watch: Result<Watch<N, W>, R>,
    lagged: R,
) -> impl Stream<Item = Result<Reply<N>, R>> + Unpin
where
    N: Clone + 'static,
    W: Fn(&N) -> bool + 'static,
    R: From<NotAnswered> + 'static,
{
    let watched = match watch {
        Ok(watch) => Watched::Notices(watch, lagged),
        Err(refusal) => Watched::Refused(refusal),
    };
    let next = |watched| async move {
        match watched {
            Watched::Notices(Watch { last: Some(last), .. }, _) => {
                Some((Ok(Reply::new(Some(last)).set_continues(Some(false))), Watched::Over))
            }
            Watched::Notices(mut watch, lagged) => match watch.next().await {
                Some(Ok(notice)) => {
                    let more = watch.more;
                    let reply = Reply::new(Some(notice)).set_continues(Some(more));
                    let after = if more { Watched::Notices(watch, lagged) } else { Watched::Over };
                    Some((Ok(reply), after))
                }
                Some(Err(Lagged)) => Some((Err(lagged), Watched::Over)),
                None => Some((Err(NotAnswered::Stopping.into()), Watched::Over)),
            },
            Watched::Refused(refusal) => Some((Err(refusal), Watched::Over)),
            Watched::Over => None,
        }
    };
    unfold(watched, next).boxed_local()
}

/// Some notices came faster than they were read, and are lost.
struct Lagged;

impl<N: Clone, W: Fn(&N) -> bool> Watch<N, W> {
    /// The next one that is wanted; `None`: the service ends.
    async fn next(&mut self) -> Option<Result<N, Lagged>> {
        loop {
            match self.notices.recv().await {
                Ok(notice) if (self.is_wanted)(&notice) => return Some(Ok(notice)),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some(Err(Lagged)),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
