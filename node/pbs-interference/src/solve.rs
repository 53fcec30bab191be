// SPDX-License-Identifier: GPL-2.0
//! Linear equations with a symmetric positive definite matrix.

/// x with `matrix`·x = `right`: the decomposition of Cholesky. What does not
/// determine x leaves 0 there.
pub(crate) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    decompose(&mut matrix);
    substitute(&matrix, &mut right);
    right
}

/// The inverse.
pub(crate) fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    decompose(&mut matrix);
    let size = matrix.len();
    (0..size)
        .map(|place| {
            let mut unit = vec![0.0; size];
            unit[place] = 1.0;
            substitute(&matrix, &mut unit);
            unit
        })
        .collect()
}

/// L with L·Lᵀ = the matrix, in its lower half.
fn decompose(matrix: &mut [Vec<f64>]) {
    for column in 0..matrix.len() {
        let whole = matrix[column][column];
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot = &mut above[column];
        let used: f64 = pivot[..column].iter().map(|part| part * part).sum();
        let left = whole - used;
        // No more than rounding is left.
        let root = if left > 1e-14 * whole { libm::sqrt(left) } else { f64::INFINITY };
        pivot[column] = root;
        for line in below {
            let pairs = line[..column].iter().zip(&pivot[..column]);
            let used: f64 = pairs.map(|(one, other)| one * other).sum();
            line[column] = (line[column] - used) / root;
        }
    }
}

fn substitute(lower: &[Vec<f64>], right: &mut [f64]) {
    let size = right.len();
    for place in 0..size {
        let pairs = lower[place][..place].iter().zip(right.iter());
        let used: f64 = pairs.map(|(one, other)| one * other).sum();
        right[place] = (right[place] - used) / lower[place][place];
    }
    for place in (0..size).rev() {
        let lines = lower.iter().zip(right.iter()).skip(place + 1);
        let used: f64 = lines.map(|(line, other)| line[place] * other).sum();
        right[place] = (right[place] - used) / lower[place][place];
    }
}

#[cfg(test)]
mod tests {
    use super::{inverse, solve};

    #[test]
    fn equations_are_solved() {
        let matrix = vec![vec![4.0, 2.0, 1.0], vec![2.0, 5.0, 3.0], vec![1.0, 3.0, 6.0]];
        // Of x = 1, -2, 3.
        let found = solve(matrix.clone(), vec![3.0, 1.0, 13.0]);
        for (found, right) in found.iter().zip([1.0, -2.0, 3.0]) {
            assert!((found - right).abs() < 1e-12);
        }
        let inverse = inverse(matrix.clone());
        for (row, line) in inverse.iter().enumerate() {
            for column in 0..3 {
                let cells = line.iter().zip(&matrix);
                let cell: f64 = cells.map(|(one, line)| one * line[column]).sum();
                let unit = if row == column { 1.0 } else { 0.0 };
                assert!((cell - unit).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn what_is_not_determined_is_nothing() {
        let found = solve(vec![vec![1.0, 1.0], vec![1.0, 1.0]], vec![2.0, 2.0]);
        assert_eq!(found, [2.0, 0.0]);
    }
}
