//! [`Progress`]: how far a download is, for people.
//!
//! A bar on a terminal; plain lines, few of them, where the output is kept.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::time::Instant;

const BAR_WIDTH: usize = 24;

/// A bar that changes more often than this can't be read.
const REDRAW: Duration = Duration::from_millis(100);

/// Without a terminal, a line each time so much more has come.
const LINE_PERCENT: u64 = 10;
const LINE_BYTES: u64 = 64 << 20;

pub(super) struct Progress {
    out: Box<dyn Write + Send>,
    is_terminal: bool,
    name: String,
    total: Option<u64>,
    /// Where this run began, for the speed.
    began: (Instant, u64),
    drawn: Option<Instant>,
    /// The step of the last line.
    step: u64,
}

impl Progress {
    pub fn on_stderr() -> Self {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Self::new(Box::new(stderr), is_terminal)
    }

    fn new(out: Box<dyn Write + Send>, is_terminal: bool) -> Self {
        let began = (Instant::now(), 0);
        Self { out, is_terminal, name: String::new(), total: None, began, drawn: None, step: 0 }
    }

    /// A file of which `done` bytes are there already.
    pub fn start(&mut self, name: &str, total: Option<u64>, done: u64) {
        name.clone_into(&mut self.name);
        self.total = total;
        self.began = (Instant::now(), done);
        self.drawn = None;
        self.step = self.step_of(done);
        if !self.is_terminal {
            let size = total.map_or_else(String::new, |total| format!(" of {}", megabytes(total)));
            let from = if done > 0 { format!(", going on at {}", megabytes(done)) } else { String::new() };
            self.write(&format!("{name}: downloading{size}{from}\n"));
        }
    }

    pub fn advance(&mut self, done: u64) {
        if self.is_terminal {
            if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
                self.draw(done);
            }
        } else if self.step_of(done) > self.step {
            self.step = self.step_of(done);
            let line = match self.total {
                Some(total) => {
                    format!("{}: {}% of {}\n", self.name, percent(done, total), megabytes(total))
                }
                None => format!("{}: {}\n", self.name, megabytes(done)),
            };
            self.write(&line);
        }
    }

    /// The file has come to its end.
    pub fn finish(&mut self, done: u64) {
        if self.is_terminal {
            self.draw(done);
            self.write("\n");
            self.drawn = None;
        }
    }

    /// A line that stays.
    pub fn note(&mut self, text: &str) {
        let start = if self.drawn.take().is_some() { "\r\x1b[K" } else { "" };
        self.write(&format!("{start}{text}\n"));
    }

    fn step_of(&self, done: u64) -> u64 {
        self.total.map_or(done / LINE_BYTES, |total| percent(done, total) / LINE_PERCENT)
    }

    fn draw(&mut self, done: u64) {
        let seconds = self.began.0.elapsed().as_secs_f64().max(0.001);
        let speed = (done - self.began.1.min(done)) as f64 / seconds;
        let mut line = format!("\r\x1b[K{:<18}", self.name);
        if let Some(total) = self.total {
            let filled = (percent(done, total) as usize * BAR_WIDTH / 100).min(BAR_WIDTH);
            line += &format!(
                " [{}{}] {:>3}%",
                "#".repeat(filled),
                "-".repeat(BAR_WIDTH - filled),
                percent(done, total)
            );
            if done < total && speed >= 1.0 {
                let left = ((total - done) as f64 / speed) as u64;
                line += &format!(" {}:{:02} left", left / 60, left % 60);
            }
        }
        line += &format!(" {} at {}/s", megabytes(done), megabytes(speed as u64));
        self.write(&line);
        self.drawn = Some(Instant::now());
    }

    /// Nobody may be looking, and a download goes on without.
    fn write(&mut self, text: &str) {
        let _nobody_looks = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

fn percent(done: u64, total: u64) -> u64 {
    done.saturating_mul(100).checked_div(total).unwrap_or(100).min(100)
}

pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn run(is_terminal: bool) -> String {
        let page = Page::default();
        let mut progress = Progress::new(Box::new(page.clone()), is_terminal);
        progress.start("model.safetensors", Some(1_000_000), 250_000);
        for done in (250_000..=1_000_000).step_by(1_000) {
            progress.advance(done);
        }
        progress.finish(1_000_000);
        progress.note("done");
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn without_a_terminal_there_are_few_lines_and_no_control_characters() {
        let page = run(false);
        assert!(page.starts_with("model.safetensors: downloading of 1.0 MB, going on at 0.2 MB\n"), "{page}");
        assert!(page.contains("model.safetensors: 30% of 1.0 MB\n") && page.ends_with("done\n"), "{page}");
        assert!(page.lines().count() == 10 && !page.contains(['\r', '\x1b']), "{page}");
    }

    #[test]
    fn on_a_terminal_there_is_a_bar_that_ends_full() {
        let page = run(true);
        assert!(page.contains("[########################] 100%") && page.ends_with("\ndone\n"), "{page:?}");
    }
}
