//! A logarithmic axis: where a value stands on it, and which values are written beside it.

/// From the smallest value to the largest, and from where to where on the paper.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that reaches from a round value below all of these to one above. Values that are not above 0 have no
    /// place on it and are left out of account; without any it reaches from 1 to 10.
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let (low, high) = (round_below(low / 1.1), round_above(high * 1.1));
        Self { low, high, from, to }
    }

    /// Where a value stands.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.min(1.0) * (self.to - self.from)
    }

    /// The values that are written beside it: 1, 2 and 5 of each power of ten, or only 1 where there are many powers.
    pub fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.high / self.low > 3_000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let mut ticks = Vec::new();
        for power in self.low.log10().floor() as i32..=self.high.log10().ceil() as i32 {
            let values = steps.iter().map(|step| step * 10_f64.powi(power));
            // A value on the edge may be a hair beyond it.
            ticks.extend(values.filter(|value| (self.low * 0.999..=self.high * 1.001).contains(value)));
        }
        ticks
    }
}

fn round_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().find(|step| step * power <= value).unwrap_or(1.0) * power
}

fn round_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= value).unwrap_or(10.0) * power
}

/// A number beside an axis, short: 20k, 1.5M.
pub fn short(value: f64) -> String {
    let trimmed = |value: f64| {
        let digits = if value >= 100.0 { 0 } else { 2 };
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    };
    match value {
        value if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    }
}

/// A time that is given in microseconds, with its unit.
pub fn time(microseconds: f64) -> String {
    match microseconds {
        us if us >= 1e6 => format!("{} s", short(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", short(us / 1e3)),
        us => format!("{} µs", short(us)),
    }
}
