// SPDX-License-Identifier: GPL-2.0
//! Names of users in messages.

use std::fs;

/// Name of a user, as /etc/passwd has it; otherwise the number.
pub(crate) fn user_name(uid: u32) -> String {
    // A user without a name is shown by number.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    pbs_text::user_name(&users, uid).unwrap_or_else(|| format!("user {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_line_is_a_number() {
        assert_eq!(user_name(u32::MAX), "user 4294967295");
    }
}
