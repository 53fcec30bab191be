// SPDX-License-Identifier: GPL-2.0
//! Users of a cluster.
//!
//! A name can be given to another person, and then must not give its requests away. Therefore the
//! number of the user decides who may show, change and end a request, as whom programs run, and
//! whose use counts against a limit. The name is for showing, and for the site file, whose users,
//! limits and pools are written with names: they mean whoever has the name at the submission.
//!
//! Users who never log in have no number. Those are the users of traces, of simulated clusters and
//! of jobs that another system has accepted and runs, such as Slurm. They are the same user if
//! their names are the same. A user without a number is never the same as one with a number,
//! whatever the names are.

use std::fmt;
use std::hash::{Hash, Hasher};

/// User of a cluster. Users are equal if their numbers are, or if both have none and their names
/// are equal.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// Name of the user at the submission, which the site file uses.
    pub name: String,
    /// Number of the user's account; `None`: the user has no account here.
    pub uid: Option<u32>,
}

impl User {
    /// User of an account.
    pub fn with_uid(name: &str, uid: u32) -> Self {
        Self { name: name.into(), uid: Some(uid) }
    }

    /// Name of a user without an account; `None`: the number decides.
    fn name_without_uid(&self) -> Option<&str> {
        self.uid.is_none().then_some(&self.name)
    }
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid && self.name_without_uid() == other.name_without_uid()
    }
}

impl Eq for User {}

impl Hash for User {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uid.hash(state);
        self.name_without_uid().hash(state);
    }
}

/// The user's name.
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A user without an account.
impl From<&str> for User {
    fn from(name: &str) -> Self {
        Self { name: name.into(), uid: None }
    }
}

/// A user without an account.
impl From<&String> for User {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

/// A user without an account.
impl From<String> for User {
    fn from(name: String) -> Self {
        Self { name, uid: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_number_decides_and_the_name_only_without_one() {
        let anna = User::with_uid("anna", 1000);
        assert_eq!(anna, User::with_uid("renamed", 1000));
        assert_ne!(anna, User::with_uid("anna", 1001));
        assert_ne!(anna, User::from("anna"));
        assert_eq!(User::from("anna"), User::from("anna".to_string()));
        assert_ne!(User::from("anna"), User::from("bob"));
        let renamed = User::with_uid("renamed", 1000);
        let users: HashSet<User> = [anna, renamed, "anna".into(), "bob".into()].into();
        assert_eq!(users.len(), 3);
    }
}
