//! Compiled input schemas, kept for the tools that are called.

use super::arguments::ArgumentSchema;
use crate::catalog::IndexedTool;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// Most compiled schemas that are kept. A tool is compiled on its first call, never when it is listed.
const KEPT_MAX: NonZeroUsize = NonZeroUsize::new(2_000).expect("2,000 is not zero");

/// Schemas by the digest of the definition that they are part of.
pub(super) struct ArgumentSchemas(Mutex<LruCache<[u8; 32], Arc<ArgumentSchema>>>);

impl Default for ArgumentSchemas {
    fn default() -> Self {
        let mut kept = LruCache::unbounded();
        kept.resize(KEPT_MAX);
        Self(Mutex::new(kept))
    }
}

impl ArgumentSchemas {
    /// The tool's schema, compiled now or before.
    pub(super) fn of(&self, tool: &IndexedTool) -> Arc<ArgumentSchema> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = lock().get(&tool.digest()) {
            return Arc::clone(schema);
        }
        // Compiled without the lock; two callers may do the same work.
        let schema =
            Arc::new(tool.input_schema().map_or_else(ArgumentSchema::missing, ArgumentSchema::compile));
        lock().put(tool.digest(), Arc::clone(&schema));
        schema
    }
}
