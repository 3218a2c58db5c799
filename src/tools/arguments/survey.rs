//! Measures an untrusted schema before anything recursive sees it, and says why it is not worth compiling.
//!
//! A schema of 2 KB can cost seconds to evaluate and one of a few thousand levels ends the process, and neither can be
//! stopped half way. So the text is scanned for its depth before it is parsed, the parsed schema is laid out as a graph
//! without recursion, and the graph answers three questions: do all references stay inside, does a reference lead back
//! to itself without going down into the instance, and how many paths lead through it.

use std::collections::HashMap;

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::Unchecked;
use super::keywords::{self, Holds, Reach};

/// Bytes of a schema's text. The largest of 4,600 published tools has 10 KB.
pub(super) const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Nesting of objects and arrays in the text; published tools reach 16.
const NESTING_MAX: usize = 96;
/// Schemas inside schemas.
const SUBSCHEMA_DEPTH_MAX: usize = 32;
const SUBSCHEMAS_MAX: usize = 2_000;
const REFERENCES_MAX: usize = 256;
/// Ways through the schema, counted with every reference written out.
const PATHS_MAX: u64 = 100_000;
/// Schemas on one path, counted with every reference followed once: what a compiler's recursion can reach.
const PATH_LENGTH_MAX: u32 = 128;

/// What the graph of an acceptable schema tells.
#[derive(Debug)]
pub(super) struct Survey {
    /// The longest chain of schemas that look at one and the same value.
    pub(super) height: u32,
    /// Every `pattern`, and every name in `patternProperties`, in no particular order.
    pub(super) patterns: Vec<Pattern>,
}

/// A regular expression of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// It names properties, so what it skips changes what `additionalProperties` sees.
    pub(super) names_properties: bool,
}

/// The deepest nesting of objects and arrays in valid JSON text.
pub(super) fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in json.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Parses the text of a schema, or says why not.
pub(super) fn parse(json: &str) -> Result<Value, Unchecked> {
    if json.len() > SCHEMA_BYTES_MAX {
        return Err(Unchecked::TooLarge);
    }
    if nesting(json) > NESTING_MAX {
        return Err(Unchecked::TooDeep);
    }
    serde_json::from_str(json).map_err(|_| Unchecked::Invalid)
}

/// Lays the schema out and measures it.
///
/// # Cost
///
/// Linear in the schema's bytes; 64 KiB take well under a millisecond.
pub(super) fn survey(root: &Value, draft: Draft) -> Result<Survey, Unchecked> {
    let mut graph = Graph::default();
    graph.lay_out(root, draft)?;
    graph.link_references(root, draft)?;
    let reached = graph.count_paths()?;
    let height = graph.measure_height(&reached)?;
    Ok(Survey { height, patterns: graph.patterns })
}

#[derive(Debug, Default)]
struct Node {
    same: Vec<usize>,
    below: Vec<usize>,
    references: Vec<String>,
}

#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    by_pointer: HashMap<String, usize>,
    by_anchor: HashMap<String, usize>,
    patterns: Vec<Pattern>,
    reference_count: usize,
}

/// A schema that is still to be laid out.
struct Todo<'a> {
    schema: &'a Value,
    pointer: String,
    depth: usize,
    parent: Option<(usize, Reach)>,
}

impl Graph {
    fn lay_out(&mut self, root: &Value, draft: Draft) -> Result<(), Unchecked> {
        let mut todo = vec![Todo { schema: root, pointer: String::new(), depth: 1, parent: None }];
        while let Some(next) = todo.pop() {
            if next.depth > SUBSCHEMA_DEPTH_MAX {
                return Err(Unchecked::TooDeep);
            }
            if self.nodes.len() >= SUBSCHEMAS_MAX {
                return Err(Unchecked::TooManySubschemas);
            }
            let index = self.nodes.len();
            self.nodes.push(Node::default());
            match next.parent {
                Some((parent, Reach::Same)) => self.nodes[parent].same.push(index),
                Some((parent, Reach::Below)) => self.nodes[parent].below.push(index),
                Some((_, Reach::Nothing)) | None => {}
            }
            if let Value::Object(keywords) = next.schema {
                self.note_keywords(index, keywords, draft)?;
                for (keyword, value) in keywords {
                    push_children(&mut todo, &next, index, keyword, value);
                }
            }
            self.by_pointer.insert(next.pointer, index);
        }
        Ok(())
    }

    fn note_keywords(
        &mut self,
        index: usize,
        keywords: &Map<String, Value>,
        draft: Draft,
    ) -> Result<(), Unchecked> {
        for reference in keywords::REFERENCES {
            if let Some(Value::String(target)) = keywords.get(reference) {
                self.reference_count += 1;
                if self.reference_count > REFERENCES_MAX {
                    return Err(Unchecked::TooManyReferences);
                }
                self.nodes[index].references.push(target.clone());
            }
        }
        for anchor in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = keywords.get(anchor) {
                self.by_anchor.insert(name.clone(), index);
            }
        }
        if let Some(Value::String(id)) = keywords.get(id_keyword(draft)) {
            // A resource inside the resource changes what every reference under it means.
            match id.strip_prefix('#') {
                Some(name) => drop(self.by_anchor.insert(name.to_owned(), index)),
                None if index != 0 => return Err(Unchecked::EmbeddedResource),
                None => {}
            }
        }
        if let Some(Value::String(text)) = keywords.get("pattern") {
            self.patterns.push(Pattern { text: text.clone(), names_properties: false });
        }
        if let Some(Value::Object(by_pattern)) = keywords.get("patternProperties") {
            let named = by_pattern.keys().map(|text| Pattern { text: text.clone(), names_properties: true });
            self.patterns.extend(named);
        }
        Ok(())
    }

    fn link_references(&mut self, root: &Value, draft: Draft) -> Result<(), Unchecked> {
        let root_id = root.get(id_keyword(draft)).and_then(Value::as_str).unwrap_or("").trim_end_matches('#');
        for index in 0..self.nodes.len() {
            for reference in std::mem::take(&mut self.nodes[index].references) {
                let local =
                    reference.strip_prefix(root_id).filter(|rest| rest.is_empty() || rest.starts_with('#'));
                let fragment = match (local, reference.strip_prefix('#')) {
                    (_, Some(fragment)) => fragment,
                    (Some(rest), None) => rest.trim_start_matches('#'),
                    (None, None) => return Err(Unchecked::ExternalReference),
                };
                let fragment = percent_decode(fragment);
                let target = if fragment.is_empty() || fragment.starts_with('/') {
                    self.by_pointer.get(&fragment)
                } else {
                    self.by_anchor.get(&fragment)
                };
                let target = *target.ok_or(Unchecked::UnresolvedReference)?;
                self.nodes[index].same.push(target);
            }
        }
        Ok(())
    }

    /// Counts the ways through the schema and tells which nodes the root reaches.
    fn count_paths(&self) -> Result<Vec<bool>, Unchecked> {
        let mut paths = vec![0_u64; self.nodes.len()];
        let mut lengths = vec![0_u32; self.nodes.len()];
        let mut visits = Visits::new(self.nodes.len());
        visits.start(0);
        while let Some((node, step)) = visits.current() {
            let edges = &self.nodes[node];
            let child = edges.same.iter().chain(&edges.below).nth(step).copied();
            match child {
                // A way back up goes down into the instance each time round, and the budget counts those.
                Some(child) => drop(visits.enter(child)),
                None => {
                    let children = edges.same.iter().chain(&edges.below);
                    let (total, longest) = children.fold((1_u64, 0_u32), |(total, longest), &child| {
                        (total.saturating_add(paths[child].max(1)), longest.max(lengths[child]))
                    });
                    paths[node] = total;
                    lengths[node] = longest + 1;
                    visits.leave();
                }
            }
        }
        if paths[0] > PATHS_MAX {
            return Err(Unchecked::TooManyPaths);
        }
        if lengths[0] > PATH_LENGTH_MAX {
            return Err(Unchecked::TooDeep);
        }
        Ok(paths.iter().map(|&paths| paths > 0).collect())
    }

    /// The longest chain of schemas on one value, or that such a chain never ends.
    fn measure_height(&self, reached: &[bool]) -> Result<u32, Unchecked> {
        let mut heights = vec![0_u32; self.nodes.len()];
        let mut visits = Visits::new(self.nodes.len());
        for start in (0..self.nodes.len()).filter(|&node| reached[node]) {
            visits.start(start);
            while let Some((node, step)) = visits.current() {
                match self.nodes[node].same.get(step) {
                    Some(&child) => {
                        if visits.enter(child) == Entered::Open {
                            return Err(Unchecked::ReferenceLoop);
                        }
                    }
                    None => {
                        let below = self.nodes[node].same.iter().map(|&child| heights[child]).max();
                        heights[node] = below.unwrap_or(0) + 1;
                        visits.leave();
                    }
                }
            }
        }
        Ok(heights.into_iter().max().unwrap_or(1))
    }
}

/// A depth first visit without recursion: each node once, children before parents.
struct Visits {
    state: Vec<Entered>,
    stack: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    New,
    Open,
    Done,
}

impl Visits {
    fn new(nodes: usize) -> Self {
        Self { state: vec![Entered::New; nodes], stack: Vec::new() }
    }

    fn start(&mut self, node: usize) {
        let _ = self.enter(node);
    }

    /// The node on top, and which of its children is next.
    fn current(&self) -> Option<(usize, usize)> {
        self.stack.last().copied()
    }

    /// Steps past one child of the node on top and into it if it is new; tells what it was.
    fn enter(&mut self, node: usize) -> Entered {
        if let Some((_, step)) = self.stack.last_mut() {
            *step += 1;
        }
        let was = self.state[node];
        if was == Entered::New {
            self.state[node] = Entered::Open;
            self.stack.push((node, 0));
        }
        was
    }

    fn leave(&mut self) {
        if let Some((node, _)) = self.stack.pop() {
            self.state[node] = Entered::Done;
        }
    }
}

fn push_children<'a>(todo: &mut Vec<Todo<'a>>, of: &Todo<'_>, index: usize, keyword: &str, value: &'a Value) {
    let (holds, reach) = keywords::place(keyword);
    let pointer = format!("{}/{}", of.pointer, escape_pointer(keyword));
    let mut push = |schema: &'a Value, pointer: String| {
        if matches!(schema, Value::Object(_) | Value::Bool(_)) {
            todo.push(Todo { schema, pointer, depth: of.depth + 1, parent: Some((index, reach)) });
        }
    };
    match (holds, value) {
        (Holds::Map, Value::Object(by_name)) => {
            for (name, schema) in by_name {
                push(schema, format!("{pointer}/{}", escape_pointer(name)));
            }
        }
        (Holds::SchemaOrList, Value::Array(schemas)) => {
            for (position, schema) in schemas.iter().enumerate() {
                push(schema, format!("{pointer}/{position}"));
            }
        }
        (Holds::Schema | Holds::SchemaOrList, schema) => push(schema, pointer),
        (Holds::Values | Holds::Map, _) => {}
    }
}

fn id_keyword(draft: Draft) -> &'static str {
    if draft == Draft::Draft4 { "id" } else { "$id" }
}

/// A name as a segment of a JSON Pointer (RFC 6901).
pub(super) fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                decoded.push(byte);
                at += 3;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
