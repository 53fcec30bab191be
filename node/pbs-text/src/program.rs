// SPDX-License-Identifier: GPL-2.0
//! Ends of programs, in words.

/// Names of the signals 1 to 31, which are the same on all architectures that we support.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Name of a signal, as `SIGKILL`; `signal 40` for one without a name.
pub fn signal(number: i32) -> String {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let name = place.and_then(|place| SIGNALS.get(place));
    name.map_or_else(|| format!("signal {number}"), ToString::to_string)
}

/// Predicate of a sentence about a program that has ended: `exited with status 3`. `error`:
/// reason for which the program could not be executed. `None`: nothing is known of its end.
pub fn program_end(code: Option<i32>, by: Option<i32>, error: Option<&str>) -> Option<String> {
    match (error, code, by) {
        (Some(error), ..) => Some(format!("could not be executed: {error}")),
        (None, Some(code), _) => Some(format!("exited with status {code}")),
        (None, None, Some(by)) => Some(format!("was killed by {}", signal(by))),
        (None, None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names() {
        for (number, name) in [
            (libc::SIGHUP, "SIGHUP"),
            (libc::SIGKILL, "SIGKILL"),
            (libc::SIGSEGV, "SIGSEGV"),
            (libc::SIGTERM, "SIGTERM"),
            (libc::SIGSTOP, "SIGSTOP"),
            (libc::SIGXCPU, "SIGXCPU"),
            (libc::SIGSYS, "SIGSYS"),
            (0, "signal 0"),
            (32, "signal 32"),
            (-1, "signal -1"),
        ] {
            assert_eq!(signal(number), name);
        }
    }

    #[test]
    fn what_ended_a_program_is_told() {
        assert_eq!(program_end(Some(3), None, None).as_deref(), Some("exited with status 3"));
        assert_eq!(program_end(None, Some(9), None).as_deref(), Some("was killed by SIGKILL"));
        let absent = program_end(None, None, Some("Permission denied"));
        assert_eq!(absent.as_deref(), Some("could not be executed: Permission denied"));
        assert_eq!(program_end(None, None, None), None);
    }
}
