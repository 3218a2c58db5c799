//! [`HitTexts`]: what a search answer says of a tool, ready to be put into one.
//!
//! Descriptions are shortened and schemas made compact, and all of it is escaped, since an answer is JSON in a JSON string.
//! That is most of the work of an answer and depends on the tool's definition alone. So it is kept by the digest of the
//! definition, for the tools that are found, within a bound; the least recently used texts go first.

use super::kept::Kept;
use super::schema_summary;
use super::text::{ObjectText, escaped, shortened, visible};
use crate::catalog::IndexedTool;
use std::borrow::Cow;
use std::sync::Arc;

/// Most bytes of texts that are kept: those of some 2,000 tools.
const BYTES_MAX: usize = 2 << 20;
/// Memory of a text beside its bytes.
const BYTES_OF_AN_ENTRY: usize = 200;
/// A longer description is cut behind a sentence; in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// The texts of the tools that were found of late.
pub(super) struct HitTexts {
    /// Largest input schema; a larger one is made compact.
    schema_bytes: usize,
    kept: Kept<([u8; 32], Part), Arc<str>>,
}

/// What a text is of. Most hits of an answer come without their schema.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Head,
    Schema,
}

impl HitTexts {
    /// None yet. Schemas of more than `schema_bytes` will be made compact.
    pub(super) fn new(schema_bytes: usize) -> Self {
        Self { schema_bytes, kept: Kept::new(BYTES_MAX) }
    }

    /// Name and description, the first members of a hit: from its opening brace on, without a comma behind.
    pub(super) fn head(&self, tool: &IndexedTool) -> Arc<str> {
        self.text(tool, Part::Head, || head(tool))
    }

    /// The members about the input schema, with a comma before each; empty where there is no schema.
    pub(super) fn schema(&self, tool: &IndexedTool) -> Arc<str> {
        self.text(tool, Part::Schema, || schema(tool, self.schema_bytes))
    }

    fn text(&self, tool: &IndexedTool, part: Part, make: impl FnOnce() -> String) -> Arc<str> {
        let key = (tool.digest(), part);
        self.kept.get(&key).unwrap_or_else(|| {
            // Made without a lock; two may do the same work.
            let text: Arc<str> = escaped(&make()).into();
            self.kept.put(key, Arc::clone(&text), text.len() + BYTES_OF_AN_ENTRY);
            text
        })
    }
}

/// An object's first members, without its end.
fn head(tool: &IndexedTool) -> String {
    let mut out = ObjectText::new();
    out.text("name", tool.name());
    if !tool.description().is_empty() {
        let description = shortened(tool.description(), DESCRIPTION_CHARS_MAX);
        let description = visible(&description);
        out.text("description", &description);
        if matches!(description, Cow::Owned(_)) {
            out.flag("hiddenText", true);
        }
    }
    out.unfinished()
}

/// An object's last members, without its beginning.
fn schema(tool: &IndexedTool, bytes_max: usize) -> String {
    let Some(schema) = tool.input_schema() else { return String::new() };
    let summary = schema_summary::compact(schema, bytes_max);
    let mut out = ObjectText::going_on();
    out.raw("inputSchema", summary.schema.get());
    if !summary.trimmed.is_empty() {
        out.texts("trimmed", &summary.trimmed);
    } else if !summary.whole {
        // Only words of descriptions are missing, so the call can be made as it is.
        out.flag("shortened", true);
    }
    out.unfinished()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_x12_texts_are_kept_within_a_bound_and_the_least_recently_used_go_first() {
        let weight = 800 + BYTES_OF_AN_ENTRY;
        let kept = Kept::new(3 * weight);
        let text: Arc<str> = "x".repeat(800).into();
        for (number, part) in [(1, Part::Head), (1, Part::Schema), (2, Part::Head)] {
            kept.put(([number; 32], part), Arc::clone(&text), weight);
        }
        // The same again weighs nothing more.
        kept.put(([2; 32], Part::Head), Arc::clone(&text), weight);
        assert!(kept.bytes() == 3 * weight && kept.get(&([1; 32], Part::Head)).is_some());
        kept.put(([3; 32], Part::Head), text, weight);
        let held = [(1, Part::Head), (1, Part::Schema), (2, Part::Head), (3, Part::Head)]
            .map(|(number, part)| kept.contains(&([number; 32], part)));
        assert_eq!((held, kept.bytes()), ([true, false, true, true], 3 * weight));
        kept.put(([4; 32], Part::Head), "y".into(), 4 * weight);
        assert!(!kept.contains(&([4; 32], Part::Head)) && kept.bytes() == 3 * weight);
    }
}
