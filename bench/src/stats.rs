//! Numbers of several runs, as a median with its spread.

use std::fmt;
use std::time::Duration;

/// Measurements of one thing.
#[derive(Debug, Clone, Default)]
pub struct Runs(Vec<f64>);

impl Runs {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// At a share of the sorted runs, from 0 to 1; 0 without any.
    pub fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }

    pub fn median(&self) -> f64 {
        self.at(0.5)
    }
}

impl FromIterator<f64> for Runs {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// `median (least to most)`.
impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median(), self.at(0.0), self.at(1.0))
    }
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_between_the_extremes() {
        let runs: Runs = [3.0, 1.0, 2.0, 9.0, 4.0].into_iter().collect();
        assert_eq!(format!("{runs}"), "3.0 (1.0 to 9.0)");
        assert_eq!(Runs::default().median(), 0.0);
    }
}
