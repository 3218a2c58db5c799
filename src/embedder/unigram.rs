//! The Unigram tokenizer: the most likely way to cut a word into known pieces.
//!
//! ```text
//! best(end) = max over pieces that end there of  best(end - length) + score(piece)
//! ```
//!
//! A character that is no piece costs the lowest score less 10. Candidates are tried by start, then by length, and only
//! a higher score replaces one, so ties fall as they do in the `tokenizers` crate. Unknown characters give no token.
//!
//! Source: Kudo, Subword Regularization (2018), section 3.2.

use super::trie::Trie;

/// The pieces of a vocabulary and how likely each is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unigram<'a> {
    pub pieces: Trie<'a>,
    /// Little-endian `f32`, one for each piece.
    pub scores: &'a [[u8; 4]],
    pub unknown: u32,
    pub unknown_score: f64,
}

/// The best cut that ends at a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    score: f64,
    start: u32,
    piece: u32,
}

const UNREACHED: Best = Best { score: f64::NEG_INFINITY, start: u32::MAX, piece: 0 };

impl Unigram<'_> {
    /// Appends the pieces of `word`, which holds no pre-token border, and returns how many characters are in none. `best`
    /// is working memory.
    pub fn encode(&self, word: &str, best: &mut Vec<Best>, tokens: &mut Vec<u32>) -> usize {
        let bytes = word.as_bytes();
        best.clear();
        best.resize(bytes.len() + 1, UNREACHED);
        best[0].score = 0.0;
        for (start, c) in word.char_indices() {
            let score = best[start].score;
            let mut known = false;
            self.pieces.prefixes(&bytes[start..], |len, piece| {
                relax(&mut best[start + len], score + self.score(piece), start, piece);
                known |= len == c.len_utf8();
            });
            if !known {
                relax(&mut best[start + c.len_utf8()], score + self.unknown_score, start, self.unknown);
            }
        }
        self.walk_back(word, best, tokens)
    }

    /// Runs of unknown characters are one: the piece that they spell, or nothing.
    fn walk_back(&self, word: &str, best: &[Best], tokens: &mut Vec<u32>) -> usize {
        let first = tokens.len();
        let mut end = word.len();
        let mut unknown_end = None;
        let mut unknown = 0;
        while end > 0 {
            let Best { start, piece, .. } = best[end];
            if piece == self.unknown {
                unknown_end.get_or_insert(end);
                unknown += 1;
            } else {
                tokens.extend(unknown_end.take().and_then(|to| self.pieces.get(&word.as_bytes()[end..to])));
                tokens.push(piece);
            }
            end = start as usize;
        }
        tokens.extend(unknown_end.and_then(|to| self.pieces.get(&word.as_bytes()[..to])));
        tokens[first..].reverse();
        unknown
    }

    fn score(&self, piece: u32) -> f64 {
        self.scores
            .get(piece as usize)
            .map_or(f64::NEG_INFINITY, |&score| f64::from(f32::from_le_bytes(score)))
    }
}

fn relax(target: &mut Best, score: f64, start: usize, piece: u32) {
    if target.start == u32::MAX || score > target.score {
        *target = Best { score, start: start as u32, piece };
    }
}
