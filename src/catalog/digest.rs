//! Digests by which tools and catalogues are shared: SHA-256, as what they cover is others' text.

use crate::mcp::Era;
use crate::upstream::Listing;
use sha2::{Digest, Sha256};

/// SHA-256 of a definition's bytes, or of a listing's.
pub(super) type ContentDigest = [u8; 32];

/// The key of a catalogue in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListingDigest(pub(super) ContentDigest);

pub(super) fn digest(bytes: &[u8]) -> ContentDigest {
    Sha256::digest(bytes).into()
}

/// Covers everything that a catalogue is made of: era, instructions, and each definition in order.
pub(super) fn listing_digest(listing: &Listing, digests: &[ContentDigest]) -> ListingDigest {
    let mut hash = Sha256::new();
    hash.update([u8::from(listing.era == Era::Modern), u8::from(listing.instructions.is_some())]);
    let instructions = listing.instructions.as_deref().unwrap_or_default();
    hash.update((instructions.len() as u64).to_be_bytes());
    hash.update(instructions);
    for digest in digests {
        hash.update(digest);
    }
    ListingDigest(hash.finalize().into())
}

/// Covers a listing and the names that stay writes in it.
pub(super) fn held_digest(listing: ListingDigest, names: &[Box<str>]) -> ListingDigest {
    let mut hash = Sha256::new();
    hash.update(listing.0);
    for name in names {
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name.as_bytes());
    }
    ListingDigest(hash.finalize().into())
}
