//! A progress bar on a terminal; nothing elsewhere.

use std::io::{self, IsTerminal, Write};

/// Columns of the bar.
const WIDTH: usize = 40;

/// Counts steps and draws them on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    total: usize,
    done: usize,
    drawn: Option<usize>,
    terminal: bool,
}

impl Progress {
    pub fn new(total: usize) -> Self {
        Self { total, done: 0, drawn: None, terminal: io::stderr().is_terminal() }
    }

    pub fn step(&mut self) {
        self.done += 1;
        let filled = self.done * WIDTH / self.total.max(1);
        if self.terminal && self.drawn != Some(filled) {
            self.drawn = Some(filled);
            self.draw(&format!("\r[{:<WIDTH$}] {} of {}", "=".repeat(filled), self.done, self.total));
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if self.terminal {
            self.draw("\r\u{1b}[2K");
        }
    }

    /// A bar that cannot be drawn is not worth an error.
    fn draw(&self, line: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
    }
}
