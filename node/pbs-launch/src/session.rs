// SPDX-License-Identifier: GPL-2.0
//! A session of its own for a command that is no program of a plan.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::owner::JOIN_SESSION_KEYRING;
use crate::signals::unblock_in;

/// Lets a command begin in a session of its own, and so in a process group of its own, with a new
/// session keyring and no signal blocked. The terminal and the keys of the caller are not for it.
#[allow(unsafe_code)]
pub fn leave_session_in(command: &mut Command) {
    let leave = || {
        // SAFETY: calls with valid arguments, which may be made between fork and exec.
        unsafe {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            let nameless = std::ptr::null::<u8>();
            if libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nameless) < 0
                && *libc::__errno_location() != libc::ENOSYS
            {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    unblock_in(command);
    // SAFETY: the closure neither allocates nor takes a lock.
    unsafe { command.pre_exec(leave) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_session_of_its_own() {
        let of = |is_apart: bool| {
            let mut command = Command::new("sh");
            // The group and the session, as proc_pid_stat(5) has them, and the keys that it has.
            command.args(["-c", "cut -d' ' -f5,6 /proc/$$/stat; echo $$; cat /proc/keys"]);
            if is_apart {
                leave_session_in(&mut command);
            }
            let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
            let mut lines = output.lines().map(str::to_string);
            (lines.next().unwrap(), lines.next().unwrap(), lines.collect::<Vec<_>>())
        };
        let (ids, pid, keys) = of(true);
        assert_eq!(ids, format!("{pid} {pid}"));
        // A machine without keys has an empty list.
        assert!(keys.is_empty() || keys.iter().any(|key| key.contains("keyring   _ses")));
        let (ids, pid, _) = of(false);
        assert_ne!(ids, format!("{pid} {pid}"));
    }
}
