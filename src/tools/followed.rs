//! [`Followed`]: whether a search led to a call, so that operators see whether models find what they look for.
//!
//! It knows who searched, by the key that everything of a caller is kept under, and nothing of what was searched for.

use crate::caller::{Caller, TokenHash};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// Most callers whose last search is remembered; beyond that the oldest counts as not followed.
const CALLERS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is more than zero");

/// Callers who have searched and not yet called.
pub(super) struct Followed(Mutex<LruCache<TokenHash, ()>>);

impl Followed {
    pub(super) fn new() -> Self {
        let mut searched = LruCache::unbounded();
        searched.resize(CALLERS_MAX);
        Self(Mutex::new(searched))
    }

    /// Notes a search. Callers without credentials are not told apart, so nothing is noted.
    pub(super) fn searched(&self, caller: &Caller) {
        let Some(key) = caller.key() else { return };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, ());
    }

    /// Notes a call. Returns whether it is the first one after a search.
    pub(super) fn called(&self, caller: &Caller) -> bool {
        let Some(key) = caller.key() else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(&key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Salt;
    use http::HeaderMap;
    use http::header::AUTHORIZATION;

    #[test]
    fn a_search_is_followed_once_and_by_its_own_caller() {
        let salt = Salt::random();
        let caller = |token: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, token.parse().unwrap())]);
            Caller::from_headers(&headers, &salt).unwrap()
        };
        let (alice, bob) = (caller("Bearer a"), caller("Bearer b"));
        let nobody = Caller::from_headers(&HeaderMap::new(), &salt).unwrap();
        let followed = Followed::new();
        followed.searched(&alice);
        followed.searched(&alice);
        followed.searched(&nobody);
        assert!(!followed.called(&bob) && !followed.called(&nobody));
        assert!(followed.called(&alice) && !followed.called(&alice));
    }
}
