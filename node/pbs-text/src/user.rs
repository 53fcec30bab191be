// SPDX-License-Identifier: GPL-2.0
//! Names of users in messages.

/// Name of a user by the lines of a passwd file; `None`: no line has that user. No directory of
/// the network is asked, since its answer would have to be waited for.
pub fn user_name(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_string())
    })
}

/// Number of a user by the lines of a passwd file; `None`: no line has that name.
pub fn user_number_of(users: &str, name: &str) -> Option<u32> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_named = fields.next() == Some(name);
        fields.nth(1).filter(|_| is_named)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_of_its_line() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\n:x:7:7:::\nanna:x:1000:100::/:\n";
        assert_eq!(user_name(users, 1000).as_deref(), Some("anna"));
        assert_eq!(user_name(users, 0).as_deref(), Some("root"));
        // The group of another user, and a line without a name.
        assert_eq!((user_name(users, 100), user_name(users, 7)), (None, None));
        assert_eq!(user_number_of(users, "anna"), Some(1000));
        assert_eq!((user_number_of(users, "x"), user_number_of(users, "broken")), (None, None));
    }
}
