// SPDX-License-Identifier: GPL-2.0
//! Owners of requests: accounts of this machine, and ledgers that have only their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pbs_site::User;
use pbs_text::user_number_of;
use rusqlite::{params, Transaction};

use crate::ledger::error::Error;

/// File with the accounts of this machine. No directory of the network is asked, since its answer
/// would have to be waited for.
const ACCOUNTS: &str = "/etc/passwd";
/// Names that an event lists; the others are counted.
const LISTED_NAMES: usize = 8;

/// Name of a batch system that submits the jobs of its own users. These have names alone, and are
/// nobody's on this machine.
pub const CONTROLLER: &str = "controller";

/// Owners of an older ledger after they have got the numbers of their accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributed {
    /// Number of requests whose owners have an account.
    pub requests: u64,
    /// Number of requests whose owners have none.
    pub without: u64,
    /// Names of these owners.
    pub names: Vec<String>,
}

impl Attributed {
    /// Describes what has become of the requests; `None`: there were none.
    pub fn describe(&self) -> Option<String> {
        let given = match self.requests {
            0 => None,
            1 => Some("1 request belongs".to_string()),
            count => Some(format!("{count} requests belong")),
        };
        let given = given.map(|given| {
            format!("{given} to the accounts that have the names of their users in {ACCOUNTS} now")
        });
        let parts: Vec<String> = [given, self.describe_without()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Describes the requests that nobody but an operator can change; `None`: there are none.
    fn describe_without(&self) -> Option<String> {
        if self.without == 0 {
            return None;
        }
        let listed: Vec<&str> = self.names.iter().take(LISTED_NAMES).map(String::as_str).collect();
        let others = match self.names.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} others"),
        };
        let requests = match self.without {
            1 => "1 request is of a user".into(),
            count => format!("{count} requests are of users"),
        };
        Some(format!(
            "{requests} without an account in {ACCOUNTS} ({}{others}): only operators can see \
             the command, and alter or end it, and no program of it is started; end it, and submit \
             it again",
            listed.join(", ")
        ))
    }
}

/// Returns the text of the file with the accounts.
pub(super) fn accounts() -> Result<String, Error> {
    fs::read_to_string(ACCOUNTS).map_err(|error| Error::unread(Path::new(ACCOUNTS), &error))
}

/// Returns the user of a name, with the number of the account that has the name now, if there is
/// one.
///
/// # Errors
///
/// The accounts can't be read.
pub fn account_user(name: &str) -> Result<User, Error> {
    Ok(User { name: name.into(), uid: number_of(&accounts()?, name) })
}

/// Number of the account that has a name; the account itself where it was named by its number, as
/// accounts of directories of the network are.
fn number_of(accounts: &str, name: &str) -> Option<u32> {
    let by_name = user_number_of(accounts, name);
    by_name.or_else(|| {
        let uid = name.strip_prefix("user ")?.parse().ok()?;
        (format!("user {uid}") == name).then_some(uid)
    })
}

/// Gives all owners and submitters of a ledger with names only the numbers of their accounts.
pub(super) fn attribute(all: &Transaction<'_>, accounts: &str) -> rusqlite::Result<Attributed> {
    all.execute_batch(
        "CREATE TEMP TABLE account (name TEXT PRIMARY KEY, uid INTEGER NOT NULL) STRICT",
    )?;
    let mut names = BTreeSet::new();
    for key in ["$.user", "$.submitted_by"] {
        let mut query = all.prepare("SELECT DISTINCT json_extract(body, ?1) FROM request")?;
        for name in query.query_map([key], |row| row.get::<_, Option<String>>(0))? {
            names.extend(name?);
        }
    }
    for name in names {
        if let Some(uid) = number_of(accounts, &name) {
            all.execute("INSERT INTO temp.account VALUES (?1, ?2)", params![name, uid])?;
        }
    }
    for (name, uid) in [("$.user", "$.uid"), ("$.submitted_by", "$.submitted_by_uid")] {
        all.execute(
            "UPDATE request SET body = json_set(body, ?2, account.uid) FROM temp.account
             WHERE json_extract(body, ?1) = account.name AND json_extract(body, ?2) IS NULL
             AND json_extract(body, '$.submitted_by') IS NOT ?3",
            [name, uid, CONTROLLER],
        )?;
    }
    all.execute_batch("DROP TABLE temp.account")?;
    let of_users = format!("json_extract(body, '$.submitted_by') IS NOT '{CONTROLLER}'");
    let open =
        format!("FROM request WHERE is_open AND {of_users} AND json_extract(body, '$.uid') IS");
    let count = |is: &str| {
        let query = format!("SELECT count(*) {open} {is}");
        all.query_row(&query, [], |row| row.get::<_, u64>(0))
    };
    let query = format!("SELECT DISTINCT json_extract(body, '$.user') {open} NULL ORDER BY 1");
    let mut query = all.prepare(&query)?;
    let names = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(Attributed { requests: count("NOT NULL")?, without: count("NULL")?, names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_a_line_is_named_by_its_number() {
        let accounts = "root:x:0:0::/root:/bin/sh\nanna:x:1000:100::/:\n";
        assert_eq!(number_of(accounts, "anna"), Some(1000));
        assert_eq!(number_of(accounts, "user 1001"), Some(1001));
        for name in ["eve", "user", "user +1", "user 01", "user 1 ", "1000", "user 4294967296"] {
            assert_eq!(number_of(accounts, name), None, "{name}");
        }
    }

    #[test]
    fn the_description_lists_few_names_and_counts_the_others() {
        let of = |names: &[&str]| Attributed {
            requests: 3,
            without: names.len() as u64,
            names: names.iter().map(|name| name.to_string()).collect(),
        };
        assert_eq!(Attributed::default().describe(), None);
        assert!(of(&[]).describe().unwrap().starts_with("3 requests belong to the accounts"));
        let told = of(&["eve"]).describe().unwrap();
        assert!(told.contains("; 1 request is of a user without"), "{told}");
        assert!(told.contains("(eve): only operators"), "{told}");
        let told = of(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).describe().unwrap();
        assert!(told.contains("(a, b, c, d, e, f, g, h and 2 others)"), "{told}");
    }
}
