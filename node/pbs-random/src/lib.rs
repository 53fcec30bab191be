// SPDX-License-Identifier: GPL-2.0
//! Random numbers that are the same for the same seed on every machine, and estimates of lengths that
//! scatter at random.

pub mod estimate;
mod student;

pub use student::student;

/// The generator SplitMix64, which searches, studies and tests use.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // They never end, and an iterator's Option would say otherwise.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number in `0..end`, nearly as likely each; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// An index in `0..length`, nearly as likely each; 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The generator Xorshift64, which draws the cases of the virtual machine and the jobs
/// that a simulation has in common with it.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// A generator that starts from `seed`. The first numbers of a small seed are small.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least + 1)
    }

    /// Any number, nearly.
    pub fn roll(&mut self) -> u64 {
        self.between(0, u64::MAX - 1)
    }

    /// An index below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.between(0, limit as u64 - 1) as usize
    }

    /// One of the values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Xorshift};

    /// The numbers of the published generator.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let first = [(); 3].map(|()| random.next());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    /// Numbers worked by hand: seed 0 gives the state 1, and three shifts follow.
    #[test]
    fn the_numbers_are_those_of_xorshift64() {
        let mut random = Xorshift::new(0);
        let state = 1 ^ 1 << 13;
        let state: u64 = state ^ state >> 7;
        let state = state ^ state << 17;
        assert_eq!(random.roll(), state);
        assert!((0..100).all(|_| (3..=9).contains(&random.between(3, 9))));
        assert!((0..100).all(|_| random.below(4) < 4));
    }
}
