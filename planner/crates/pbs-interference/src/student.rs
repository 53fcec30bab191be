// SPDX-License-Identifier: GPL-2.0
//! Student's t, as the estimates of lengths have it: both are intervals of a mean
//! of logarithms.

/// What it is below 19 times of 20, for 1, 2, ... 12 degrees of freedom.
const STUDENT: [f64; 12] = [
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823,
];
/// The same of the normal distribution.
const NORMAL: f64 = 1.6449;

/// The quantile for degrees of freedom that need not be whole. It is nearly linear
/// in their reciprocal.
pub(crate) fn student(freedom: f64) -> f64 {
    let most = STUDENT.len() as f64;
    let freedom = freedom.max(1.0);
    if freedom >= most {
        return NORMAL + (STUDENT[STUDENT.len() - 1] - NORMAL) * most / freedom;
    }
    let below = libm::floor(freedom);
    let (fewer, more) = (STUDENT[below as usize - 1], STUDENT[below as usize]);
    let part = (1.0 / below - 1.0 / freedom) / (1.0 / below - 1.0 / (below + 1.0));
    fewer + part * (more - fewer)
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
