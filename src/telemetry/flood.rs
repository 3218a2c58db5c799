//! [`FloodLimit`]: keeps a fault that comes a thousand times from writing a thousand lines.
//!
//! Each warning or error of the program, told apart by its place in the code, may be written ten times in a row and then
//! once a second. What was left out is counted. Lines of `info` and below are not limited: there is one a request, by
//! design.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

const BURST: u32 = 10;
const EVERY: Duration = Duration::from_secs(1);

static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Warnings and errors left out since the start.
pub(super) fn lines_left_out() -> u64 {
    LEFT_OUT.load(Ordering::Relaxed)
}

/// A filter over all warnings and errors.
#[derive(Default)]
pub(super) struct FloodLimit(Mutex<HashMap<Identifier, Bucket>>);

/// How many more lines of one place may be written now.
struct Bucket {
    left: u32,
    filled_at: Instant,
}

impl Bucket {
    fn full(now: Instant) -> Self {
        Self { left: BURST, filled_at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs();
        if elapsed > 0 {
            let more = u32::try_from(elapsed).unwrap_or(BURST);
            self.left = self.left.saturating_add(more).min(BURST);
            self.filled_at += EVERY * more.min(BURST);
            if self.left == BURST {
                self.filled_at = now;
            }
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

impl<S> Filter<S> for FloodLimit {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        let now = Instant::now();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(metadata.callsite()).or_insert_with(|| Bucket::full(now));
        let may = bucket.take(now);
        if !may {
            LEFT_OUT.fetch_add(1, Ordering::Relaxed);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_x19_ten_lines_in_a_row_and_then_one_a_second() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        let taken = |bucket: &mut Bucket, at: Duration| (0..100).filter(|_| bucket.take(start + at)).count();
        assert_eq!(taken(&mut bucket, Duration::ZERO), 10);
        assert_eq!(taken(&mut bucket, Duration::from_millis(999)), 0);
        assert_eq!(taken(&mut bucket, Duration::from_millis(1_000)), 1);
        assert_eq!(taken(&mut bucket, Duration::from_millis(1_999)), 0);
        assert_eq!(taken(&mut bucket, Duration::from_millis(4_500)), 3);
        assert_eq!(taken(&mut bucket, Duration::from_secs(1_000_000)), 10);
    }

    #[test]
    fn t_x19_a_hundred_thousand_failures_write_a_hundred_lines_at_most() {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::{Layer, fmt};
        let lines = Counter::default();
        let writer = lines.clone();
        let layer = fmt::layer().with_writer(move || writer.clone()).with_filter(FloodLimit::default());
        let limited = tracing_subscriber::registry().with(layer);
        let before = lines_left_out();
        tracing::subscriber::with_default(limited, || {
            for _ in 0..100_000 {
                tracing::warn!("the same fault");
            }
            tracing::warn!("another fault");
            for _ in 0..50 {
                tracing::info!("a request");
            }
        });
        let written = lines.lines();
        assert!((10 + 1 + 50..=100 + 1 + 50).contains(&written), "{written}");
        assert_eq!(lines_left_out() - before, 100_051 - written as u64);
    }

    /// Counts what is written into it.
    #[derive(Clone, Default)]
    struct Counter(std::sync::Arc<AtomicU64>);

    impl Counter {
        fn lines(&self) -> usize {
            usize::try_from(self.0.load(Ordering::Relaxed)).unwrap()
        }
    }

    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            self.0.fetch_add(lines as u64, Ordering::Relaxed);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
