//! [`IndexedTool`]: one tool definition and everything that is known from it alone.

use super::digest::ContentDigest;
use super::document;
use crate::budget::{Budget, Weight, on_heap};
use crate::mcp::{Object, ParamHeader, ParamHeaderFault, from_object, param_headers, present};
use crate::search::{AnalyzedDocument, Ranker};
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a tool takes beside itself: its entry in the store, which is half empty after it has grown.
const ENTRY: usize = 96;

/// Globs of tools that count as writes whatever their annotations say.
#[derive(Clone, Debug, Default)]
pub struct WriteTools(GlobSet);

/// A glob that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a valid glob")]
pub struct WriteToolsError(String);

impl WriteTools {
    /// Compiles globs over whole tool names; `*` matches any characters.
    ///
    /// # Errors
    /// Names the first glob that is not valid.
    pub fn new(globs: &[String]) -> Result<Self, WriteToolsError> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(Glob::new(glob).map_err(|_| WriteToolsError(glob.clone()))?);
        }
        set.build().map(Self).map_err(|_| WriteToolsError(globs.join(",")))
    }

    fn contains(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// A tool as one or more callers list it. Immutable.
pub struct IndexedTool {
    definition: Box<str>,
    name: Box<str>,
    description: Box<str>,
    /// Where the input schema stands in the definition; empty when there is none.
    input_schema: Range<usize>,
    digest: ContentDigest,
    read_only: bool,
    /// The headers that a modern upstream wants, or why their annotations are invalid.
    param_headers: Result<Box<[ParamHeader]>, ParamHeaderFault>,
    analyzed: Arc<AnalyzedDocument>,
    weight: Weight,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    annotations: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    read_only_hint: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    destructive_hint: Option<&'a RawValue>,
}

/// A JSON string's text, or nothing for any other value.
fn string(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl Definition<'_> {
    /// Reads a definition; `None` when it is no object with one name.
    fn parse(text: &str) -> Option<(Definition<'_>, Annotations<'_>)> {
        let definition = serde_json::from_str(text).ok().map(|Object(definition)| definition);
        let definition: Definition<'_> =
            definition.or_else(|| Definition::with_repeated_members(text.as_bytes()))?;
        // Annotations that can't be read, or that repeat a hint, grant nothing.
        let annotations = definition
            .annotations
            .and_then(|annotations| from_object(annotations.get().as_bytes()).ok())
            .unwrap_or_default();
        Some((definition, annotations))
    }

    /// Reads a definition that names a member twice, other than the name. Nobody can tell which annotations or which
    /// schema is meant, so it is a write whose arguments are not checked.
    fn with_repeated_members(bytes: &[u8]) -> Option<Definition<'_>> {
        #[derive(Deserialize)]
        struct Name<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        let Name { name } = from_object(bytes).ok()?;
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(bytes).ok()?;
        let member = |name| members.get(name).copied();
        let (title, description) = (member("title"), member("description"));
        Some(Definition { name, title, description, input_schema: None, annotations: None })
    }

    fn analyze(&self, annotations: &Annotations<'_>, description: &str, ranker: &Ranker) -> AnalyzedDocument {
        let title = string(self.title.or(annotations.title));
        document::with_document(&self.name, &title, description, self.input_schema, |document| {
            ranker.analyze(document)
        })
    }
}

/// A definition's name and analyzed text, for ranking outside of a catalogue. `None` as for a tool that can't be called.
pub fn analyze_definition(bytes: &[u8], ranker: &Ranker) -> Option<(String, AnalyzedDocument)> {
    let (definition, annotations) = Definition::parse(std::str::from_utf8(bytes).ok()?)?;
    let analyzed = definition.analyze(&annotations, &string(definition.description), ranker);
    Some((definition.name.into_owned(), analyzed))
}

impl IndexedTool {
    /// Reads and analyzes one definition, whose digest is given. `None` when it is no object with one name: such a tool
    /// can't be called.
    ///
    /// # Cost
    /// A few microseconds per KiB, plus the embedding of its text.
    pub(super) fn new(
        bytes: &[u8],
        digest: ContentDigest,
        ranker: &Ranker,
        write_tools: &WriteTools,
        budget: &Arc<Budget>,
    ) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (definition, annotations) = Definition::parse(text)?;
        let is_true = |hint: Option<&RawValue>| hint.is_some_and(|hint| hint.get() == "true");
        let read_only = is_true(annotations.read_only_hint)
            && !is_true(annotations.destructive_hint)
            && !write_tools.contains(&definition.name);
        let description = string(definition.description);
        let analyzed = Arc::new(definition.analyze(&annotations, &description, ranker));
        let input_schema = definition.input_schema.map_or(0..0, |schema| {
            // The schema is borrowed from `text`, so its place there is a subtraction.
            let start = schema.get().as_ptr().addr() - text.as_ptr().addr();
            start..start + schema.get().len()
        });
        let param_headers =
            definition.input_schema.map_or(Ok(Vec::new()), param_headers).map(Vec::into_boxed_slice);
        /// The two counts before what is shared.
        const COUNTS: usize = 2 * size_of::<usize>();
        let headers = param_headers.as_deref().unwrap_or_default().iter();
        let bytes_held = ENTRY
            + on_heap(COUNTS + size_of::<Self>())
            + on_heap(COUNTS + size_of::<AnalyzedDocument>())
            + on_heap(bytes.len())
            + on_heap(definition.name.len())
            + on_heap(description.len())
            + on_heap(analyzed.heap_bytes())
            + headers.map(ParamHeader::heap_bytes).sum::<usize>();
        Some(Self {
            name: definition.name.as_ref().into(),
            description: description.into(),
            input_schema,
            digest,
            read_only,
            param_headers,
            analyzed,
            weight: budget.weigh(bytes_held),
            definition: text.into(),
        })
    }

    /// The definition's bytes as the upstream gave them.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// The name, exactly.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description; empty when there is none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The input schema, raw; `None` when the definition has none.
    pub fn input_schema(&self) -> Option<&RawValue> {
        // The bytes were a JSON value when the definition was read.
        serde_json::from_str(self.definition.get(self.input_schema.clone())?).ok()
    }

    /// SHA-256 of the definition's bytes.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether the upstream marks the tool read-only, does not also mark it destructive, and the operator does not
    /// say otherwise.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The arguments that a modern upstream wants as headers too.
    pub fn param_headers(&self) -> &[ParamHeader] {
        self.param_headers.as_deref().unwrap_or(&[])
    }

    /// How the header annotations break the protocol, if they do. Such a tool must not be offered.
    pub(super) fn param_header_fault(&self) -> Option<&ParamHeaderFault> {
        self.param_headers.as_ref().err()
    }

    /// What it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.weight.bytes()
    }

    pub(super) fn analyzed(&self) -> &Arc<AnalyzedDocument> {
        &self.analyzed
    }
}

#[cfg(test)]
mod tests {
    use super::super::digest::digest;
    use super::*;
    use crate::search::RankerOptions;

    fn tool_with(definition: &str, globs: &[&str]) -> Option<IndexedTool> {
        let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
        let write_tools = WriteTools::new(&globs).unwrap();
        IndexedTool::new(
            definition.as_bytes(),
            digest(definition.as_bytes()),
            &Ranker::new(RankerOptions::default(), None),
            &write_tools,
            &Budget::new(usize::MAX),
        )
    }

    fn is_read(annotations: &str) -> bool {
        tool_with(&format!(r#"{{"name":"a","annotations":{annotations}}}"#), &[]).unwrap().is_read_only()
    }

    #[test]
    fn t_r1_only_the_literal_true_is_read_only() {
        assert!(is_read(r#"{"readOnlyHint":true}"#));
        assert!(is_read(r#"{"readOnlyHint": true ,"destructiveHint":false,"x":[]}"#));
        for annotations in [
            "{}",
            "null",
            "[]",
            "true",
            r#"{"readOnlyHint":"true"}"#,
            r#"{"readOnlyHint":1}"#,
            r#"{"readOnlyHint":null}"#,
            r#"{"readOnlyHint":false}"#,
            r#"{"readOnlyHint":[true]}"#,
            r#"{"readonlyHint":true}"#,
            r#"{"read_only_hint":true}"#,
            r#"{"ReadOnlyHint":true}"#,
            r#"{"x":{"readOnlyHint":true}}"#,
            r#"{"readOnlyHint":true,"readOnlyHint":true}"#,
            r#"{"readOnlyHint":true,"readOnlyHint":false}"#,
            r#"{"readOnlyHint":{"value":true}}"#,
        ] {
            assert!(!is_read(annotations), "{annotations}");
        }
        assert!(!tool_with(r#"{"name":"a","readOnlyHint":true}"#, &[]).unwrap().is_read_only());
    }

    #[test]
    fn t_r2_a_tool_marked_both_ways_is_a_write() {
        assert!(!is_read(r#"{"readOnlyHint":true,"destructiveHint":true}"#));
    }

    #[test]
    fn the_operator_can_make_a_tool_a_write() {
        let definition = r#"{"name":"git__push","annotations":{"readOnlyHint":true}}"#;
        assert!(tool_with(definition, &["git__pull", "mail*"]).unwrap().is_read_only());
        assert!(!tool_with(definition, &["git__*"]).unwrap().is_read_only());
        assert!(WriteTools::new(&["[".to_owned()]).is_err());
    }

    #[test]
    fn definitions_keep_their_bytes_and_odd_ones_lose_nothing() {
        let definition = "{ \"name\" : \"žiūrėti\", \"x\":1e400, \"inputSchema\" : { \"type\":\"object\" } }";
        let tool = tool_with(definition, &[]).unwrap();
        assert_eq!(tool.definition(), definition);
        assert_eq!(tool.name(), "žiūrėti");
        assert_eq!(tool.input_schema().unwrap().get(), "{ \"type\":\"object\" }");
        for odd in [r#"{"name":"a","title":7,"description":null,"inputSchema":null}"#, r#"{"name":""}"#] {
            assert_eq!(tool_with(odd, &[]).unwrap().definition(), odd);
        }
        for unusable in ["{}", "[]", r#"{"name":null}"#, r#"{"name":"a","name":"b"}"#, "7"] {
            assert!(tool_with(unusable, &[]).is_none(), "{unusable}");
        }
    }

    #[test]
    fn bytes_are_counted_while_a_tool_lives() {
        let budget = Budget::new(usize::MAX);
        let tool = IndexedTool::new(
            br#"{"name":"a"}"#,
            [0; 32],
            &Ranker::new(RankerOptions::default(), None),
            &WriteTools::default(),
            &budget,
        );
        assert!(budget.counted() > size_of::<IndexedTool>());
        drop(tool);
        assert_eq!(budget.counted(), 0);
    }
}
