//! [`Kept`]: what is dear to make anew, by key, within a bound of bytes; the least recently used go first.

use lru::LruCache;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values that are cheap to clone.
pub(super) struct Kept<K: Hash + Eq, V> {
    bytes_max: usize,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K: Hash + Eq, V> {
    values: LruCache<K, (V, usize)>,
    /// What all of them weigh together.
    bytes: usize,
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    /// None yet, and so many bytes of them at most.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, entries: Mutex::new(Entries { values: LruCache::unbounded(), bytes: 0 }) }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.lock().values.get(key).map(|(value, _)| value.clone())
    }

    /// Keeps a value of so many bytes, unless it is heavier than all may be together.
    pub(super) fn put(&self, key: K, value: V, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        let mut entries = self.lock();
        if let Some((_, replaced)) = entries.values.put(key, (value, bytes)) {
            entries.bytes -= replaced;
        }
        entries.bytes += bytes;
        while entries.bytes > self.bytes_max {
            let Some((_, (_, dropped))) = entries.values.pop_lru() else { return };
            entries.bytes -= dropped;
        }
    }

    #[cfg(test)]
    pub(super) fn contains(&self, key: &K) -> bool {
        self.lock().values.contains(key)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
