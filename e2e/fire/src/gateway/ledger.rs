//! What the gateway saw: the truth that answers are held against.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of one gateway.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Requests that came whole, of any kind.
    pub requests: AtomicU64,
    /// Pages of listings that were asked for.
    pub listings: AtomicU64,
    /// Calls that were executed.
    pub calls: AtomicU64,
    /// Request ids that came a second time: an id must be fresh.
    pub repeated_ids: AtomicU64,
    /// Requests with another caller's session.
    pub crossed_sessions: AtomicU64,
    /// Requests that were cancelled by a notification.
    pub cancelled: AtomicU64,
    /// Requests that were refused since their token is revoked.
    pub refused: AtomicU64,
    /// Requests with headers that a proxy must not pass on.
    pub leaked_headers: AtomicU64,
    listings_now: AtomicI64,
    listings_most: AtomicI64,
    ids: Mutex<HashSet<u128>>,
    executed: Mutex<HashMap<String, u32>>,
    listings_by_token: Mutex<HashMap<String, u32>>,
}

impl Ledger {
    pub(super) fn note_id(&self, id: &str) {
        // Ids of 128 bits as digits are kept as such; any other is not the proxy's.
        let Ok(id) = u128::from_str_radix(id, 16) else { return };
        if !lock(&self.ids).insert(id) {
            self.repeated_ids.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn note_executed(&self, nonce: &str) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !nonce.is_empty() {
            *lock(&self.executed).entry(nonce.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn note_listing(&self, token: &str) {
        self.listings.fetch_add(1, Ordering::Relaxed);
        *lock(&self.listings_by_token).entry(token.to_owned()).or_default() += 1;
    }

    /// Counts a listing that is being answered until the guard goes.
    pub(super) fn listing_now(&self) -> ListingNow<'_> {
        let now = self.listings_now.fetch_add(1, Ordering::Relaxed) + 1;
        self.listings_most.fetch_max(now, Ordering::Relaxed);
        ListingNow(self)
    }

    /// How often the call with that nonce was executed.
    pub fn executions(&self, nonce: &str) -> u32 {
        lock(&self.executed).get(nonce).copied().unwrap_or(0)
    }

    /// Forgets a nonce, so that a long run need not remember all.
    pub fn forget(&self, nonce: &str) {
        lock(&self.executed).remove(nonce);
    }

    /// Calls that were executed more than once.
    pub fn executed_twice(&self) -> usize {
        lock(&self.executed).values().filter(|count| **count > 1).count()
    }

    /// Listings of one token.
    pub fn listings_of(&self, token: &str) -> u32 {
        lock(&self.listings_by_token).get(token).copied().unwrap_or(0)
    }

    /// Most listings that were answered at once.
    pub fn listings_most(&self) -> i64 {
        self.listings_most.load(Ordering::Relaxed)
    }

    /// The plain counts, for people and for the control port.
    pub fn to_json(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            r#"{{"requests":{},"listings":{},"calls":{},"executedTwice":{},"repeatedIds":{},"crossedSessions":{},"leakedHeaders":{},"cancelled":{},"refused":{},"listingsAtOnce":{}}}"#,
            of(&self.requests),
            of(&self.listings),
            of(&self.calls),
            self.executed_twice(),
            of(&self.repeated_ids),
            of(&self.crossed_sessions),
            of(&self.leaked_headers),
            of(&self.cancelled),
            of(&self.refused),
            self.listings_most(),
        )
    }
}

/// A listing under way.
pub(super) struct ListingNow<'a>(&'a Ledger);

impl Drop for ListingNow<'_> {
    fn drop(&mut self) {
        self.0.listings_now.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_executions_and_second_ids_are_counted() {
        let ledger = Ledger::default();
        ledger.note_executed("nn-1");
        ledger.note_executed("nn-2");
        ledger.note_executed("nn-1");
        assert_eq!((ledger.executions("nn-1"), ledger.executed_twice()), (2, 1));
        ledger.note_id("00ff");
        ledger.note_id("00ff");
        ledger.note_id("not one of the proxy");
        assert_eq!(ledger.repeated_ids.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn most_listings_at_once_are_remembered() {
        let ledger = Ledger::default();
        let both = (ledger.listing_now(), ledger.listing_now());
        drop(both);
        let _one = ledger.listing_now();
        assert_eq!(ledger.listings_most(), 2);
    }
}
