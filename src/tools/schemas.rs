//! Compiled input schemas, kept for the tools that are called, within a budget of memory.

use super::arguments::ArgumentSchema;
use super::kept::Kept;
use crate::catalog::IndexedTool;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Memory of a compiled schema for each byte of its text: 30 to 50 where a schema is many small parts, less otherwise.
const BYTES_OF_A_BYTE: usize = 50;
/// Memory of an entry whatever its schema.
const BYTES_OF_AN_ENTRY: usize = 512;

/// Schemas by the digest of the definition that they are part of; the least recently used go first.
pub(super) struct ArgumentSchemas(Kept<[u8; 32], Arc<ArgumentSchema>>);

impl ArgumentSchemas {
    /// None yet, and so many bytes of them at most, by estimate.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self(Kept::new(bytes_max))
    }

    /// The tool's schema, where it was compiled before. A tool is compiled on its first call, never when it is listed.
    pub(super) fn known(&self, digest: [u8; 32]) -> Option<Arc<ArgumentSchema>> {
        self.0.get(&digest)
    }

    /// The tool's schema, compiled now or before.
    pub(super) fn of(&self, tool: &IndexedTool) -> Arc<ArgumentSchema> {
        self.known(tool.digest()).unwrap_or_else(|| self.compile(tool.digest(), tool.input_schema()))
    }

    /// Compiles a schema and keeps it. One that is heavier than the whole budget serves once.
    pub(super) fn compile(&self, digest: [u8; 32], schema: Option<&RawValue>) -> Arc<ArgumentSchema> {
        // Compiled without the lock; two callers may do the same work.
        let compiled = Arc::new(schema.map_or_else(ArgumentSchema::missing, ArgumentSchema::compile));
        // What can't be checked holds no validator.
        let text = schema.filter(|_| compiled.unchecked().is_none()).map_or(0, |schema| schema.get().len());
        self.0.put(digest, Arc::clone(&compiled), BYTES_OF_AN_ENTRY + text * BYTES_OF_A_BYTE);
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(schemas: &ArgumentSchemas, number: u8, text: &str) -> bool {
        schemas.compile([number; 32], Some(serde_json::from_str(text).unwrap()));
        schemas.known([number; 32]).is_some()
    }

    #[test]
    fn t_x8_the_budget_is_of_bytes_and_the_least_recently_used_go_first() {
        let properties: Vec<String> = (0..100).map(|i| format!(r#""p{i}":{{"enum":["a","b"]}}"#)).collect();
        let large = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        let weight = BYTES_OF_AN_ENTRY + large.len() * BYTES_OF_A_BYTE;
        let schemas = ArgumentSchemas::new(weight * 2);
        assert!(compiled(&schemas, 1, &large) && compiled(&schemas, 2, &large));
        assert!(schemas.known([1; 32]).is_some());
        assert!(compiled(&schemas, 3, &large));
        let known = [1, 2, 3].map(|number| schemas.known([number; 32]).is_some());
        assert_eq!((known, schemas.0.bytes()), ([true, false, true], weight * 2));
        assert!(compiled(&schemas, 3, &large) && schemas.0.bytes() == weight * 2);
    }

    #[test]
    fn a_schema_over_the_whole_budget_serves_without_being_kept() {
        let schemas = ArgumentSchemas::new(1_000);
        assert!(!compiled(&schemas, 1, r#"{"type":"object","properties":{"a":{"type":"string"}}}"#));
        // A schema that is not checked weighs little, however long it is.
        assert!(compiled(&schemas, 2, &format!(r#"{{"type":"nonsense","title":"{}"}}"#, "x".repeat(9_000))));
    }
}
