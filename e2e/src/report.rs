//! Counts cases and prints one line for each, with what was sent and what came back when one failed.

#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    pub fn passed(&mut self, case: &str) {
        self.passed += 1;
        println!("ok     {case}");
    }

    pub fn failed(&mut self, case: &str, output: &str) {
        self.failed += 1;
        println!("FAILED {case}");
        for line in output.lines() {
            println!("       | {line}");
        }
    }

    pub fn case(&mut self, case: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed(case),
            Err(output) => self.failed(case, &output),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.passed + self.failed == 0
    }

    pub fn all_passed(&self) -> bool {
        self.failed == 0
    }

    pub fn failures(&self) -> usize {
        self.failed
    }

    pub fn closing_line(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_line_counts_both_kinds() {
        let mut report = Report::default();
        assert!(report.is_empty());
        report.passed("one");
        report.passed("two");
        report.failed("three", "why\nand how");
        assert_eq!(report.closing_line(), "2 passed, 1 failed");
        assert!(!report.all_passed());
        assert_eq!(report.failures(), 1);
    }
}
