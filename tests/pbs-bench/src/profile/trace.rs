// SPDX-License-Identifier: GPL-2.0
//! The lines that QEMU writes with `log exec`.

/// Content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The instruction at this address is executed next.
    Executes(u64),
    /// The one of the line before was not executed: an interrupt came.
    TakenBack,
}

/// `Trace CPU: POINTER [CS_BASE/PC/FLAGS/CFLAGS] SYMBOL`, or a line that begins
/// with `Stopped execution`; `None` for any other.
pub fn parse(line: &[u8]) -> Option<Step> {
    if line.starts_with(b"Stopped execution") {
        return Some(Step::TakenBack);
    }
    if !line.starts_with(b"Trace ") {
        return None;
    }
    let bracket = line.iter().position(|&byte| byte == b'[')?;
    let mut fields = line.get(bracket + 1..)?.split(|&byte| byte == b'/');
    let pc = std::str::from_utf8(fields.nth(1)?).ok()?;
    u64::from_str_radix(pc, 16).ok().map(Step::Executes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log() {
        let line = b"Trace 0: 0x7f10 [00000000/ffff800080012340/0045/ff021401] do_it\n";
        assert_eq!(parse(line), Some(Step::Executes(0xffff_8000_8001_2340)));
        let line = b"Stopped execution of TB chain before 0x7f10 [ffff800080012340] do_it\n";
        assert_eq!(parse(line), Some(Step::TakenBack));
        assert_eq!(parse(b"cpu_io_recompile: rewound execution\n"), None);
        assert_eq!(parse(b"Trace 0: 0x7f10\n"), None);
    }
}
