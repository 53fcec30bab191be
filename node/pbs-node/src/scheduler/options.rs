// SPDX-License-Identifier: GPL-2.0
//! Options by which a command is chosen, as text.

use std::fs;
use std::time::Duration;

use pbs_sim::RunAs;
use pbs_text::Quantity;

use super::SchedulerCommand;

/// Times within which a command may have to answer.
const TIMEOUTS_NS: std::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;

impl SchedulerCommand {
    /// A command from `"command LINE"`, as `pbsctl sim --scheduler` has it.
    ///
    /// # Errors
    ///
    /// The text is something else.
    pub fn from_option(text: &str) -> Result<Self, String> {
        let line = text.strip_prefix("command ").map(str::trim).filter(|line| !line.is_empty());
        let line = line.ok_or("write \"command LINE\", with a line for sh")?;
        Ok(Self { line: line.into(), timeout: Self::TIMEOUT, run_as: None })
    }

    /// A time within which a command has to answer: in seconds, or with a unit.
    ///
    /// # Errors
    ///
    /// The text is no such time.
    pub fn timeout_of(text: &str) -> Result<Duration, String> {
        // The refusal below says what to write instead.
        let ns = Quantity::Ns.parse_with(text, 1_000_000_000).ok();
        let ns = ns.filter(|ns| TIMEOUTS_NS.contains(ns));
        ns.map(Duration::from_nanos).ok_or_else(|| {
            "write 0.001 to 3600 seconds, or such a time with a unit, such as 500ms".into()
        })
    }

    /// The user of that name or number, and the user's group, as /etc/passwd has them.
    ///
    /// # Errors
    ///
    /// There is no such user.
    pub fn user_of(text: &str) -> Result<RunAs, String> {
        // A file that cannot be read has no users, and the refusal below names it.
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        user(&users, text).ok_or_else(|| format!("/etc/passwd has no user {text}"))
    }
}

fn user(users: &str, text: &str) -> Option<RunAs> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, ..] = fields[..] else {
            return None;
        };
        let is_it = name == text || uid == text;
        Some(RunAs { uid: uid.parse().ok()?, gid: gid.parse().ok()? }).filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_line() {
        let command = SchedulerCommand::from_option("command  ./plan.py a").unwrap();
        assert_eq!(
            (command.line.as_str(), command.timeout),
            ("./plan.py a", Duration::from_secs(1))
        );
        for text in ["", "command", "command ", "./plan.py", "stretch"] {
            assert!(SchedulerCommand::from_option(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_timeout_is_in_seconds_or_has_a_unit() {
        assert_eq!(SchedulerCommand::timeout_of("2"), Ok(Duration::from_secs(2)));
        assert_eq!(SchedulerCommand::timeout_of("50ms"), Ok(Duration::from_millis(50)));
        for text in ["0", "1us", "2h", "soon"] {
            assert!(SchedulerCommand::timeout_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_user_has_a_name_and_a_number() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\nnobody:x:65534:65533:::\n";
        let nobody = Some(RunAs { uid: 65534, gid: 65533 });
        assert_eq!((user(users, "nobody"), user(users, "65534")), (nobody, nobody));
        assert_eq!((user(users, "broken"), user(users, "6553")), (None, None));
    }
}
