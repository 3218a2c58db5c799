//! What was measured, as lines of a table, and whether it is what it must be.

use crate::stats::Runs;

/// The table as it grows.
pub struct Report {
    /// A short form: fewer runs, smaller loads, no verdict.
    pub is_quick: bool,
    missed: Vec<String>,
}

impl Report {
    pub fn new(is_quick: bool) -> Self {
        println!("| # | What | Measured | Must be |\n| --- | --- | --- | --- |");
        Self { is_quick, missed: Vec::new() }
    }

    /// Median and spread of some runs, and what the median may be at most.
    pub fn row(&mut self, id: &str, what: &str, unit: &str, runs: &Runs, most: Option<f64>) {
        let must = most.map_or(String::new(), |most| format!("at most {most} {unit}"));
        println!("| {id} | {what} | {runs:.2} {unit} | {must} |");
        self.verdict(id, what, most.is_none_or(|most| runs.median() <= most));
    }

    /// One line of words.
    pub fn line(&mut self, id: &str, what: &str, measured: &str, must: &str, holds: bool) {
        println!("| {id} | {what} | {measured} | {must} |");
        self.verdict(id, what, holds);
    }

    fn verdict(&mut self, id: &str, what: &str, holds: bool) {
        if !holds {
            self.missed.push(format!("{id}: {what}"));
        }
    }

    /// What was missed; nothing in the short form, whose figures mean nothing.
    pub fn missed(&self) -> &[String] {
        if self.is_quick { &[] } else { &self.missed }
    }
}
