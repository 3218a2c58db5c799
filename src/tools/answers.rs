//! [`Answers`]: what a caller's last searches were answered, so that the same search again is not worked on again.
//!
//! Agents ask the same more than once: after a restart, in another branch of their work, for each item of a list. A
//! catalogue never changes and the ranking has no chance in it, so the answer is the same to the last byte.
//!
//! **What is remembered serves the caller who asked and nobody else**, since the time of an answer would tell others what
//! was asked before. Of a search only a digest is kept.

use super::kept::Kept;
use crate::caller::TokenHash;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Most bytes of answers that are kept, of all callers together: some 500 answers.
const BYTES_MAX: usize = 2 << 20;
/// Memory of an answer beside its bytes.
const BYTES_OF_AN_ENTRY: usize = 200;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The answer as a JSON string, quotes included.
    pub(super) quoted: Arc<str>,
    /// How many queries found nothing.
    pub(super) without_hits: usize,
}

/// Who asked what, of which catalogue: SHA-256 over all of it, and over the salt in the caller's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Asked([u8; 32]);

impl Asked {
    /// The catalogue is given by its number, and the query by its text and what the answer notes about it: that it was cut,
    /// and that another limit was asked for. `None` for a caller without credentials, who is not told apart from others.
    pub(super) fn new(
        caller: Option<TokenHash>,
        catalog: u64,
        limit: usize,
        (query, noted): (&str, [bool; 2]),
    ) -> Option<Self> {
        let mut digest = Sha256::new();
        digest.update(caller?.bytes());
        digest.update(catalog.to_be_bytes());
        digest.update((limit as u64).to_be_bytes());
        digest.update(noted.map(u8::from));
        digest.update(query);
        Some(Self(digest.finalize().into()))
    }
}

/// The answers to the last searches.
pub(super) struct Answers(Kept<Asked, Found>);

impl Answers {
    pub(super) fn new() -> Self {
        Self(Kept::new(BYTES_MAX))
    }

    /// What was found before.
    pub(super) fn get(&self, asked: &Asked) -> Option<Found> {
        self.0.get(asked)
    }

    pub(super) fn put(&self, asked: Asked, found: &Found) {
        self.0.put(asked, found.clone(), found.quoted.len() + BYTES_OF_AN_ENTRY);
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

    fn found(quoted: &str) -> Found {
        Found { quoted: quoted.into(), without_hits: 0 }
    }

    #[test]
    fn t_c9_an_answer_is_remembered_for_its_caller_catalogue_limit_and_query_alone() {
        let [alice, bob] = keys(["Bearer a", "Bearer b"]);
        let answers = Answers::new();
        let asked = |caller, catalog, limit, query| Asked::new(caller, catalog, limit, query).unwrap();
        answers.put(asked(alice, 1, 8, ("send mail", [false; 2])), &found("\"a\""));
        assert_eq!(answers.get(&asked(alice, 1, 8, ("send mail", [false; 2]))), Some(found("\"a\"")));
        for other in [
            asked(bob, 1, 8, ("send mail", [false; 2])),
            asked(alice, 2, 8, ("send mail", [false; 2])),
            asked(alice, 1, 9, ("send mail", [false; 2])),
            asked(alice, 1, 8, ("send mails", [false; 2])),
            asked(alice, 1, 8, ("send mail", [true, false])),
            asked(alice, 1, 8, ("send mail", [false, true])),
        ] {
            assert_eq!(answers.get(&other), None);
        }
        assert!(Asked::new(None, 1, 8, ("send mail", [false; 2])).is_none());
    }

    #[test]
    fn t_x12_answers_are_kept_within_a_bound_and_the_least_recently_used_go_first() {
        let [alice, _] = keys(["Bearer a", "Bearer b"]);
        let answers = Answers::new();
        let asked = |number: u64| Asked::new(alice, number, 8, ("", [false; 2])).unwrap();
        let large = "x".repeat(100_000);
        for number in 0..100 {
            answers.put(asked(number), &found(&large));
        }
        assert!(answers.0.bytes() <= BYTES_MAX);
        assert!(answers.get(&asked(0)).is_none() && answers.get(&asked(99)).is_some());
    }
}
