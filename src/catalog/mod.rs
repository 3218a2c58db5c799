//! A caller's tools: listed once, shared by content, kept for a bounded time.
//!
//! [`CatalogCache`] is the door: give it a caller, get a [`Catalog`]. What depends on one tool alone is an
//! [`IndexedTool`], shared by all who list it; what depends on a whole listing is a [`Catalog`], shared by all
//! who have that listing.
//!
//! **A caller's catalogue comes from a listing made with that caller's credentials, and from nothing else.** Sharing
//! is by the SHA-256 of bytes, so two callers share only what both were given.
//!
//! Deliberately not here: ranking (`search`), and what may be called (`tools`).

mod cache;
mod digest;
mod document;
mod listing;
mod lookalikes;
mod store;
mod tool;

pub use cache::{CatalogCache, CatalogCacheOptions, CatalogCacheStats};
pub use listing::{Catalog, Named};
pub use store::{CatalogStore, CatalogStoreOptions};
pub use tool::{IndexedTool, WriteTools, WriteToolsError, analyze_definition};
