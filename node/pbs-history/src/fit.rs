// SPDX-License-Identifier: GPL-2.0
//! Fit of costs as a function of size.

/// Coefficients of y = Σ c_k·x^k, that of x⁰ first, none of which is negative: what
/// costs nothing less for being more. Each point counts by how far it is off in
/// proportion. Of two that fit as well the one with fewer terms counts. `None`: there is
/// no point.
pub(crate) fn polynomial<const N: usize>(points: &[(u64, u64)]) -> Option<[f64; N]> {
    if points.is_empty() {
        return None;
    }
    // So that powers of it stay near 1.
    let most = points.iter().map(|&(x, _)| x).max().unwrap_or(1).max(1) as f64;
    let rows: Vec<[f64; N]> = points
        .iter()
        .map(|&(x, y)| {
            let y = y.max(1) as f64;
            std::array::from_fn(|power| libm::pow(x as f64 / most, power as f64) / y)
        })
        .collect();
    let mut masks: Vec<u32> = (1..1 << N).collect();
    masks.sort_by_key(|mask| mask.count_ones());
    let mut best: Option<(f64, [f64; N])> = None;
    for mask in masks {
        let Some(found) = least_squares(&rows, mask) else {
            continue;
        };
        let off = |row: &[f64; N]| {
            let parts = row.iter().zip(&found);
            1.0 - parts.map(|(part, factor)| part * factor).sum::<f64>()
        };
        let error: f64 = rows.iter().map(|row| off(row) * off(row)).sum();
        let is_better = best.is_none_or(|(least, _)| error < least * (1.0 - 1e-9) - 1e-18);
        if found.iter().all(|&factor| factor >= 0.0) && is_better {
            best = Some((error, found));
        }
    }
    let (_, mut found) = best?;
    for (power, factor) in found.iter_mut().enumerate() {
        *factor /= libm::pow(most, power as f64);
    }
    Some(found)
}

/// The least squares of rows that are to be 1, with the columns of the mask; `None`: the
/// rows do not tell them apart.
fn least_squares<const N: usize>(rows: &[[f64; N]], mask: u32) -> Option<[f64; N]> {
    let columns: Vec<usize> = (0..N).filter(|column| mask & (1 << column) != 0).collect();
    let size = columns.len();
    // The normal equations, their right sides last.
    let mut lines = vec![vec![0.0; size + 1]; size];
    for row in rows {
        for (line, &one) in lines.iter_mut().zip(&columns) {
            for (cell, &other) in line.iter_mut().zip(&columns) {
                *cell += row[one] * row[other];
            }
            line[size] += row[one];
        }
    }
    for place in 0..size {
        let whole = lines[place][place];
        let (above, below) = lines.split_at_mut(place + 1);
        let pivot = &above[place];
        for line in below {
            let factor = line[place] / whole;
            let diagonal = line.len();
            for column in place..diagonal {
                line[column] -= factor * pivot[column];
            }
        }
    }
    // What is left of a column that follows from others is no more than rounding.
    let mut squares = vec![0.0; size];
    for row in rows {
        for (square, &column) in squares.iter_mut().zip(&columns) {
            *square += row[column] * row[column];
        }
    }
    let mut found = [0.0; N];
    for place in (0..size).rev() {
        let pivot = lines[place][place];
        // Not a number is none either.
        if pivot.is_nan() || pivot <= 1e-10 * squares[place] {
            return None;
        }
        let known = columns.iter().enumerate().skip(place + 1);
        let known: f64 = known.map(|(other, &column)| lines[place][other] * found[column]).sum();
        found[columns[place]] = (lines[place][size] - known) / pivot;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::polynomial;

    fn near(found: f64, right: f64) -> bool {
        (found - right).abs() <= 1e-6 * right.abs().max(1.0)
    }

    #[test]
    fn it_finds_what_made_the_points() {
        let points = [1, 10, 100, 1000].map(|x: u64| (x, 7 + 5 * x + 2 * x * x));
        let [c, b, a] = polynomial::<3>(&points).unwrap();
        assert!(near(a, 2.0) && near(b, 5.0) && near(c, 7.0), "{a} {b} {c}");
    }

    #[test]
    fn no_coefficient_is_negative() {
        // A line through both would begin below 0.
        let [c, b] = polynomial::<2>(&[(10, 10), (20, 30)]).unwrap();
        assert_eq!(c, 0.0);
        assert!(b > 1.0 && b < 1.5, "{b}");
        let [c, b] = polynomial::<2>(&[(10, 30), (20, 10)]).unwrap();
        assert_eq!(b, 0.0);
        assert!(c > 10.0 && c < 30.0, "{c}");
    }

    #[test]
    fn points_that_say_little_are_enough() {
        assert_eq!(polynomial::<3>(&[]), None);
        let [c, b, a] = polynomial::<3>(&[(0, 5)]).unwrap();
        assert_eq!((a, b), (0.0, 0.0));
        assert!(near(c, 5.0));
        let [c, b, a] = polynomial::<3>(&[(4, 8), (4, 8)]).unwrap();
        assert!(near(16.0 * a + 4.0 * b + c, 8.0));
        assert!(polynomial::<2>(&[(0, 0), (u64::MAX, u64::MAX)]).is_some());
    }
}
