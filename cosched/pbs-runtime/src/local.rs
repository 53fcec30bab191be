// SPDX-License-Identifier: GPL-2.0
//! Devices that this process itself uses.

/// Devices of one type, or threads of the CPU.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    count: u32,
    taken: Vec<(Option<u32>, u32)>,
}

impl Units {
    pub(crate) fn new(count: u32) -> Self {
        Self { count, taken: Vec::new() }
    }

    /// Whether so many are left, as far as this process knows. Alone each task has room.
    pub(crate) fn has_room(&self, units: u32) -> bool {
        let used: u32 = self.taken.iter().map(|(_, units)| units).sum();
        used == 0 || used + units <= self.count
    }

    /// Takes that many units. Returns the first of them, or an inner `None` if they are not
    /// contiguous. Returns an outer `None` if there are not that many.
    pub(crate) fn take(&mut self, units: u32) -> Option<Option<u32>> {
        if !self.has_room(units) {
            return None;
        }
        let mut firsts: Vec<u32> = vec![0];
        firsts.extend(self.known().map(|(first, units)| first + units));
        firsts.sort_unstable();
        let first = firsts.into_iter().find(|&first| self.is_free(first, units));
        self.note(first, units);
        Some(first)
    }

    /// Returns the used units whose position is known.
    fn known(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let taken = self.taken.iter();
        taken.filter_map(|&(first, units)| Some((first?, units)))
    }

    /// Whether there are so many from this one on, and none of them is in use.
    pub(crate) fn is_free(&self, first: u32, units: u32) -> bool {
        let end = first.checked_add(units).filter(|end| *end <= self.count);
        end.is_some_and(|end| self.known().all(|(of, its)| of + its <= first || end <= of))
    }

    /// Marks units as used.
    pub(crate) fn note(&mut self, first: Option<u32>, units: u32) {
        self.taken.push((first, units));
    }

    /// Marks units as free.
    pub(crate) fn give_back(&mut self, first: Option<u32>, units: u32) {
        if let Some(at) = self.taken.iter().position(|of| *of == (first, units)) {
            self.taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_beside_each_other_where_they_can_be() {
        let mut units = Units::new(4);
        assert_eq!(units.take(1), Some(Some(0)));
        assert_eq!(units.take(2), Some(Some(1)));
        assert_eq!(units.take(2), None);
        units.give_back(Some(0), 1);
        assert_eq!(units.take(2), Some(None), "0 and 3 are free");
        units.give_back(Some(1), 2);
        assert_eq!(units.take(2), Some(Some(0)));
        assert_eq!(Units::new(2).take(3), Some(None), "more than there are, alone");
    }

    #[test]
    fn what_is_not_here_or_is_in_use_is_not_free() {
        let mut units = Units::new(4);
        assert_eq!(units.take(2), Some(Some(0)));
        units.note(None, 1);
        for (first, count, expected) in [
            (2, 2, true),
            (1, 1, false),
            (1, 2, false),
            (3, 2, false),
            (4, 1, false),
            (u32::MAX, 2, false),
        ] {
            assert_eq!(units.is_free(first, count), expected, "{first} {count}");
        }
    }
}
