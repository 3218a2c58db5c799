//! [`Lines`]: log lines on their way to standard error.
//!
//! Whoever reads standard error may stall: a full pipe, a disk under load. Written by the threads that answer requests, one
//! line would then hold up every request. So a thread of its own writes, and **a line that finds no room in its queue is
//! dropped and counted**. What waits at the end of the process is still written, within [`END_MAX`].

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

/// Most lines that wait. At some 300 bytes a line it is a few MiB, and seconds of the busiest log.
const WAITING_MAX: usize = 8192;
/// Most bytes that are written at once.
const PIECE_BYTES: usize = 64 * 1024;
/// How long the end of the process waits for whoever reads.
const END_MAX: Duration = Duration::from_secs(3);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines that found no room since the start.
pub(super) fn lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Takes lines and never waits.
#[derive(Clone)]
pub(super) struct Lines {
    queue: SyncSender<Box<[u8]>>,
    /// Lines that wait or are being written.
    waiting: Arc<AtomicU64>,
}

/// Writes what waits before it is gone. Held by the process until its end.
pub struct LastLines(Arc<AtomicU64>);

impl Lines {
    /// Starts the thread that writes.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<(Self, LastLines)> {
        let (queue, lines) = sync_channel(WAITING_MAX);
        let waiting = Arc::<AtomicU64>::default();
        let written = Arc::clone(&waiting);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(&lines, to, &written))?;
        let last = LastLines(Arc::clone(&waiting));
        Ok((Self { queue, waiting }, last))
    }
}

/// Writes until nobody logs any more; many lines at once where many wait.
fn write(lines: &Receiver<Box<[u8]>>, mut to: impl Write, waiting: &AtomicU64) {
    let mut piece = Vec::new();
    while let Ok(line) = lines.recv() {
        piece.clear();
        piece.extend_from_slice(&line);
        let mut count = 1;
        while piece.len() < PIECE_BYTES {
            let Ok(line) = lines.try_recv() else { break };
            piece.extend_from_slice(&line);
            count += 1;
        }
        // There is no other place to say that it failed.
        let _reader_is_gone = to.write_all(&piece).and_then(|()| to.flush());
        waiting.fetch_sub(count, Ordering::Release);
    }
}

impl Write for Lines {
    /// Takes all of it: the layer above gives one whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(line.into()).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl LastLines {
    /// Returns whether all was written in that time.
    fn wait(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while self.0.load(Ordering::Acquire) > 0 {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        self.wait(END_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// Takes nothing until it is opened.
    #[derive(Clone, Default)]
    struct Stalled(Arc<Reader>);

    #[derive(Default)]
    struct Reader {
        /// Whether it reads, and what it read.
        state: Mutex<(bool, Vec<u8>)>,
        opened: Condvar,
    }

    impl Stalled {
        fn open(&self) {
            self.0.state.lock().unwrap().0 = true;
            self.0.opened.notify_all();
        }

        fn lines(&self) -> Vec<String> {
            let state = self.0.state.lock().unwrap();
            String::from_utf8(state.1.clone()).unwrap().lines().map(str::to_owned).collect()
        }
    }

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state =
                self.0.opened.wait_while(self.0.state.lock().unwrap(), |(is_open, _)| !*is_open).unwrap();
            state.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn t_x19_a_reader_that_stalls_holds_up_nobody_and_loses_what_does_not_fit() {
        let stalled = Stalled::default();
        let (mut lines, last) = Lines::start(stalled.clone()).unwrap();
        for i in 0..20_000 {
            lines.write_all(format!("line {i}\n").as_bytes()).unwrap();
        }
        assert!(lines_dropped() >= 20_000 - 2 * WAITING_MAX as u64, "{}", lines_dropped());
        assert!(!last.wait(Duration::ZERO));
        stalled.open();
        assert!(last.wait(Duration::from_secs(60)));
        let written = stalled.lines();
        assert!((WAITING_MAX..=2 * WAITING_MAX).contains(&written.len()), "{}", written.len());
        // What waited is whole and in order; what was dropped may lie between, as the writer starts when it likes.
        let number = |line: &String| line.strip_prefix("line ").and_then(|n| n.parse::<u32>().ok());
        let numbers: Option<Vec<u32>> = written.iter().map(number).collect();
        assert!(numbers.is_some_and(|numbers| numbers.is_sorted_by(|a, b| a < b)));
    }

    #[test]
    fn the_end_of_the_process_does_not_wait_for_a_reader_who_never_comes() {
        let (mut lines, last) = Lines::start(Stalled::default()).unwrap();
        lines.write_all(b"a line\n").unwrap();
        let started = Instant::now();
        assert!(!last.wait(Duration::from_millis(20)));
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}
