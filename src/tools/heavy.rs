//! [`Heavy`]: work that would hold up everybody else if it ran where requests are answered.

use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Runs work of more than about a millisecond on threads of its own, as much at once as there are processors.
pub(super) struct Heavy(Arc<Semaphore>);

impl Heavy {
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self(Arc::new(Semaphore::new(processors)))
    }

    /// The work's outcome; `None` when it panicked. It is not stopped when nobody waits for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let work = move || {
            let _held_to_the_end = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t_x20_the_thread_that_answers_requests_goes_on_while_heavy_work_runs() {
        let heavy = Heavy::new();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let working = heavy.run(move || released.recv().is_ok());
        let answering = async {
            tokio::task::yield_now().await;
            release.send(()).unwrap();
        };
        let (done, ()) = tokio::join!(working, answering);
        assert_eq!(done, Some(true));
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_place_back() {
        let heavy = Heavy(Arc::new(Semaphore::new(1)));
        assert_eq!(heavy.run(|| -> u8 { panic!("on purpose") }).await, None);
        assert_eq!(heavy.run(|| 1).await, Some(1));
    }
}
