// SPDX-License-Identifier: GPL-2.0
//! Time zones as text.

use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter};
use jiff::tz::TimeZone;

/// Returns the text of a time zone, which [`parse_zone`] reads.
pub fn zone_text(zone: &TimeZone) -> String {
    // Only the zone of a system that has not told its name has none.
    let text = DateTimePrinter::new().time_zone_to_string(zone);
    text.unwrap_or_else(|_| "UTC".into())
}

/// Reads a time zone; `None`: this system knows no such zone.
pub fn parse_zone(text: &str) -> Option<TimeZone> {
    if text == "UTC" {
        // No rules are needed for it.
        return Some(TimeZone::UTC);
    }
    // The caller knows which text it was, and what to write instead.
    DateTimeParser::new().parse_time_zone(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_read_as_it_is_written() {
        for text in ["UTC", "+01:00", "CET-1CEST,M3.5.0,M10.5.0/3"] {
            let zone = parse_zone(text).unwrap();
            assert_eq!(zone_text(&zone), text);
        }
        assert_eq!(parse_zone("Nowhere/Nothing"), None);
    }
}
