//! Watermarks: whose an answer is, readable from any part of it.
//!
//! A mark is a keyed hash of the token that a request carried, so nobody but the gateway of the same run can make one,
//! and it tells nothing of the token. Nonces name one request in the same manner.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// What stands before the hash of a token.
pub const MARK: &str = "wm-";
/// What stands before the digits of a nonce.
pub const NONCE: &str = "nn-";
const DIGITS: usize = 16;

/// Makes marks under one key.
#[derive(Clone, Debug)]
pub struct Marks {
    key: [u8; 32],
}

impl Marks {
    /// The key follows from the seed, so that a run can be played again.
    pub fn new(seed: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"watermark key");
        hash.update(seed.to_be_bytes());
        Self { key: hash.finalize().into() }
    }

    /// The mark of a token: `wm-` and 16 hexadecimal digits.
    pub fn of(&self, token: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update((token.len() as u64).to_be_bytes());
        hash.update(token.as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let mut mark = String::from(MARK);
        for byte in &digest[..DIGITS / 2] {
            write!(mark, "{byte:02x}").expect("a string takes any text");
        }
        mark
    }
}

/// All marks or nonces in a text, in order.
pub fn found<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(kind).filter_map(move |(at, _)| {
        let whole = text.get(at..at + kind.len() + DIGITS)?;
        whole[kind.len()..].bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(whole)
    })
}

/// A mark in the text that is not `own`.
pub fn foreign<'a>(text: &'a str, own: &str) -> Option<&'a str> {
    found(text, MARK).find(|mark| *mark != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_the_tokens_alone_and_differ_between_keys() {
        let marks = Marks::new(1);
        assert_eq!(marks.of("alice"), Marks::new(1).of("alice"));
        assert_ne!(marks.of("alice"), marks.of("bob"));
        assert_ne!(marks.of("alice"), Marks::new(2).of("alice"));
        assert_eq!(marks.of("alice").len(), MARK.len() + DIGITS);
    }

    #[test]
    fn a_foreign_mark_is_found_anywhere() {
        let (own, other) = (Marks::new(1).of("alice"), Marks::new(1).of("bob"));
        assert_eq!(foreign(&format!("x{own} y{own}z wm-nothing wm-"), &own), None);
        assert_eq!(foreign(&format!("{own}\\\"{other}"), &own), Some(other.as_str()));
    }
}
