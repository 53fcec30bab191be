// SPDX-License-Identifier: GPL-2.0
//! Header comments that describe the cluster.

/// Comments with a name are kept so far; those of the archive have some twenty.
const MOST: usize = 1000;

/// Comments of the form `; Name: value`, in their order. A name may be there several
/// times: `Queue` and `Note` are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    fields: Vec<(String, String)>,
}

impl Header {
    /// The first value of a name, as it is written: `MaxProcs`, `Computer`, ….
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.0.eq_ignore_ascii_case(name))?;
        Some(&field.1)
    }

    /// Names with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the number of cores of the cluster: `MaxProcs`, or else `MaxNodes`.
    pub fn cores(&self) -> Option<u64> {
        self.number("MaxProcs").or(self.number("MaxNodes"))
    }

    /// The number that the value of a name begins with, as `1,024`; words may follow it.
    pub fn number(&self, name: &str) -> Option<u64> {
        let number = self.get(name)?.split_whitespace().next()?;
        let mut groups = number.split(',');
        let first = groups.next()?;
        let is_grouped = groups.clone().count() == 0 || (1..=3).contains(&first.len());
        let is_whole = groups.all(|of| of.len() == 3 && of.bytes().all(|of| of.is_ascii_digit()));
        if !is_grouped || !is_whole {
            return None;
        }
        number.replace(',', "").parse().ok()
    }

    /// Adds a field. What no line can hold becomes a space.
    pub fn push(&mut self, name: &str, value: &str) {
        let clean = |text: &str| text.replace(|c: char| c.is_control(), " ").trim().to_string();
        self.fields.push((clean(name), clean(value)));
    }

    /// Reads a comment, which begins after its `;`. A comment without a name is for people.
    pub(super) fn comment(&mut self, text: &str) {
        let Some((name, value)) = text.split_once(':') else {
            return;
        };
        let name = name.trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
        if is_name && self.fields.len() < MOST {
            self.push(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_groups() {
        for (value, cores) in [
            ("1024", Some(1024)),
            ("1,024 (8 nodes)", Some(1024)),
            ("1,048,576", Some(1_048_576)),
            ("1,24", None),
            ("1024,128", None),
            (",024", None),
            ("1,02x", None),
        ] {
            let mut header = Header::default();
            header.push("MaxProcs", value);
            assert_eq!(header.cores(), cores, "{value}");
        }
    }
}
