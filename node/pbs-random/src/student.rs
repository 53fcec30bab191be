// SPDX-License-Identifier: GPL-2.0
//! Student's t: the intervals of lengths and those of slow-downs are both of a mean of logarithms.

/// Quantile that Student's t is below 19 times of 20, for 1, 2, ... 12 degrees of freedom.
const STUDENT: [f64; 12] = [
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823,
];
/// Quantile that the normal distribution is below 19 times of 20.
const NORMAL: f64 = 1.6449;

/// The quantile that Student's t is below 19 times of 20, for degrees of freedom that need
/// not be whole, at least 1. Between whole ones it is nearly linear in their reciprocal.
pub fn student(freedom: f64) -> f64 {
    let most = STUDENT.len();
    let freedom = freedom.max(1.0);
    if freedom >= most as f64 {
        return NORMAL + (STUDENT[most - 1] - NORMAL) * most as f64 / freedom;
    }
    let below = libm::floor(freedom);
    let (more, fewer) = (STUDENT[below as usize], STUDENT[below as usize - 1]);
    let part = (1.0 / freedom - 1.0 / (below + 1.0)) / (1.0 / below - 1.0 / (below + 1.0));
    more + part * (fewer - more)
}

#[cfg(test)]
mod tests {
    use super::student;

    #[test]
    fn between_whole_numbers_it_falls() {
        assert!((student(1.0) - 6.3138).abs() < 1e-9);
        assert!((student(5.0) - 2.0150).abs() < 1e-9);
        assert!((student(30.0) - 1.6973).abs() < 0.006);
        assert!((student(1e9) - 1.6449).abs() < 1e-3);
        let mut before = f64::INFINITY;
        for tenth in 10..300 {
            let found = student(f64::from(tenth) / 10.0);
            assert!(found < before, "{tenth}");
            before = found;
        }
    }
}
