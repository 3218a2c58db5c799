//! [`Budget`]: how much memory may be taken for what upstreams list, as the operator said, and who gives way when it is
//! full.
//!
//! Held against one bound are three things:
//!
//! - what is **kept**: tools and catalogues, each with a [`Weight`] for as long as it lives;
//! - what is being **read**: bodies of listings, each with a [`Place`] from its first byte until nothing of it is needed;
//! - what is **unknown**: what the process takes beyond both, and beyond what it took when it started, by the operating
//!   system's word. A count is never all (allocators round and leave gaps, buffers and remembered words are nobody's), so
//!   it is measured. It counts for three quarters of the bound at most: other work must not leave a cache of nothing.
//!
//! When what is unknown grows, freed memory is given back to the operating system; when all of it is over the bound, whoever
//! keeps catalogues is told to drop some. Reading has a bound of its own, a quarter: who wants more waits. One [`Reader`], the
//! leader, may go beyond, so that readers who each hold a part of a listing never wait for one another; and small readers
//! may take a little more together, so that they need not wait for one that stalls.
//!
//! Deliberately not here: which catalogue goes (`catalog`), and the limits of a single listing (`upstream`).

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

/// What part of the bound bodies may take while they are read.
const READING_SHARE: usize = 4;

/// What part of the bound small readers may take beyond that one, and how small they are: whoever stalls in the middle of a
/// large listing must not keep those waiting who list a few tools.
const SPARE_SHARE: usize = 16;
const SMALL_SHARE: usize = 128;

/// What part of the bound is left for what is counted, whatever else the process takes.
const COUNTED_SHARE: usize = 4;

/// What part of the bound is left free in a process that is looked at, for what comes between two looks.
const FREE_SHARE: usize = 16;

/// By what part of the bound, and at least by how many bytes, what is unknown must have grown for it to be worth while to
/// give freed memory back.
const FREED_SHARE: usize = 32;
const FREED_BYTES_MIN: usize = 1 << 20;

type Resident = Box<dyn Fn() -> Option<usize> + Send + Sync>;
type Act = Box<dyn Fn() + Send + Sync>;
type GiveWay = Box<dyn Fn(usize) + Send + Sync>;

/// One bound for all.
pub struct Budget {
    bytes_max: usize,
    kept: AtomicUsize,
    unknown: AtomicUsize,
    /// The least that was unknown since freed memory was given back last.
    settled: AtomicUsize,
    reading: Mutex<Reading>,
    /// Told when there may be room to read.
    left: Notify,
    process: OnceLock<Process>,
    give_way: OnceLock<GiveWay>,
}

/// Those who read.
#[derive(Default)]
struct Reading {
    bytes: usize,
    /// What small readers took beyond the bound.
    spare: usize,
    next: u64,
    /// The reader that may go beyond the bound.
    leader: Option<u64>,
}

/// What the operating system says of the process.
struct Process {
    resident: Resident,
    give_back: Act,
    /// When nothing was listed yet.
    at_start: usize,
}

/// Bytes that are kept: counted until this is dropped.
pub struct Weight {
    bytes: usize,
    budget: Arc<Budget>,
}

/// Somebody who reads a listing, in any number of bodies. A leader stays one until nothing of it is needed.
#[derive(Clone)]
pub struct Reader(Arc<Numbered>);

struct Numbered {
    budget: Arc<Budget>,
    number: u64,
    /// Bytes of all its places.
    bytes: AtomicUsize,
    /// What it took beyond the bound as a small reader.
    spare: AtomicUsize,
}

/// Bytes that are being read: counted until this is dropped.
pub struct Place {
    reader: Reader,
    bytes: usize,
}

impl Budget {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            kept: AtomicUsize::new(0),
            unknown: AtomicUsize::new(0),
            settled: AtomicUsize::new(0),
            reading: Mutex::default(),
            left: Notify::new(),
            process: OnceLock::new(),
            give_way: OnceLock::new(),
        })
    }

    /// Looks at the process's memory from now on, and gives freed memory back; what it takes now is not counted. For the one
    /// budget of a process.
    pub fn watch(
        &self,
        resident: impl Fn() -> Option<usize> + Send + Sync + 'static,
        give_back: impl Fn() + Send + Sync + 'static,
    ) {
        if let Some(at_start) = resident() {
            let (resident, give_back) = (Box::new(resident), Box::new(give_back));
            let _is_watched_already = self.process.set(Process { resident, give_back, at_start });
        }
    }

    /// Calls this whenever there would be too much with so many bytes more. It may be called from anywhere, and must not
    /// wait.
    pub fn when_over(&self, give_way: impl Fn(usize) + Send + Sync + 'static) {
        let _is_set_already = self.give_way.set(Box::new(give_way));
    }

    /// The bound.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes that are kept or being read.
    pub fn counted(&self) -> usize {
        self.kept.load(Ordering::Relaxed) + self.reading().bytes
    }

    /// Whether there would be too much with so many bytes more, as far as it was looked at.
    pub fn is_over_with(&self, bytes: usize) -> bool {
        let free = self.process.get().map_or(0, |_| self.bytes_max / FREE_SHARE);
        let unknown =
            self.unknown.load(Ordering::Relaxed).min(self.bytes_max - self.bytes_max / COUNTED_SHARE);
        self.counted().saturating_add(unknown + free).saturating_add(bytes) > self.bytes_max
    }

    /// Counts bytes for as long as the weight lives.
    pub fn weigh(self: &Arc<Self>, bytes: usize) -> Weight {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
        Weight { bytes, budget: Arc::clone(self) }
    }

    /// Somebody who will read a listing.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let mut reading = self.reading();
        let number = reading.next;
        reading.next += 1;
        Reader(Arc::new(Numbered {
            budget: Arc::clone(self),
            number,
            bytes: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
        }))
    }

    /// Looks at the process. Freed memory is given back where that is worth while, and if there is too much all the same,
    /// catalogues give way.
    ///
    /// # Cost
    /// Some microseconds, for a look at `/proc`; more when there is too much.
    pub fn relieve(&self) {
        self.relieve_for(0);
    }

    /// The same before so many bytes are taken.
    pub fn relieve_for(&self, bytes: usize) {
        let unknown = self.look();
        let settled = self.settled.fetch_min(unknown, Ordering::Relaxed);
        if unknown - settled.min(unknown) > (self.bytes_max / FREED_SHARE).max(FREED_BYTES_MIN) {
            self.give_back();
            self.settled.store(self.look(), Ordering::Relaxed);
        }
        if self.is_over_with(bytes)
            && let Some(give_way) = self.give_way.get()
        {
            give_way(bytes);
        }
    }

    /// Gives freed memory back, whether there is too much or not.
    pub fn give_back(&self) {
        if let Some(process) = self.process.get() {
            (process.give_back)();
        }
    }

    /// What is unknown now.
    fn look(&self) -> usize {
        let known = |process: &Process| process.at_start.saturating_add(self.counted());
        let resident = self.process.get().and_then(|process| Some(((process.resident)()?, process)));
        if let Some((resident, process)) = resident {
            self.unknown.store(resident.saturating_sub(known(process)), Ordering::Relaxed);
        }
        self.unknown.load(Ordering::Relaxed)
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Weight {
    /// More that is kept under the same budget.
    pub fn beside(&self, bytes: usize) -> Self {
        self.budget.weigh(bytes)
    }

    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Reader {
    /// For one body.
    pub fn place(&self) -> Place {
        Place { reader: self.clone(), bytes: 0 }
    }
}

impl Place {
    /// Waits until there is room for so many bytes more, and takes it.
    pub async fn grow(&mut self, bytes: usize) {
        let budget = Arc::clone(&self.reader.0.budget);
        loop {
            let mut left = pin!(budget.left.notified());
            // Before looking: who leaves in between is not missed.
            left.as_mut().enable();
            if self.has_grown(bytes) {
                break;
            }
            left.await;
        }
        budget.relieve();
    }

    /// Takes room that there is, or that a small reader or a leader may take.
    fn has_grown(&mut self, bytes: usize) -> bool {
        let reader = &*self.reader.0;
        let bytes_max = reader.budget.bytes_max;
        let mut reading = reader.budget.reading();
        let own = reader.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if reading.bytes.saturating_add(bytes) > bytes_max / READING_SHARE {
            let is_small = own <= bytes_max / SMALL_SHARE;
            if is_small && reading.spare + bytes <= bytes_max / SPARE_SHARE {
                reading.spare += bytes;
                reader.spare.fetch_add(bytes, Ordering::Relaxed);
            } else if *reading.leader.get_or_insert(reader.number) != reader.number {
                return false;
            }
        }
        reader.bytes.store(own, Ordering::Relaxed);
        reading.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// A place for a part of what was read; the rest stays here.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { reader: self.reader.clone(), bytes }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let reader = &*self.reader.0;
        reader.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        reader.budget.reading().bytes -= self.bytes;
        reader.budget.left.notify_waiters();
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        let spare = *self.spare.get_mut();
        let mut reading = self.budget.reading();
        let was_leader = reading.leader == Some(self.number);
        if was_leader {
            reading.leader = None;
        }
        reading.spare -= spare;
        drop(reading);
        if was_leader || spare > 0 {
            self.budget.left.notify_waiters();
        }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.budget.kept.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What a piece of so many bytes takes on the heap: allocators have few sizes, and hand out the next larger one.
///
/// Sizes are those of jemalloc, four for each power of two; large pieces are whole pages, of which only those that are
/// touched take memory.
pub const fn on_heap(bytes: usize) -> usize {
    const PAGE: usize = 4096;
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        129..=16_384 => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
        _ => bytes.next_multiple_of(PAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn what_is_kept_and_what_is_read_count_together() {
        let budget = Budget::new(100);
        let weight = budget.weigh(60);
        let mut place = budget.reader().place();
        place.grow(25).now_or_never().unwrap();
        assert_eq!(budget.counted(), 85);
        assert!(!budget.is_over_with(15) && budget.is_over_with(16));
        let part = place.split(20);
        drop(place);
        assert_eq!(budget.counted(), 80);
        drop((weight, part));
        assert_eq!(budget.counted(), 0);
    }

    #[tokio::test]
    async fn t_x12_small_readers_do_not_wait_for_a_large_one_that_stalls() {
        let budget = Budget::new(12_800);
        let mut stalled = budget.reader().place();
        stalled.grow(5_000).await;
        let small = budget.reader();
        let (mut one, mut other) = (small.place(), small.place());
        one.grow(60).now_or_never().unwrap();
        other.grow(40).now_or_never().unwrap();
        // A hundred and twenty-eighth of the bound for each of them, a sixteenth for all.
        assert!(other.grow(1).now_or_never().is_none());
        let more: Vec<Place> = (0..7)
            .map(|_| {
                let mut place = budget.reader().place();
                place.grow(100).now_or_never().unwrap();
                place
            })
            .collect();
        let mut last = budget.reader().place();
        assert!(last.grow(1).now_or_never().is_none());
        drop((one, other, small));
        last.grow(100).now_or_never().unwrap();
        drop((more, last, stalled));
        assert_eq!((budget.counted(), budget.reading().spare), (0, 0));
    }

    #[tokio::test]
    async fn t_x12_reading_waits_at_a_quarter_of_the_bound_and_one_reader_may_go_beyond() {
        let budget = Budget::new(400);
        let (reader, leader) = (budget.reader(), budget.reader());
        let (mut one, mut other) = (reader.place(), leader.place());
        one.grow(50).await;
        // At the bound, and one past it. Each holds a part; the first that wants more becomes the leader.
        other.grow(50).await;
        other.grow(1).await;
        assert!(one.grow(1).now_or_never().is_none());
        other.grow(500).await;
        assert!(one.grow(1).now_or_never().is_none());
        // In another body too, and until nothing of it is needed.
        drop(other);
        let mut other = leader.place();
        other.grow(300).await;
        let waiting = tokio::spawn(async move {
            one.grow(51).await;
            one
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(leader);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        drop(waiting.await.unwrap());
        assert_eq!(budget.counted(), 0);
    }

    #[test]
    fn a_reader_that_gives_up_while_it_waits_holds_nothing() {
        let budget = Budget::new(40);
        let (mut leader, mut other) = (budget.reader().place(), budget.reader().place());
        leader.grow(20).now_or_never().unwrap();
        assert!(other.grow(1).now_or_never().is_none());
        drop(other);
        drop(leader);
        assert_eq!(budget.counted(), 0);
        assert!(budget.reader().place().grow(10).now_or_never().is_some());
    }

    #[test]
    fn what_nobody_counts_is_measured_up_to_three_quarters_of_the_bound() {
        let resident = Arc::new(AtomicUsize::new(1_000));
        let budget = Budget::new(100);
        let seen = Arc::clone(&resident);
        budget.watch(move || Some(seen.load(Ordering::Relaxed)), || {});
        let weight = budget.weigh(30);
        resident.store(1_050, Ordering::Relaxed);
        budget.relieve();
        // 50 more than at the start, 30 of them known; 6 are left free.
        assert!(!budget.is_over_with(44) && budget.is_over_with(45));
        resident.store(9_000, Ordering::Relaxed);
        budget.relieve();
        assert!(budget.is_over_with(0));
        drop(weight);
        assert!(!budget.is_over_with(19) && budget.is_over_with(20));
        resident.store(900, Ordering::Relaxed);
        budget.relieve();
        assert!(!budget.is_over_with(94) && budget.is_over_with(95));
    }

    #[test]
    fn freed_memory_is_given_back_when_enough_came_together_and_before_anything_gives_way() {
        const MIB: usize = 1 << 20;
        let resident = Arc::new(AtomicUsize::new(0));
        let budget = Budget::new(64 * MIB);
        let (seen, freed) = (Arc::clone(&resident), Arc::clone(&resident));
        budget.watch(
            move || Some(seen.load(Ordering::Relaxed)),
            move || freed.store(50 * MIB, Ordering::Relaxed),
        );
        budget.when_over(|_| panic!("there was room"));
        let _weight = budget.weigh(50 * MIB);
        let is_given_back_at = |bytes| {
            resident.store(bytes, Ordering::Relaxed);
            budget.relieve();
            resident.load(Ordering::Relaxed) != bytes
        };
        assert!(!is_given_back_at(52 * MIB));
        assert!(is_given_back_at(52 * MIB + 1));
        assert!(is_given_back_at(70 * MIB));
        // A sixteenth is left free.
        assert!(!budget.is_over_with(10 * MIB) && budget.is_over_with(10 * MIB + 1));
    }

    #[test]
    fn whoever_keeps_is_told_only_when_there_is_too_much() {
        let (budget, told) = (Budget::new(100), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&told);
        budget.when_over(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let _at_the_bound = budget.weigh(100);
        budget.relieve();
        assert_eq!(told.load(Ordering::Relaxed), 0);
        let _one_past_it = budget.weigh(1);
        budget.relieve();
        assert_eq!(told.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn pieces_take_the_next_size_that_allocators_have() {
        for (bytes, taken) in [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (257, 320),
            (4_097, 5_120),
            (16_384, 16_384),
            (16_385, 20_480),
            (1 << 20, 1 << 20),
        ] {
            assert_eq!(on_heap(bytes), taken, "{bytes}");
        }
    }
}
