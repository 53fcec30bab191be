// SPDX-License-Identifier: GPL-2.0
//! What of the devices this process itself has in use.

/// Devices of one type, or threads of the CPU.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    count: u32,
    taken: Vec<(Option<u32>, u32)>,
}

impl Units {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            count,
            taken: Vec::new(),
        }
    }

    /// Whether so many are left, as far as this process knows. Alone each task has room.
    pub(crate) fn has_room(&self, units: u32) -> bool {
        let used: u32 = self.taken.iter().map(|(_, units)| units).sum();
        used == 0 || used + units <= self.count
    }

    /// Takes so many: the first of them, or nothing within if they are not beside each
    /// other. Nothing at all if there are not so many.
    pub(crate) fn take(&mut self, units: u32) -> Option<Option<u32>> {
        if !self.has_room(units) {
            return None;
        }
        let mut firsts: Vec<u32> = vec![0];
        let known = || {
            self.taken
                .iter()
                .filter_map(|&(first, units)| Some((first?, units)))
        };
        firsts.extend(known().map(|(first, units)| first + units));
        firsts.sort_unstable();
        let first = firsts.into_iter().find(|&first| {
            let end = first + units;
            end <= self.count && known().all(|(of, its)| of + its <= first || end <= of)
        });
        self.note(first, units);
        Some(first)
    }

    /// These are in use.
    pub(crate) fn note(&mut self, first: Option<u32>, units: u32) {
        self.taken.push((first, units));
    }

    /// They are not any more.
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
        assert_eq!(
            Units::new(2).take(3),
            Some(None),
            "more than there are, alone"
        );
    }
}
