// SPDX-License-Identifier: GPL-2.0
//! Calls from the thread that has the socket to the one that has the cluster.

use std::sync::Arc;

use pbs_cluster_api::{
    Alteration, Changed, Filter, Listed, NodesChanged, Optimiser, Reasons, Refusal, Shown, Status,
    Submission,
};
use pbs_manager::{Change, Wish};
use pbs_resources::Rset;
use pbs_site::User;
use pbs_socket::Caller;
use tokio::sync::oneshot;

/// Receiver of the answer, which may have stopped waiting for it.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// A call of a user.
#[derive(Debug)]
pub struct Call {
    /// The user.
    pub user: Arc<User>,
    /// The method with its parameters.
    pub method: Method,
}

/// A part of a call, as it was sent or read.
#[derive(Debug)]
pub enum Part<S, R> {
    /// Texts, as they were sent.
    Sent(Box<S>),
    /// Values that were read from the texts.
    Read(Box<R>),
}

/// Method of the interface with its parameters, and the receiver of the answer.
#[derive(Debug)]
pub enum Method {
    Submit(Part<Submission, Wish>, Answer<Changed>),
    Reserve(Part<Submission, Wish>, Answer<Changed>),
    Alter(u64, Part<Alteration, Change>, Answer<Changed>),
    Resize(u64, Rset, Answer<Changed>),
    Extend(u64, u64, Answer<Changed>),
    Confirm(Vec<u64>, Answer<Changed>),
    Kill(Vec<u64>, Answer<Changed>),
    Show(u64, Answer<Shown>),
    List(Filter, Answer<Listed>),
    Why(u64, Answer<Reasons>),
    SetNodes(NodesWanted, Answer<NodesChanged>),
    SetDefect(DefectWanted, Answer<NodesChanged>),
    Status(Answer<Status>),
    Optimiser(Answer<Optimiser>),
}

/// Wanted state of nodes.
#[derive(Debug)]
pub struct NodesWanted {
    /// Names of the nodes.
    pub names: Vec<String>,
    /// `offline`, `down` or `online`.
    pub state: String,
    /// Reason, shown to others.
    pub why: String,
}

/// Parts of nodes that are to be out of use.
#[derive(Debug)]
pub struct DefectWanted {
    /// Names of the nodes.
    pub names: Vec<String>,
    /// Defective amounts, or `none`.
    pub parts: String,
    /// Reason, shown to others.
    pub why: String,
}

/// Returns the bytes of names.
fn names_bytes(names: &[String]) -> usize {
    names.iter().map(|name| size_of::<String>() + name.len()).sum()
}

impl<R> Part<Submission, R> {
    fn bytes(&self) -> usize {
        match self {
            Self::Sent(sent) => submission_bytes(sent),
            Self::Read(_) => 0,
        }
    }
}

impl Part<Submission, Wish> {
    /// Reads the submission, if it was not read before.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] names what can't be read.
    pub(crate) fn read(self) -> Result<Box<Wish>, Refusal> {
        match self {
            Self::Sent(sent) => sent.into_wish().map(Box::new),
            Self::Read(read) => Ok(read),
        }
    }
}

impl Part<Alteration, Change> {
    /// Reads the alteration, if it was not read before.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] names what can't be read.
    pub(crate) fn read(self) -> Result<Box<Change>, Refusal> {
        match self {
            Self::Sent(sent) => sent.into_change().map(Box::new),
            Self::Read(read) => Ok(read),
        }
    }
}

/// Returns the bytes of a submission: its texts, and the items of its lists.
fn submission_bytes(sent: &Submission) -> usize {
    let texts = [&sent.when, &sent.user, &sent.group, &sent.name, &sent.notify_signal];
    let texts = texts.into_iter().flatten().map(String::len);
    let words = sent.command.iter().flatten().map(|word| size_of::<String>() + word.len());
    let indices = sent.array.as_ref().map_or(0, |array| size_of_val(&array[..]));
    let after = sent.after.as_ref().map_or(0, |after| size_of_val(&after[..]));
    sent.rset.len() + texts.sum::<usize>() + words.sum::<usize>() + indices + after
}

impl pbs_socket::Call for Call {
    fn bytes(&self) -> usize {
        match &self.method {
            Method::Submit(part, _) | Method::Reserve(part, _) => part.bytes(),
            Method::Alter(_, Part::Sent(sent), _) => {
                let texts = [&sent.rset, &sent.when].into_iter().flatten();
                texts.map(String::len).sum()
            }
            Method::Resize(_, rset, _) => rset.to_string().len(),
            Method::List(filter, _) => filter.user.as_ref().map_or(0, String::len),
            Method::Confirm(ids, _) | Method::Kill(ids, _) => size_of_val(&ids[..]),
            Method::SetNodes(wanted, _) => names_bytes(&wanted.names) + wanted.why.len(),
            Method::SetDefect(wanted, _) => {
                names_bytes(&wanted.names) + wanted.parts.len() + wanted.why.len()
            }
            _ => 0,
        }
    }

    fn read(self, _: &Caller) -> Option<Self> {
        let Self { user, method } = self;
        let method = match method {
            Method::Submit(part, answer) => {
                let (read, answer) = or_refuse(part.read(), answer)?;
                Method::Submit(Part::Read(read), answer)
            }
            Method::Reserve(part, answer) => {
                let (read, answer) = or_refuse(part.read(), answer)?;
                Method::Reserve(Part::Read(read), answer)
            }
            Method::Alter(id, part, answer) => {
                let (read, answer) = or_refuse(part.read(), answer)?;
                Method::Alter(id, Part::Read(read), answer)
            }
            other => other,
        };
        Some(Self { user, method })
    }
}

/// Sends a refusal; otherwise returns the result with the receiver of the answer.
fn or_refuse<T, U>(read: Result<T, Refusal>, answer: Answer<U>) -> Option<(T, Answer<U>)> {
    match read {
        Ok(read) => Some((read, answer)),
        Err(refusal) => {
            // The caller may have gone.
            let _ = answer.send(Err(refusal));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parts of a submission count, not only its resources.
    #[test]
    fn all_of_a_submission_counts() {
        let array = Some((0..40_000).collect());
        let command = Some(vec!["x".repeat(1000)]);
        let sent = Submission { array, command, rset: "ncpus=1".into(), ..Submission::default() };
        let bytes = submission_bytes(&sent);
        assert_eq!(bytes, 7 + 1000 + size_of::<String>() + 40_000 * 8);
        let (answer, _answered) = oneshot::channel();
        let call = Call {
            user: Arc::new("anna".into()),
            method: Method::Submit(Part::Sent(sent.into()), answer),
        };
        assert_eq!(pbs_socket::Call::bytes(&call), bytes);
    }
}
