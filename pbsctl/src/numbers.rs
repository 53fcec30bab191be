// SPDX-License-Identifier: GPL-2.0
//! Numbers on the command line: those below 0, and those that cannot be read.

use clap::Command;

/// Words of the standard library about numbers that cannot be read, and what to write instead.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "write a whole number, such as 5"),
    ("cannot parse integer from empty string", "write a whole number, such as 5"),
    ("number too large to fit in target type", "the number is too large; write a smaller one"),
    ("invalid float literal", "write a number, such as 0.5"),
];

/// The message about a command line, with the remedy where a number cannot be read.
pub(crate) fn with_remedy(text: &str) -> String {
    let replaced = |text: String, (words, remedy): &(&str, &str)| text.replace(words, remedy);
    NUMBERS.iter().fold(text.into(), replaced)
}

/// The parser of a number refuses what is below 0, and says what to write; otherwise, clap would
/// take it for an unknown option.
pub(crate) fn negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_option = arg.get_long().is_some() && arg.get_action().takes_values();
        if is_option {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    });
    command.mut_subcommands(negative_numbers)
}
