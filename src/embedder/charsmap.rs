//! SentencePiece's normalisation table, as tokenizers carry it: a trie of byte strings, and the strings they become.
//!
//! ```text
//! u32 bytes of the trie, the trie's units (u32 each), replacements that each end with a zero byte
//! ```
//!
//! The rule is odd and must be kept as it is, since models were trained with it: a grapheme of fewer than six bytes is
//! looked up whole, and what matches is its *shortest* known beginning; otherwise each of its characters is.
//!
//! Source: SentencePiece `normalizer.cc`; the trie is a Darts-clone double array.

use unicode_segmentation::UnicodeSegmentation;

#[derive(Debug, Clone, Copy)]
pub(super) struct Charsmap<'a> {
    units: &'a [u8],
    replacements: &'a [u8],
}

impl<'a> Charsmap<'a> {
    /// `None` when the bytes are not such a table. Replacements that are not text are found when they are used.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (units, replacements) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        Some(Self { units, replacements })
    }

    /// Appends `text` as normalised.
    pub fn normalize(self, text: &str, out: &mut String) {
        for grapheme in text.graphemes(true) {
            if let Some(replaced) = (grapheme.len() < 6).then(|| self.replacement(grapheme)).flatten() {
                out.push_str(replaced);
                continue;
            }
            for (at, c) in grapheme.char_indices() {
                match self.replacement(&grapheme[at..at + c.len_utf8()]) {
                    Some(replaced) => out.push_str(replaced),
                    None => out.push(c),
                }
            }
        }
    }

    /// What the shortest known beginning of `text` becomes.
    pub fn replacement(self, text: &str) -> Option<&'a str> {
        let mut place = offset(self.unit(0)?);
        for byte in text.bytes().take_while(|&byte| byte != 0) {
            place ^= usize::from(byte);
            let unit = self.unit(place)?;
            if label(unit) != u32::from(byte) {
                return None;
            }
            place ^= offset(unit);
            if has_leaf(unit) {
                let start = (self.unit(place)? & 0x7fff_ffff) as usize;
                let tail = self.replacements.get(start..)?;
                let end = tail.iter().position(|&byte| byte == 0).unwrap_or(tail.len());
                return std::str::from_utf8(&tail[..end]).ok();
            }
        }
        None
    }

    fn unit(self, index: usize) -> Option<u32> {
        let unit = self.units.get(index.checked_mul(4)?..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*unit))
    }
}

fn has_leaf(unit: u32) -> bool {
    (unit >> 8) & 1 == 1
}

fn label(unit: u32) -> u32 {
    unit & 0x8000_00ff
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}
