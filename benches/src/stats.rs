//! Medians, quartiles, quotients and histograms.

use hdrhistogram::Histogram;

/// The value below which this share of the values lies.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The quotient of two cases, round by round.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// The median of the rounds' quotients.
    pub median: f64,
    /// Their lower quartile.
    pub low: f64,
    /// Their upper quartile.
    pub high: f64,
    /// The quotient of the two smallest figures: for times that of the two least disturbed slices.
    pub of_minima: f64,
}

impl Ratio {
    /// The quotients of figures that were measured in the same rounds.
    pub fn new(over: &[f64], under: &[f64]) -> Self {
        let quotients: Vec<_> = over.iter().zip(under).map(|(a, b)| a / b).collect();
        Self {
            median: median(&quotients),
            low: quantile(&quotients, 0.25),
            high: quantile(&quotients, 0.75),
            of_minima: quantile(over, 0.0) / quantile(under, 0.0),
        }
    }

    /// A quotient that is counted, not timed.
    pub fn exact(value: f64) -> Self {
        Self {
            median: value,
            low: value,
            high: value,
            of_minima: value,
        }
    }
}

/// A histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds")
}
