//! [`Ranked`]: what a caller's last queries found, so that the same query again need not be ranked again.
//!
//! Agents ask the same more than once: after a restart, in another branch of their work, for each item of a list. A
//! catalogue never changes and the ranking has no chance in it, so the answer is the same to the last bit.
//!
//! **What is remembered serves the caller who asked and nobody else**, since the time of an answer would tell others what
//! was asked before. Of a query only a digest is kept.

use crate::caller::TokenHash;
use lru::LruCache;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most queries that are remembered, of all callers together; each takes some 200 bytes.
const QUERIES_MAX: NonZeroUsize = NonZeroUsize::new(2_000).expect("it is more than zero");

/// Who asked what, of which catalogue: SHA-256 over all of it, and over the salt in the caller's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Asked([u8; 32]);

impl Asked {
    /// The catalogue is given by its number. `None` for a caller without credentials, who is not told apart from others.
    pub(super) fn new(caller: Option<TokenHash>, catalog: u64, query: &str, limit: usize) -> Option<Self> {
        let mut digest = Sha256::new();
        digest.update(caller?.bytes());
        digest.update(catalog.to_be_bytes());
        digest.update((limit as u64).to_be_bytes());
        digest.update(query);
        Some(Self(digest.finalize().into()))
    }
}

/// The ranks of queries: indexes into their catalogue, best first.
pub(super) struct Ranked(Mutex<LruCache<Asked, Arc<[u32]>>>);

impl Ranked {
    pub(super) fn new() -> Self {
        let mut ranked = LruCache::unbounded();
        ranked.resize(QUERIES_MAX);
        Self(Mutex::new(ranked))
    }

    /// What was found before.
    pub(super) fn get(&self, asked: &Asked) -> Option<Arc<[u32]>> {
        self.lock().get(asked).cloned()
    }

    pub(super) fn put(&self, asked: Asked, found: &Arc<[u32]>) {
        self.lock().put(asked, Arc::clone(found));
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Asked, Arc<[u32]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Caller, Salt};
    use http::HeaderMap;
    use http::header::AUTHORIZATION;

    fn keys(tokens: [&str; 2]) -> [Option<TokenHash>; 2] {
        let salt = Salt::random();
        tokens.map(|token| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, token.parse().unwrap())]);
            Caller::from_headers(&headers, &salt).unwrap().key()
        })
    }

    #[test]
    fn t_c9_a_query_is_remembered_for_its_caller_catalogue_and_limit_alone() {
        let [alice, bob] = keys(["Bearer a", "Bearer b"]);
        let ranked = Ranked::new();
        let asked = |caller, catalog, query, limit| Asked::new(caller, catalog, query, limit).unwrap();
        ranked.put(asked(alice, 1, "send mail", 8), &Arc::from([3, 1]));
        assert_eq!(ranked.get(&asked(alice, 1, "send mail", 8)).as_deref(), Some(&[3, 1][..]));
        for other in [
            asked(bob, 1, "send mail", 8),
            asked(alice, 2, "send mail", 8),
            asked(alice, 1, "send mails", 8),
            asked(alice, 1, "send mail", 9),
        ] {
            assert_eq!(ranked.get(&other), None);
        }
        assert!(Asked::new(None, 1, "send mail", 8).is_none());
    }

    #[test]
    fn t_x12_the_oldest_of_too_many_queries_is_forgotten() {
        let [alice, _] = keys(["Bearer a", "Bearer b"]);
        let ranked = Ranked::new();
        let asked = |number: usize| Asked::new(alice, 1, &number.to_string(), 8).unwrap();
        for number in 0..=QUERIES_MAX.get() {
            ranked.put(asked(number), &Arc::from([]));
        }
        assert!(ranked.get(&asked(0)).is_none());
        assert!(ranked.get(&asked(1)).is_some() && ranked.get(&asked(QUERIES_MAX.get())).is_some());
    }
}
