//! Requests at a set rate, whether or not answers come: an open loop, as real callers are one.

use crate::client::{Ask, Client, Era};
use crate::report::Times;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How requests ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    pub accepted: Times,
    pub refused: Times,
    pub refused_without_retry_after: usize,
    pub failed: usize,
    /// Refusals that came when only this long was left.
    pub last_refusal: Option<Instant>,
}

/// What is asked, by whom.
#[derive(Clone)]
pub(super) struct Source {
    pub mcp: SocketAddr,
    pub token: String,
    /// So many tokens, one after the other.
    pub tokens: u64,
    pub ask: fn(&str) -> Ask,
    pub marks: crate::mark::Marks,
}

impl Source {
    fn of(&self, number: u64) -> (String, Ask) {
        let token = format!("{}-{}", self.token, number % self.tokens);
        let mark = self.marks.of(&token);
        (token, (self.ask)(&mark))
    }

    /// So many clients that each ask again as soon as they have an answer.
    pub(super) async fn closed(&self, clients: u64, lasts: Duration) -> Load {
        let until = Instant::now() + lasts;
        let load = Arc::new(Mutex::new(Load::default()));
        let tasks: Vec<_> = (0..clients)
            .map(|number| {
                let (load, source) = (Arc::clone(&load), self.clone());
                tokio::spawn(async move {
                    let (token, ask) = source.of(number);
                    let mut client = Client::new(source.mcp, &token, Era::Modern);
                    while Instant::now() < until {
                        note(&load, one(&mut client, &ask).await);
                    }
                })
            })
            .collect();
        for task in tasks {
            let _panicked = task.await;
        }
        let load = load.lock().unwrap_or_else(PoisonError::into_inner);
        load.clone()
    }

    /// So many requests a second, evenly spaced, over connections that are kept.
    pub(super) async fn open(&self, per_second: f64, lasts: Duration) -> Load {
        let (load, spare) =
            (Arc::new(Mutex::new(Load::default())), Arc::new(Mutex::new(Vec::<Client>::new())));
        let started = Instant::now();
        let mut tasks = Vec::new();
        let mut number = 0_u64;
        while started.elapsed() < lasts {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
            let due = (started.elapsed().as_secs_f64() * per_second) as u64;
            while number < due {
                let (load, spare) = (Arc::clone(&load), Arc::clone(&spare));
                let (token, ask) = self.of(number);
                let mcp = self.mcp;
                number += 1;
                tasks.push(tokio::spawn(async move {
                    let kept = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let mut client = kept.unwrap_or_else(|| Client::new(mcp, "", Era::Modern));
                    client.token = token;
                    note(&load, one(&mut client, &ask).await);
                    spare.lock().unwrap_or_else(PoisonError::into_inner).push(client);
                }));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for task in tasks {
            let _panicked = task.await;
        }
        let load = load.lock().unwrap_or_else(PoisonError::into_inner);
        load.clone()
    }
}

enum End {
    Accepted(Duration),
    Refused(Duration, bool),
    Failed,
}

async fn one(client: &mut Client, ask: &Ask) -> End {
    match tokio::time::timeout(Duration::from_secs(30), client.ask(ask)).await {
        Ok(Ok(answer)) if answer.is_ok() => End::Accepted(answer.took),
        Ok(Ok(answer)) if answer.status == 503 => {
            let says_when =
                String::from_utf8_lossy(&answer.raw).to_ascii_lowercase().contains("\r\nretry-after:");
            End::Refused(answer.took, says_when)
        }
        _ => End::Failed,
    }
}

fn note(load: &Mutex<Load>, end: End) {
    let mut load = load.lock().unwrap_or_else(PoisonError::into_inner);
    match end {
        End::Accepted(took) => load.accepted.add(took),
        End::Refused(took, says_when) => {
            load.refused.add(took);
            load.refused_without_retry_after += usize::from(!says_when);
            load.last_refusal = Some(Instant::now());
        }
        End::Failed => load.failed += 1,
    }
}
