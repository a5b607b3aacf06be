//! The median of a few numbers, and between which of them that of all there could have been lies, whatever they are
//! distributed like.

/// A median and what it is known to lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Whether it lies there with 95 % at least; fewer than six numbers do not say so much, and then it is the lowest and
    /// the highest of them.
    pub(crate) known: bool,
}

/// What may be wrong on either side.
const TAIL: f64 = 0.025;

impl Interval {
    /// Of these numbers, of which there is one at least.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let cut = cut(count);
        let at = cut.unwrap_or(1) - 1;
        let median = crate::report::median(values.iter().copied());
        Self { median, low: values[at], high: values[count - 1 - at], known: cut.is_some() }
    }
}

/// The k for which the true median lies below the k-th number of `count` with 2.5 % at most, where there is one: it does
/// where fewer than k of them fell below it, each of which does with one half.
fn cut(count: usize) -> Option<usize> {
    let mut ways = 1.0;
    let mut below = 0.0;
    let all = 2f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    for k in 0..count {
        below += ways / all;
        if below > TAIL {
            return (k > 0).then_some(k);
        }
        ways *= (count - k) as f64 / (k + 1) as f64;
    }
    None
}
