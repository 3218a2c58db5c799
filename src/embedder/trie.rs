//! A trie of byte strings in one array, for prefix search without pointers.
//!
//! Each unit has 32 bits: the byte that leads to it in the low 8, the place of its children in the upper 24. The child
//! for byte `c` of a unit with place `b` is unit `b + c`, if that unit carries `c`. A string that ends at a unit has a
//! child for byte 0 whose upper bits are its value; strings have no byte 0. No two units share a place, so a wrong child
//! cannot carry the right byte.
//!
//! Source: Aoe, An Efficient Digital Search Algorithm by Using a Double-Array Structure (1989).

/// A unit that nothing uses: byte 0 with the one value that is not given out.
const EMPTY: u32 = u32::MAX << 8;

/// The largest value and the largest place.
const VALUE_MAX: u32 = (1 << 24) - 2;

/// With more strings than this, room is given away for time: looking for the tightest place for each of millions of
/// units would take minutes.
const HASTY_FROM: usize = 200_000;

/// A trie over little-endian units in `units`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trie<'a> {
    units: &'a [[u8; 4]],
}

impl<'a> Trie<'a> {
    pub fn new(units: &'a [u8]) -> Self {
        Self { units: units.as_chunks().0 }
    }

    #[inline]
    fn unit(self, index: usize) -> u32 {
        self.units.get(index).map_or(EMPTY, |&unit| u32::from_le_bytes(unit))
    }

    /// Calls `visit` with the length and value of every string in the trie that `bytes` starts with, shortest first.
    #[inline]
    pub fn prefixes(self, bytes: &[u8], mut visit: impl FnMut(usize, u32)) {
        let mut place = (self.unit(0) >> 8) as usize;
        for (at, &byte) in bytes.iter().enumerate() {
            let unit = self.unit(place.wrapping_add(usize::from(byte)));
            if byte == 0 || unit & 0xff != u32::from(byte) {
                return;
            }
            place = (unit >> 8) as usize;
            let end = self.unit(place);
            if end & 0xff == 0 && end != EMPTY {
                visit(at + 1, end >> 8);
            }
        }
    }

    /// The value of exactly `bytes`.
    pub fn get(self, bytes: &[u8]) -> Option<u32> {
        let mut found = None;
        self.prefixes(bytes, |len, value| found = (len == bytes.len()).then_some(value));
        found
    }
}

/// Lays out strings with their values, sorted by string, each once and none with a byte 0. `None` when a value or the
/// whole is too large.
pub(super) fn build(strings: &[(&[u8], u32)]) -> Option<Vec<u32>> {
    let is_hasty = strings.len() > HASTY_FROM;
    let mut builder = Builder { units: vec![0], places: vec![true], first_free: 1, is_hasty };
    let mut pending = vec![(0_usize, 0..strings.len(), 0_usize)];
    while let Some((unit, range, depth)) = pending.pop() {
        let children = children(&strings[range.clone()], depth);
        let place = builder.place(&children.iter().map(|child| child.0).collect::<Vec<_>>())?;
        builder.units[unit] |= u32::try_from(place).ok().filter(|&place| place <= VALUE_MAX)? << 8;
        for (byte, from, to) in children {
            let index = place + usize::from(byte);
            if byte == 0 {
                let value = strings[range.start + from].1;
                builder.units[index] = (value <= VALUE_MAX).then_some(value)? << 8;
            } else {
                builder.units[index] = u32::from(byte);
                pending.push((index, range.start + from..range.start + to, depth + 1));
            }
        }
    }
    Some(builder.units)
}

/// The next bytes of strings that are alike up to `depth`, with the part of `strings` that has each; 0 for an end.
fn children(strings: &[(&[u8], u32)], depth: usize) -> Vec<(u8, usize, usize)> {
    let mut children: Vec<(u8, usize, usize)> = Vec::new();
    for (at, (string, _)) in strings.iter().enumerate() {
        let byte = string.get(depth).copied().unwrap_or(0);
        match children.last_mut() {
            Some(last) if last.0 == byte => last.2 = at + 1,
            _ => children.push((byte, at, at + 1)),
        }
    }
    children
}

struct Builder {
    units: Vec<u32>,
    /// Which places are taken.
    places: Vec<bool>,
    /// No unit before this one is worth a look.
    first_free: usize,
    /// Take a place that is found soon.
    is_hasty: bool,
}

impl Builder {
    /// Finds a place where all of `bytes` are free, and takes it.
    fn place(&mut self, bytes: &[u8]) -> Option<usize> {
        /// After so many places in vain the front is as good as full.
        const TRIES_MAX: usize = 64;
        const HASTY_TRIES_MAX: usize = 32;
        /// More children than these fit between others only by luck: they go to the end.
        const HASTY_CHILDREN_MAX: usize = 4;
        let tries_max = if self.is_hasty { HASTY_TRIES_MAX } else { TRIES_MAX };
        let is_for_the_end = self.is_hasty && bytes.len() > HASTY_CHILDREN_MAX;
        let lowest = usize::from(*bytes.first()?);
        let mut free = self.first_free;
        if is_for_the_end {
            free = free.max(self.units.len().saturating_sub(512));
        }
        for tries in 0.. {
            while self.units.get(free).is_some_and(|&unit| unit != EMPTY) {
                free += 1;
            }
            if tries == 0 && !is_for_the_end {
                self.first_free = free;
            }
            if free > lowest && self.fits(free - lowest, bytes) {
                if tries > tries_max && !is_for_the_end {
                    self.first_free = free.saturating_sub(tries_max / 2);
                }
                self.take(free - lowest, bytes);
                return Some(free - lowest);
            }
            free += 1;
        }
        None
    }

    fn fits(&self, place: usize, bytes: &[u8]) -> bool {
        !self.places.get(place).copied().unwrap_or(false)
            && bytes
                .iter()
                .all(|&byte| self.units.get(place + usize::from(byte)).is_none_or(|&unit| unit == EMPTY))
    }

    fn take(&mut self, place: usize, bytes: &[u8]) {
        let end = place + bytes.iter().copied().max().map_or(0, usize::from) + 1;
        if self.units.len() < end {
            self.units.resize(end, EMPTY);
        }
        if self.places.len() <= place {
            self.places.resize(place + 1, false);
        }
        self.places[place] = true;
        for &byte in bytes {
            self.units[place + usize::from(byte)] = u32::from(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(units: &[u32]) -> Vec<u8> {
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    }

    #[test]
    fn every_string_is_found_and_nothing_else() {
        let words = ["a", "ab", "abc", "b", "bc", "ž", "žė", "zzz"];
        let mut strings: Vec<(&[u8], u32)> =
            words.iter().zip(10..).map(|(word, value)| (word.as_bytes(), value)).collect();
        strings.sort_unstable();
        let units = bytes(&build(&strings).unwrap());
        let trie = Trie::new(&units);
        for (string, value) in &strings {
            assert_eq!(trie.get(string), Some(*value));
        }
        for absent in ["", "c", "abcd", "zz", "zzzz", "\0", "a\0"] {
            assert_eq!(trie.get(absent.as_bytes()), None, "{absent:?}");
        }
    }

    #[test]
    fn many_strings_are_laid_out_soon_and_all_found() {
        let words: Vec<String> = (0..=HASTY_FROM).map(|i| format!("{:x}ž{i}", i * 7919 % 65_536)).collect();
        let mut strings: Vec<(&[u8], u32)> =
            words.iter().zip(0..).map(|(word, value)| (word.as_bytes(), value)).collect();
        strings.sort_unstable();
        let units = bytes(&build(&strings).unwrap());
        let trie = Trie::new(&units);
        assert!(strings.iter().all(|(string, value)| trie.get(string) == Some(*value)));
    }

    #[test]
    fn prefixes_come_shortest_first() {
        let units = bytes(&build(&[(b"a", 1), (b"ab", 2), (b"abcd", 3)]).unwrap());
        let mut found = Vec::new();
        Trie::new(&units).prefixes(b"abcx", |len, value| found.push((len, value)));
        assert_eq!(found, [(1, 1), (2, 2)]);
    }

    #[test]
    fn damaged_units_end_the_search() {
        let units = [0xff; 64];
        assert_eq!(Trie::new(&units).get(b"abc"), None);
        assert_eq!(Trie::new(&[]).get(b"abc"), None);
    }
}
