// SPDX-License-Identifier: GPL-2.0
//! Formatted text at the end of a string.

use std::fmt::{Arguments, Write};

/// Target of [`append!`](crate::append!) and [`append_line!`](crate::append_line!): a string alone,
/// since nothing else takes every text.
pub trait Append {
    /// Appends formatted text.
    ///
    /// # Panics
    ///
    /// If the `Display` of an argument fails, as that of [`ToString`] does.
    fn append(&mut self, text: Arguments<'_>);
}

impl Append for String {
    fn append(&mut self, text: Arguments<'_>) {
        self.write_fmt(text).expect("a Display never fails of itself");
    }
}

/// Appends formatted text to a string: `append!(string, "{} jobs", jobs)`.
#[macro_export]
macro_rules! append {
    ($string:expr, $($text:tt)*) => {{
        use $crate::Append as _;
        $string.append(format_args!($($text)*))
    }};
}

/// Appends a line of formatted text to a string.
#[macro_export]
macro_rules! append_line {
    ($string:expr, $($text:tt)*) => {{
        $crate::append!($string, $($text)*);
        $string.push('\n');
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_is_appended_to_a_string() {
        let mut text = String::from("one");
        let end = &mut text;
        append!(end, " and {}", 2);
        append_line!(end, ", {three}", three = 3);
        assert_eq!(text, "one and 2, 3\n");
    }
}
