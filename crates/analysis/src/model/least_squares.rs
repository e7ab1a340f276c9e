//! Least squares with non-negative coefficients, for few columns.

/// One equation: coefficients, value, and weight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Equation {
    pub(super) of: Vec<f64>,
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// The non-negative coefficients with the smallest error. Each coefficient after the first must reduce the error by
/// `price`, a share of the values themselves, so that noise is not fitted. Tries every set of columns: there are at
/// most 8.
pub(super) fn solve(equations: &[Equation], columns: usize, price: f64) -> Vec<f64> {
    debug_assert!(columns <= 8);
    // Gives large and small columns the same weight.
    let scale: Vec<f64> = (0..columns)
        .map(|c| equations.iter().map(|e| e.of[c].abs()).fold(0.0, f64::max))
        .collect();
    let all: f64 = equations.iter().map(|e| (e.value * e.weight).powi(2)).sum();
    let mut best = (all, vec![0.0; columns]);
    for set in 1u32..1 << columns {
        let chosen: Vec<usize> = (0..columns)
            .filter(|c| set & (1 << c) != 0 && scale[*c] > 0.0)
            .collect();
        if chosen.is_empty() || chosen.len() > equations.len() {
            continue;
        }
        let Some(x) = normal(equations, &chosen, &scale) else {
            continue;
        };
        if x.iter().any(|v| *v < 0.0) {
            continue;
        }
        let left: f64 = equations
            .iter()
            .map(|e| {
                let sum: f64 = chosen.iter().zip(&x).map(|(c, v)| e.of[*c] / scale[*c] * v).sum();
                ((sum - e.value) * e.weight).powi(2)
            })
            .sum();
        let cost = left + price * all * (chosen.len() - 1) as f64;
        if cost < best.0 {
            let mut full = vec![0.0; columns];
            for (c, v) in chosen.iter().zip(&x) {
                full[*c] = v / scale[*c];
            }
            best = (cost, full);
        }
    }
    best.1
}

/// Solves the normal equations by Gaussian elimination with pivoting; none if there is no unique solution.
fn normal(equations: &[Equation], chosen: &[usize], scale: &[f64]) -> Option<Vec<f64>> {
    let n = chosen.len();
    let mut a = vec![vec![0.0; n + 1]; n];
    for e in equations {
        let row: Vec<f64> = chosen.iter().map(|c| e.of[*c] / scale[*c] * e.weight).collect();
        for i in 0..n {
            for j in 0..n {
                a[i][j] += row[i] * row[j];
            }
            a[i][n] += row[i] * e.value * e.weight;
        }
    }
    let largest = (0..n).map(|i| a[i][i]).fold(0.0, f64::max);
    for i in 0..n {
        let pivot = (i..n).max_by(|p, q| a[*p][i].abs().total_cmp(&a[*q][i].abs()))?;
        a.swap(i, pivot);
        if a[i][i].abs() <= 1e-11 * largest {
            return None;
        }
        let top = a[i].clone();
        for row in a.iter_mut().skip(i + 1) {
            let factor = row[i] / top[i];
            for (to, from) in row.iter_mut().zip(&top).skip(i) {
                *to -= factor * from;
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let rest: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
        x[i] = (a[i][n] - rest) / a[i][i];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equation(of: &[f64], value: f64) -> Equation {
        Equation {
            of: of.to_vec(),
            value,
            weight: 1.0,
        }
    }

    #[test]
    fn coefficients_are_found_and_none_is_negative() {
        let e: Vec<_> = [1.0, 2.0, 5.0, 9.0]
            .map(|s| equation(&[1.0, s, s * s], 3.0 + 0.5 * s))
            .to_vec();
        let x = solve(&e, 3, 1e-6);
        assert!(
            (x[0] - 3.0).abs() < 1e-9 && (x[1] - 0.5).abs() < 1e-9 && x[2] == 0.0,
            "{x:?}"
        );
        let falling: Vec<_> = [1.0, 2.0, 3.0].map(|s| equation(&[1.0, s], 4.0 - s)).to_vec();
        let x = solve(&falling, 2, 1e-6);
        assert!(x[1] == 0.0 && (x[0] - 2.0).abs() < 1e-9, "{x:?}");
        assert_eq!(solve(&[], 3, 0.0), [0.0; 3]);
    }

    proptest! {
        #[test]
        fn coefficients_of_the_values_are_recovered(truth in prop::collection::vec(0.01f64..10.0, 3), rows in prop::collection::vec(prop::collection::vec(0.0f64..1e6, 3), 8..12)) {
            let e: Vec<_> = rows.iter().map(|r| equation(r, r.iter().zip(&truth).map(|(a, b)| a * b).sum())).collect();
            let x = solve(&e, 3, 0.0);
            for e in &e {
                let sum: f64 = e.of.iter().zip(&x).map(|(a, b)| a * b).sum();
                prop_assert!((sum - e.value).abs() <= 1e-4 * e.value.max(1.0), "{} for {}", sum, e.value);
            }
        }
    }
}
