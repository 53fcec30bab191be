// SPDX-License-Identifier: GPL-2.0
//! Shares of what a service holds: whether a user may have more, and the words of a refusal.

use pbs_text::grouped;

/// Something of which a user may have so much.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Name of it in messages, such as `tasks`.
    pub what: &'static str,
    /// Name of the limit, such as `user-tasks`.
    pub limit_name: &'static str,
    /// The limit of each user.
    pub limit: usize,
    /// Amount that the user has.
    pub own: usize,
    /// Amount that the user wants in addition.
    pub more: usize,
}

/// Bytes of all users together; operators are not refused by them.
#[derive(Clone, Copy, Debug)]
pub struct AllBytes {
    /// The limit.
    pub limit: usize,
    /// Bytes of all users.
    pub all: usize,
    /// Bytes that are wanted in addition.
    pub more: usize,
}

/// Words of a service for what users have.
#[derive(Clone, Copy, Debug)]
pub struct HeldWords {
    /// The user as the subject of a sentence, such as `you have`.
    pub user_has: &'static str,
    /// Things that are held, such as `open jobs`.
    pub open: &'static str,
    /// The things themselves, such as `jobs`.
    pub things: &'static str,
    /// Remedy beside waiting, such as `cancel some`.
    pub or_end: &'static str,
}

/// Checks whether a user may have more. `factor`: the limits of an operator, in limits of another
/// user; `None`: the user is no operator.
///
/// # Errors
///
/// In words: the limit, what there is of it already, and what to do.
pub fn check_shares(
    shares: &[Share],
    all_bytes: AllBytes,
    factor: Option<usize>,
    words: &HeldWords,
) -> Result<(), String> {
    let HeldWords { user_has, open, things, or_end } = words;
    for &Share { what, limit_name, limit, own, more } in shares {
        let limit = limit.saturating_mul(factor.unwrap_or(1));
        if own.saturating_add(more) > limit {
            return Err(format!(
                "{user_has} {} {what} in {open}, and these would be {} more; a user may have {} \
                 ({limit_name}). Submit fewer, or wait until {things} have ended, or {or_end}",
                grouped(own as u64),
                grouped(more as u64),
                grouped(limit as u64)
            ));
        }
    }
    let AllBytes { limit, all, more } = all_bytes;
    if factor.is_none() && all.saturating_add(more) > limit {
        return Err(format!(
            "the {open} of all users have {} bytes, and these would be {} more; all may have {} \
             (all-bytes). Wait until {things} have ended",
            grouped(all as u64),
            grouped(more as u64),
            grouped(limit as u64)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exactly as much as the limit is allowed; a refusal names the limit and a remedy.
    #[test]
    fn a_share_is_refused_by_its_name() {
        let words = HeldWords {
            user_has: "you have",
            open: "open jobs",
            things: "jobs",
            or_end: "cancel some",
        };
        let none = AllBytes { limit: 500, all: 450, more: 50 };
        let share = |own| Share { what: "tasks", limit_name: "user-tasks", limit: 3, own, more: 1 };
        assert_eq!(check_shares(&[share(2)], none, None, &words), Ok(()));
        let refused = check_shares(&[share(2), share(3)], none, None, &words).unwrap_err();
        assert_eq!(
            refused,
            "you have 3 tasks in open jobs, and these would be 1 more; a user may have 3 \
             (user-tasks). Submit fewer, or wait until jobs have ended, or cancel some"
        );
        assert_eq!(check_shares(&[share(23)], none, Some(8), &words), Ok(()));
        assert!(check_shares(&[share(24)], none, Some(8), &words).is_err());
        let more = AllBytes { more: 51, ..none };
        let refused = check_shares(&[], more, None, &words).unwrap_err();
        assert!(refused.ends_with("(all-bytes). Wait until jobs have ended"), "{refused}");
        assert_eq!(check_shares(&[], more, Some(8), &words), Ok(()));
    }
}
