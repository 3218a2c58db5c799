//! What was worked out for a word, remembered: tools and questions repeat a few thousand words, and cutting, stemming and
//! looking up a word costs far more than finding it here.
//!
//! Bounded by two generations: when the younger is full it becomes the older, and of the older one what nobody asked for
//! since is forgotten. So words in use stay, and a tool stuffed with odd ones pushes nothing out for long.
//!
//! Memories are lent from a [`Pool`] rather than kept by threads: an analysis may run on any of hundreds of threads, and
//! each would start with nothing and hold megabytes.

use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Words of a generation.
const WORDS_MAX: usize = 8192;

/// A longer word is worked out each time: it is none that tools repeat.
const WORD_BYTES_MAX: usize = 64;

/// Values by word.
#[derive(Debug)]
pub struct Remembered<V> {
    /// Keyed anew in each process, so that nobody who writes tools can choose words that collide.
    hasher: foldhash::fast::RandomState,
    young: Generation<V>,
    old: Generation<V>,
    /// Of a word that is too long to be kept.
    unkept: Option<V>,
}

/// A hash table whose words lie in one text: a listing has thousands of new ones, and a map would make a string of each.
#[derive(Debug)]
struct Generation<V> {
    /// Hash and place of each word, the place from 1; a place of 0 is free. Probed one after the other, and never more
    /// than half full.
    slots: Vec<(u32, u32)>,
    text: String,
    entries: Vec<Entry<V>>,
}

/// Where a word lies in the text, and its value: one line of memory for both.
#[derive(Debug)]
struct Entry<V> {
    start: u32,
    end: u32,
    value: V,
}

impl<V> Default for Generation<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), text: String::new(), entries: Vec::new() }
    }
}

impl<V> Generation<V> {
    #[inline]
    fn find(&self, word: &str, hash: u32) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let (known, place) = self.slots[slot];
            let place = place.checked_sub(1)? as usize;
            if known == hash {
                let Entry { start, end, .. } = &self.entries[place];
                if &self.text.as_bytes()[*start as usize..*end as usize] == word.as_bytes() {
                    return Some(place);
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a word that is not there.
    fn insert(&mut self, word: &str, hash: u32, value: V) -> &V {
        let place = self.entries.len();
        if place == 0 {
            // Pages that no word reaches are not taken, and those that some did are not copied as they grow.
            self.entries.reserve_exact(WORDS_MAX);
            self.text.reserve_exact(WORDS_MAX * 8);
        }
        if self.slots.len() <= place * 2 {
            let larger = vec![(0, 0); (self.slots.len() * 2).max(64)];
            for (hash, place) in std::mem::replace(&mut self.slots, larger) {
                if place > 0 {
                    self.take_slot(hash, place);
                }
            }
        }
        self.take_slot(hash, place as u32 + 1);
        let start = self.text.len() as u32;
        self.text.push_str(word);
        self.entries.push(Entry { start, end: self.text.len() as u32, value });
        &self.entries[place].value
    }

    fn take_slot(&mut self, hash: u32, place: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot].1 > 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = (hash, place);
    }
}

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        let hasher = foldhash::fast::RandomState::default();
        Self { hasher, young: Generation::default(), old: Generation::default(), unkept: None }
    }
}

impl<V: Clone> Remembered<V> {
    /// The value for `word`, which `work_out` must give alike each time.
    pub fn get(&mut self, word: &str, work_out: impl FnOnce() -> V) -> &V {
        if word.len() > WORD_BYTES_MAX {
            return self.unkept.insert(work_out());
        }
        let mut hasher = self.hasher.build_hasher();
        hasher.write(word.as_bytes());
        let hash = hasher.finish() as u32;
        if let Some(place) = self.young.find(word, hash) {
            return &self.young.entries[place].value;
        }
        let known = self.old.find(word, hash).map(|place| self.old.entries[place].value.clone());
        let value = known.unwrap_or_else(work_out);
        if self.young.entries.len() == WORDS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(word, hash, value)
    }
}

/// Lends something that is dear to make anew: to each thread one of its own.
#[derive(Debug)]
pub struct Pool<T> {
    free: Mutex<Vec<T>>,
    kept_max: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self { free: Mutex::default(), kept_max: processors.min(16) }
    }
}

impl<T: Default> Pool<T> {
    /// Lends one for as long as `work` runs; a panic loses it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let free = self.free().pop();
        let mut lent = free.unwrap_or_default();
        let result = work(&mut lent);
        let mut free = self.free();
        if free.len() < self.kept_max {
            free.push(lent);
        }
        result
    }

    fn free(&self) -> MutexGuard<'_, Vec<T>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_worked_out_once_while_it_is_used_and_memory_is_bounded() {
        let mut remembered: Remembered<String> = Remembered::default();
        let mut worked_out = 0;
        for i in 0..WORDS_MAX * 5 {
            let word = format!("word{i}");
            assert_eq!(remembered.get(&word, || word.clone()), &word);
            let often = remembered.get("often", || {
                worked_out += 1;
                "often".to_owned()
            });
            assert_eq!(often, "often");
        }
        assert_eq!(worked_out, 1);
        assert!(remembered.young.entries.len() + remembered.old.entries.len() <= WORDS_MAX * 2);
        let places = remembered.young.slots.iter().filter(|slot| slot.1 > 0).count();
        assert_eq!(places, remembered.young.entries.len());
    }

    #[test]
    fn a_long_word_is_not_kept() {
        let mut remembered: Remembered<usize> = Remembered::default();
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        assert_eq!((*remembered.get(&long, || 1), *remembered.get(&long, || 2)), (1, 2));
        assert_eq!((*remembered.get(&long[1..], || 1), *remembered.get(&long[1..], || 2)), (1, 1));
    }

    #[test]
    fn what_was_lent_is_lent_again() {
        let pool: Pool<Vec<u8>> = Pool::default();
        pool.with(|bytes| bytes.push(7));
        pool.with(|outer| {
            assert_eq!(*outer, [7]);
            pool.with(|inner| assert!(inner.is_empty()));
        });
    }
}
