//! The cache of catalogues against what it promises: any operations, in any order, at any time.

use crate::upstream::{Told, cache_over, caller, runtime};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use toolsearch_proxy::caller::{Caller, Salt};
use toolsearch_proxy::catalog::CatalogCache;
use toolsearch_proxy::mcp::Era;
use toolsearch_proxy::upstream::{Challenge, Listing, UpstreamError};

const CALLERS: u8 = 4;
/// A listing may be shown for so long.
const AGE_MAX: Duration = Duration::from_secs(660);

/// A listing under way may take so long, as the time-outs have it.
const FLIGHT_MAX: Duration = Duration::from_secs(100);

/// What the upstream does and did.
#[derive(Default)]
struct World {
    /// What each token is answered: a version, or the status of an error.
    answers: HashMap<String, Answer>,
    /// Each successful listing: token, version, when.
    listed: Vec<(String, u8, Instant)>,
    /// When each token was last dropped.
    dropped: HashMap<String, Instant>,
}

#[derive(Clone, Copy)]
enum Answer {
    Version(u8),
    Refused,
    Down,
}

/// Each two bytes are an operation and what it is done with.
pub fn cache(data: &[u8]) {
    runtime(true).block_on(async {
        let world = Arc::new(Mutex::new(World::default()));
        let asked = Arc::clone(&world);
        let upstream = Told::listing(move |token| asked.lock().unwrap().list(token));
        let cache = cache_over(&upstream);
        let salt = Salt::random();
        let callers: Vec<Caller> = (0..CALLERS).map(|i| caller(&token(i), &salt)).collect();
        let mut flown = Duration::ZERO;
        for operation in data.chunks_exact(2).take(100) {
            let who = operation[1] % CALLERS;
            let (token, caller) = (token(who), &callers[usize::from(who)]);
            match operation[0] % 8 {
                0..=2 => {
                    let got = cache.get(caller).await;
                    let mut world = world.lock().unwrap();
                    match got {
                        Ok(catalog) => world.may_see(&token, catalog.tools()[0].name()),
                        Err(UpstreamError::Unauthorized(_)) => world.forget(&token),
                        Err(_) => {}
                    }
                }
                3 => {
                    cache.evict(caller);
                    world.lock().unwrap().forget(&token);
                }
                4 => {
                    let step = Duration::from_secs(u64::from(operation[1]) * 4);
                    flown += step;
                    if flown > FLIGHT_MAX {
                        land(&cache).await;
                        flown = Duration::ZERO;
                    }
                    tokio::time::advance(step).await;
                }
                5 => world.lock().unwrap().answer(&token, Answer::Version(operation[1] / CALLERS)),
                6 => {
                    let answer = if operation[1] < 128 { Answer::Refused } else { Answer::Down };
                    world.lock().unwrap().answer(&token, answer);
                }
                _ => cache.refresh(caller, Duration::from_secs(u64::from(operation[1]))),
            }
        }
        assert!(cache.stats().callers <= u64::from(CALLERS));
    });
}

/// Waits until no listing is under way. The clock stands still, and threads that index do not know it.
async fn land(cache: &CatalogCache) {
    loop {
        let stats = cache.stats();
        if stats.listings <= stats.listed + stats.failures {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn token(i: u8) -> String {
    format!("Bearer {i}")
}

impl World {
    fn answer(&mut self, token: &str, answer: Answer) {
        self.answers.insert(token.to_owned(), answer);
    }

    fn forget(&mut self, token: &str) {
        self.dropped.insert(token.to_owned(), Instant::now());
    }

    fn list(&mut self, token: &str) -> Result<Listing, UpstreamError> {
        match self.answers.get(token).copied().unwrap_or(Answer::Version(0)) {
            Answer::Version(version) => {
                self.listed.push((token.to_owned(), version, Instant::now()));
                let tool = format!(r#"{{"name":"{token} {version}"}}"#);
                Ok(Listing {
                    tools: vec![Bytes::from(tool)],
                    instructions: None,
                    ttl: None,
                    era: Era::Legacy,
                })
            }
            Answer::Refused => {
                Err(UpstreamError::Unauthorized(Challenge { status: 401, www_authenticate: vec![] }))
            }
            Answer::Down => Err(UpstreamError::Unreachable),
        }
    }

    /// The tool stands in a listing that was made for this token, not too long ago, and not before it was dropped.
    fn may_see(&self, token: &str, name: &str) {
        let now = Instant::now();
        let dropped = self.dropped.get(token);
        let may = self.listed.iter().any(|(to, version, at)| {
            to == token
                && format!("{to} {version}") == name
                && now.duration_since(*at) < AGE_MAX
                && dropped.is_none_or(|dropped| dropped <= at)
        });
        assert!(may, "{token} sees {name}");
    }
}
