//! [`Lines`]: log lines on their way to standard error.
//!
//! Whoever reads standard error may stall: a full pipe, a disk under load. Written by the threads that answer requests, one
//! line would then hold up every request. So a thread of its own writes, and **a line that finds no room is dropped and
//! counted**. The thread lets lines come together before it writes: to wake it for each costs more than the line itself.
//! What waits at the end of the process is still written, within [`END_MAX`].

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

/// Most bytes that wait, and most that are being written: some 15,000 lines, a second of the busiest log.
const WAITING_BYTES_MAX: usize = 2 << 20;
/// How long lines come together after the first.
const GATHER: Duration = Duration::from_millis(5);
/// How long the end of the process waits for whoever reads.
const END_MAX: Duration = Duration::from_secs(3);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines that found no room or could not be written since the start.
pub(super) fn lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Takes lines and never waits.
pub(super) struct Lines(Arc<Queue>);

/// Writes what waits before it is gone. Held by the process until its end.
pub struct LastLines(Arc<Queue>);

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Whether lines are being written that do not wait any more.
    is_writing: bool,
    /// Whether the thread sleeps until a line comes.
    is_idle: bool,
}

impl Lines {
    /// Starts the thread that writes.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<(Self, LastLines)> {
        let queue = Arc::<Queue>::default();
        let written = Arc::clone(&queue);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || written.write_all_to(to))?;
        Ok((Self(Arc::clone(&queue)), LastLines(queue)))
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes for ever.
    fn write_all_to(&self, mut to: impl Write) {
        let mut piece = Vec::new();
        let mut is_torn = false;
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() {
                state.is_idle = true;
                state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            std::thread::sleep(GATHER);
            let mut state = self.state();
            std::mem::swap(&mut state.waiting, &mut piece);
            state.is_writing = true;
            drop(state);
            DROPPED.fetch_add(write_lines(&mut to, &piece, &mut is_torn), Ordering::Relaxed);
            piece.clear();
            self.state().is_writing = false;
        }
    }

    fn is_written(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && !state.is_writing
    }
}

/// Writes lines as far as they can be written, and returns how many were lost. After a line of which only a part was written,
/// the next one begins on a line of its own.
fn write_lines(to: &mut impl Write, lines: &[u8], is_torn: &mut bool) -> u64 {
    if *is_torn && write_some(to, b"\n") == 1 {
        *is_torn = false;
    }
    let written = if *is_torn { 0 } else { write_some(to, lines) };
    if written > 0 {
        *is_torn = lines[written - 1] != b'\n';
    }
    lines[written..].iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Returns how many bytes were written before the first failure. Waits for who reads slowly, and tries no second time
/// otherwise: there is no other place to say that it failed.
fn write_some(to: &mut impl Write, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match to.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(GATHER),
            Err(_) => break,
        }
    }
    written
}

impl Write for &Queue {
    /// Takes all of it: the layer above gives one whole line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if state.waiting.len() + line.len() > WAITING_BYTES_MAX {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return Ok(line.len());
        }
        state.waiting.extend_from_slice(line);
        let was_idle = std::mem::take(&mut state.is_idle);
        drop(state);
        if was_idle {
            self.came.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Queue;

    fn make_writer(&'a self) -> Self::Writer {
        &self.0
    }
}

impl LastLines {
    /// Returns whether all was written in that time.
    fn wait(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while !self.0.is_written() {
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
        let (lines, last) = Lines::start(stalled.clone()).unwrap();
        let line = |i: u32| format!("line {i} {}\n", "x".repeat(1_000 - format!("line {i} \n").len()));
        for i in 0..10_000 {
            lines.make_writer().write_all(line(i).as_bytes()).unwrap();
        }
        let room = WAITING_BYTES_MAX / 1_000;
        assert!(lines_dropped() >= 10_000 - 2 * room as u64, "{}", lines_dropped());
        assert!(!last.wait(Duration::ZERO));
        stalled.open();
        assert!(last.wait(Duration::from_secs(60)));
        let written = stalled.lines();
        assert!((room..=2 * room).contains(&written.len()), "{}", written.len());
        // What waited is whole and in order; what was dropped may lie between, as the writer starts when it likes.
        let number = |text: &String| {
            let number = text.split(' ').nth(1)?.parse::<u32>().ok()?;
            (line(number).trim_end() == text).then_some(number)
        };
        let numbers: Option<Vec<u32>> = written.iter().map(number).collect();
        assert!(numbers.is_some_and(|numbers| numbers.is_sorted_by(|a, b| a < b)));
    }

    #[test]
    fn the_end_of_the_process_does_not_wait_for_a_reader_who_never_comes() {
        let (lines, last) = Lines::start(Stalled::default()).unwrap();
        lines.make_writer().write_all(b"a line\n").unwrap();
        let started = Instant::now();
        assert!(!last.wait(Duration::from_millis(20)));
        assert!(started.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_line_after_a_silence_is_written_too() {
        let reader = Stalled::default();
        reader.open();
        let (lines, last) = Lines::start(reader.clone()).unwrap();
        for i in 1..=3 {
            lines.make_writer().write_all(b"a line\n").unwrap();
            assert!(last.wait(Duration::from_secs(60)));
            assert_eq!(reader.lines().len(), i);
            std::thread::sleep(3 * GATHER);
        }
    }

    /// Takes so many bytes, then fails; and where it is slow, every other time with "not now".
    struct Full {
        room: usize,
        taken: Vec<u8>,
        is_slow: bool,
        calls: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.is_slow && self.calls.is_multiple_of(2) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room).min(7);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn t_x19_lines_that_can_not_be_written_are_counted_and_the_next_begins_anew() {
        let mut disk = Full { room: 12, taken: Vec::new(), is_slow: true, calls: 0 };
        let mut is_torn = false;
        assert_eq!(write_lines(&mut disk, b"line 1\nline 2\nline 3\n", &mut is_torn), 2);
        assert_eq!(write_lines(&mut disk, b"line 4\n", &mut is_torn), 1);
        disk.room = 100;
        assert_eq!(write_lines(&mut disk, b"line 5\nline 6\n", &mut is_torn), 0);
        assert_eq!(String::from_utf8_lossy(&disk.taken), "line 1\nline \nline 5\nline 6\n");
    }
}
