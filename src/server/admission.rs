//! How many requests may be in flight: in all, and for one caller.
//!
//! A place belongs to the request and not to its connection: a legacy call goes on when its client is gone, and counts
//! until it ends. Over the limit a request is turned away at once, never queued.

use crate::caller::{Caller, TokenHash};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts requests in flight.
pub struct Admission {
    places: Arc<Semaphore>,
    places_max: u32,
    per_caller_max: usize,
    callers: Mutex<HashMap<TokenHash, usize>>,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// That of all requests.
    All,
    /// That of the caller's requests.
    OfCaller,
}

/// A request's place, given back when it is dropped.
pub(super) struct Place {
    admission: Arc<Admission>,
    caller: Option<TokenHash>,
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    /// Room for so many requests, and for so many of one caller.
    pub fn new(places_max: u32, per_caller_max: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(places_max as usize));
        Arc::new(Self { places, places_max, per_caller_max, callers: Mutex::default() })
    }

    /// A place for a request of this caller, or which limit leaves none. Callers without credentials are counted
    /// together with all others only, since nothing tells them apart.
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller) -> Result<Place, Full> {
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Full::All)?;
        let key = caller.key();
        if let Some(key) = key {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let count = callers.entry(key).or_insert(0);
            if *count >= self.per_caller_max {
                return Err(Full::OfCaller);
            }
            *count += 1;
        }
        Ok(Place { admission: Arc::clone(self), caller: key, _permit: permit })
    }

    /// Completes when no request is in flight.
    pub async fn empty(&self) {
        // The semaphore is never closed, so this can't fail.
        let _all = self.places.acquire_many(self.places_max).await;
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.places_max as usize - self.places.available_permits()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(key) = self.caller else { return };
        let mut callers = self.admission.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Salt;
    use http::header::AUTHORIZATION;
    use http::{HeaderMap, HeaderValue};

    fn caller(salt: &Salt, token: &'static str) -> Caller {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(token))]);
        Caller::from_headers(&headers, salt).unwrap()
    }

    #[tokio::test]
    async fn t_x10_limits_hold_at_them_and_one_past_them_and_places_come_back() {
        let salt = Salt::random();
        let (alice, bob) = (caller(&salt, "Bearer a"), caller(&salt, "Bearer b"));
        let admission = Admission::new(3, 2);
        let first = admission.enter(&alice).unwrap();
        let second = admission.enter(&alice).unwrap();
        assert_eq!(admission.enter(&alice).err(), Some(Full::OfCaller));
        let third = admission.enter(&bob).unwrap();
        assert_eq!(admission.enter(&bob).err(), Some(Full::All));
        assert_eq!(admission.in_flight(), 3);
        drop(first);
        let fourth = admission.enter(&alice).unwrap();
        drop((second, third, fourth));
        admission.empty().await;
        assert!(admission.callers.lock().unwrap().is_empty());
    }
}
