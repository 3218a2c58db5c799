//! A body in pieces, so that an upstream's result goes out without being copied.

use bytes::Bytes;
use std::collections::VecDeque;

/// A response body as a sequence of byte pieces.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pieces: VecDeque<Bytes>,
}

/// Below this size pieces are joined: one write is cheaper than one copy.
const JOIN_BYTES_MAX: usize = 16 * 1024;

impl Payload {
    /// No bytes at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    /// Adds all pieces of another payload at the end.
    pub fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces in order; small ones are joined into one.
    pub fn into_pieces(self) -> VecDeque<Bytes> {
        if self.pieces.len() > 1 && self.len() <= JOIN_BYTES_MAX {
            return VecDeque::from([self.into_bytes()]);
        }
        self.pieces
    }

    /// Everything in one piece.
    ///
    /// # Cost
    /// One copy of all bytes, unless there is only one piece.
    pub fn into_bytes(mut self) -> Bytes {
        match self.pieces.len() {
            0 => Bytes::new(),
            1 => self.pieces.pop_front().unwrap_or_default(),
            _ => {
                let mut joined = Vec::with_capacity(self.len());
                for piece in &self.pieces {
                    joined.extend_from_slice(piece);
                }
                joined.into()
            }
        }
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(piece: T) -> Self {
        let mut payload = Self::new();
        payload.push(piece);
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_are_not_copied() {
        let mut payload = Payload::from("{\"a\":");
        payload.push("1}");
        assert_eq!(payload.clone().into_pieces(), [Bytes::from("{\"a\":1}")]);

        let large = Bytes::from(vec![b'x'; JOIN_BYTES_MAX + 1]);
        payload.push(large.clone());
        let pieces = payload.into_pieces();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[2].as_ptr(), large.as_ptr());
    }
}
