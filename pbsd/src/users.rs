// SPDX-License-Identifier: GPL-2.0
//! Names of users in messages.

use std::fs;

/// Name of a user, as /etc/passwd has it; otherwise the number. The service asks no directory
/// of the network, since it would have to wait for the answer.
pub(crate) fn user_name(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_in(&users, uid).unwrap_or_else(|| format!("user {uid}"))
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_of_its_line() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\n:x:7:7:::\nanna:x:1000:100::/:\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("anna"));
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        // The group of another user, and a line without a name.
        assert_eq!((name_in(users, 100), name_in(users, 7)), (None, None));
        assert_eq!(user_name(u32::MAX), "user 4294967295");
    }
}
