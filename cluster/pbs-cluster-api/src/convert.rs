// SPDX-License-Identifier: GPL-2.0
//! Submissions and alterations between the socket and the manager.

use pbs_cluster_planner::When;
use pbs_manager::{Change, Error, Wish};
use pbs_resources::Rset;
use pbs_site::Promise;

use crate::types::{Alteration, Object, Refusal, Submission};

/// Returns a value that is not the default one.
fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

impl From<&Wish> for Submission {
    /// Converts a request to be sent. An empty user or group is chosen by the service.
    fn from(wish: &Wish) -> Self {
        Self {
            rset: wish.rset.to_string(),
            duration_s: unless_default(wish.duration_s),
            when: Some(wish.when.to_string()),
            user: unless_default(wish.user.name.clone()),
            group: unless_default(wish.group.clone()),
            name: unless_default(wish.name.clone()),
            command: unless_default(wish.command.clone()),
            run_s: wish.run_s,
            notify_s: wish.notify_s,
            notify_signal: wish.notify_signal.clone(),
            restartable: unless_default(wish.is_restartable),
            array: wish.array.clone(),
            within: wish.within,
            after: unless_default(wish.after.iter().copied().map(Object).collect()),
            promise: wish.promise.map(|promise| promise.name().into()),
        }
    }
}

impl Submission {
    /// Reads what was sent. User and group are empty where none was sent.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] names the part that can't be read.
    pub fn into_wish(self) -> Result<Wish, Refusal> {
        let after = self.after.unwrap_or_default();
        Ok(Wish {
            duration_s: self.duration_s.unwrap_or(0),
            when: self.when.as_deref().map_or(Ok(When::BestEffort), when)?,
            name: self.name.unwrap_or_default(),
            command: self.command.unwrap_or_default(),
            run_s: self.run_s,
            notify_s: self.notify_s,
            notify_signal: self.notify_signal,
            is_restartable: self.restartable.unwrap_or(false),
            array: self.array,
            within: self.within,
            after: after.into_iter().map(|after| after.0).collect(),
            promise: self.promise.as_deref().map(promise).transpose()?,
            ..Wish::new(
                rset(&self.rset)?,
                self.user.unwrap_or_default(),
                &self.group.unwrap_or_default(),
            )
        })
    }
}

impl From<&Change> for Alteration {
    fn from(change: &Change) -> Self {
        Self {
            rset: change.rset.as_ref().map(Rset::to_string),
            duration_s: change.duration_s,
            when: change.when.as_ref().map(When::to_string),
        }
    }
}

impl Alteration {
    /// Reads what was sent.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] names the part that can't be read.
    pub fn into_change(self) -> Result<Change, Refusal> {
        Ok(Change {
            rset: self.rset.as_deref().map(rset).transpose()?,
            duration_s: self.duration_s,
            when: self.when.as_deref().map(when).transpose()?,
            ..Change::default()
        })
    }
}

/// Reads resources and their place.
fn rset(text: &str) -> Result<Rset, Refusal> {
    text.parse().map_err(|error: pbs_resources::Error| Refusal::Invalid {
        what: format!("rset, column {}: {}", error.column, error.message),
    })
}

/// Reads a promise.
fn promise(name: &str) -> Result<Promise, Refusal> {
    Promise::of_name(name).ok_or_else(|| Refusal::Invalid {
        what: format!("there is no promise {name:?}; write none, start or deadline"),
    })
}

/// Reads a desired time.
fn when(text: &str) -> Result<When, Refusal> {
    text.parse().map_err(|_| Refusal::Invalid {
        what: "when names no desired time; write best-effort, or as deadline 1785571200".into(),
    })
}

impl Refusal {
    /// Converts an error of the manager; `why`: the error in the words of the site.
    pub fn of(error: &Error, why: String) -> Self {
        match error {
            Error::Declined(_) => Self::Declined { why },
            Error::NoRequest(id) => Self::NoSuchRequest { request: *id },
            Error::NotPermitted(what) => Self::NotPermitted { what: what.clone() },
            Error::Wrong(what) => Self::NotInState { what: what.clone() },
            Error::Forgotten(..) => Self::NotInState { what: why },
            Error::NoNode(_) => Self::Invalid { what: why },
            Error::Site(_) | Error::Ledger(_) => Self::Failed { why },
        }
    }
}

#[cfg(test)]
mod tests {
    use pbs_manager::ledger::{After, Outcome};

    use super::*;

    /// A request that goes over the socket is the one that was asked for.
    #[test]
    fn a_submission_is_read_as_it_was_sent() {
        let wish = Wish {
            duration_s: 60,
            when: When::Deadline { end_s: 99, late: true },
            name: "run".into(),
            command: vec!["./app".into(), "1".into()],
            run_s: Some(5),
            notify_s: Some(6),
            notify_signal: Some("USR1".into()),
            is_restartable: true,
            array: Some(vec![1, 3]),
            within: Some(7),
            after: vec![After { request: 8, outcome: Outcome::NotOk }],
            promise: Some(Promise::Deadline),
            ..Wish::new("2:ncpus=4".parse().unwrap(), "anna", "G1")
        };
        assert_eq!(Submission::from(&wish).into_wish(), Ok(wish.clone()));
        let plain = Wish::new("ncpus=1".parse().unwrap(), "", "");
        assert_eq!(Submission::from(&plain).into_wish(), Ok(plain));
        let change = Change {
            rset: Some(wish.rset),
            duration_s: Some(9),
            when: Some(When::After { start_s: 3 }),
            ..Change::default()
        };
        assert_eq!(Alteration::from(&change).into_change(), Ok(change));
    }

    /// A part that can't be read is named.
    #[test]
    fn what_can_not_be_read_is_named() {
        let told = |submission: Submission| match submission.into_wish() {
            Err(Refusal::Invalid { what }) => what,
            other => panic!("{other:?}"),
        };
        let no_rset = Submission { rset: "ncpus=".into(), ..Submission::default() };
        assert!(told(no_rset).starts_with("rset, column "));
        let when = Some("soon".into());
        let no_time = Submission { rset: "ncpus=1".into(), when, ..Submission::default() };
        assert!(told(no_time).starts_with("when names no desired time"));
    }
}
