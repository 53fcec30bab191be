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

/// Returns a note on a zone whose name means the opposite of what people read in it: `Etc/GMT+1` is
/// an hour west of UTC.
pub fn zone_note(zone: &TimeZone) -> Option<String> {
    let name = zone.iana_name()?;
    let offset = name.strip_prefix("Etc/GMT")?;
    let hours = offset.strip_prefix(['+', '-']).filter(|hours| *hours != "0")?;
    let sign = if offset.starts_with('+') { "-" } else { "+" };
    Some(format!(
        "the time zone {name} is {sign}{hours:0>2}:00, since signs are the other way round in such \
         names; write \"{sign}{hours:0>2}:00\" to be clear, or Etc/GMT{sign}{hours} for the opposite"
    ))
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

    #[test]
    fn zones_of_greenwich_with_a_sign_are_noted() {
        let note = |name: &str| zone_note(&parse_zone(name).unwrap());
        let west = note("Etc/GMT+1").unwrap();
        assert!(west.starts_with("the time zone Etc/GMT+1 is -01:00"), "{west}");
        assert!(note("Etc/GMT-10").unwrap().contains("is +10:00"));
        for name in ["Etc/GMT", "Europe/Berlin", "+01:00", "UTC"] {
            assert_eq!(note(name), None, "{name}");
        }
    }
}
