//! One line a finding, and whether all is well.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most lines of one kind of failure.
const SHOWN_MAX: usize = 10;

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    failures: AtomicUsize,
    shown: Mutex<std::collections::HashMap<String, usize>>,
}

impl Report {
    /// Something that was measured.
    pub fn figure(&self, name: &str, value: impl std::fmt::Display) {
        println!("       {name}: {value}");
    }

    /// Something that must hold.
    pub fn must(&self, what: &str, holds: bool, seen: impl std::fmt::Display) {
        if holds {
            println!("ok     {what}: {seen}");
        } else {
            self.fail(what, seen);
        }
    }

    /// Something that went wrong. Only the first few of a kind are told.
    pub fn fail(&self, kind: &str, seen: impl std::fmt::Display) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = shown.entry(kind.to_owned()).or_default();
        *count += 1;
        if *count <= SHOWN_MAX {
            println!("FAILED {kind}: {seen}");
        }
    }

    /// How much went wrong.
    pub fn failures(&self) -> usize {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Times in the order of their length.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<std::time::Duration>);

impl Times {
    pub fn add(&mut self, took: std::time::Duration) {
        self.0.push(took);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a thousand do not exceed; zero without any.
    pub fn quantile(&mut self, permille: usize) -> std::time::Duration {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        self.0.get(last * permille / 1000).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn quantiles_are_of_what_was_added() {
        let mut times = Times::default();
        (1..=100).rev().for_each(|ms| times.add(Duration::from_millis(ms)));
        assert_eq!(times.quantile(500), Duration::from_millis(50));
        assert_eq!(times.quantile(1000), Duration::from_millis(100));
        assert_eq!(Times::default().quantile(990), Duration::ZERO);
    }

    #[test]
    fn failures_are_counted() {
        let report = Report::default();
        report.must("a", true, 1);
        report.must("b", false, 2);
        assert_eq!(report.failures(), 1);
    }
}
