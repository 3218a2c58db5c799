//! The text of a tool definition that ranking reads: name, title, description, and the parameters of its schema as a
//! flat list, with nested objects, arrays, alternatives and local references.

use crate::search::{Document, Parameter};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Deeper parameters are not what anyone searches for.
const DEPTH_MAX: usize = 6;

/// A larger schema is not read: what its JSON becomes takes up to twenty times its bytes while it is read, and no tool is
/// found by parameters of that number.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// More parameters than this are not read.
const PARAMETERS_MAX: usize = 256;

/// A JSON value of which only texts are kept, each borrowed where it stands without escapes.
#[derive(Debug)]
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// Sorted by key, each key once.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    Other,
}

impl<'a> Node<'a> {
    fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        // Schemas have a handful of keywords, whose lengths differ.
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    fn list(&self) -> &[Self] {
        if let Self::List(values) = self { values } else { &[] }
    }

    fn members(&self) -> &[(Cow<'a, str>, Self)] {
        if let Self::Object(members) = self { members } else { &[] }
    }

    /// What a JSON pointer (RFC 6901) leads to.
    fn at(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |node, step| match node {
            Self::Object(_) => node.get(&step.replace("~1", "/").replace("~0", "~")),
            Self::List(values) => values.get(step.parse::<usize>().ok()?),
            Self::Text(_) | Self::Other => None,
        })
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NodeVisitor;

        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = Node<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Node::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Node::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Node::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Node::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Node::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Node::Other)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Node::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Node::List(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Cow<'de, str>, Node<'de>)> = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                // Of equal keys the last counts; the sort keeps their order.
                members.reverse();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                members.dedup_by(|(later, _), (first, _)| later == first);
                Ok(Node::Object(members))
            }
        }

        deserializer.deserialize_any(NodeVisitor)
    }
}

/// A member's name, borrowed where it can be: the derived `Cow` of the standard library never is.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// All parameters of `schema`, outer ones first within each object.
fn parameters<'a>(schema: &'a Node<'a>) -> Vec<Parameter<'a>> {
    let mut found = Vec::new();
    walk(schema, schema, 0, &mut found);
    found
}

fn walk<'a>(root: &'a Node<'a>, schema: &'a Node<'a>, depth: usize, found: &mut Vec<Parameter<'a>>) {
    let schema = resolved(root, schema);
    if !matches!(schema, Node::Object(_)) || depth >= DEPTH_MAX {
        return;
    }
    for (name, property) in schema.get("properties").map(Node::members).unwrap_or_default() {
        if found.len() >= PARAMETERS_MAX {
            return;
        }
        found.push(parameter(root, name, property));
        walk(root, property, depth + 1, found);
    }
    if let Some(items) = schema.get("items") {
        walk(root, items, depth + 1, found);
    }
    for part in parts(schema) {
        walk(root, part, depth + 1, found);
    }
}

fn parameter<'a>(root: &'a Node<'a>, name: &'a str, property: &'a Node<'a>) -> Parameter<'a> {
    let target = resolved(root, property);
    let description = |value: &'a Node<'a>| value.get("description").and_then(Node::text);
    let mut enum_values = Vec::new();
    add_enum(root, target, 0, &mut enum_values);
    Parameter {
        name,
        description: description(property).or_else(|| description(target)).unwrap_or_default(),
        enum_values,
    }
}

fn add_enum<'a>(root: &'a Node<'a>, schema: &'a Node<'a>, depth: usize, values: &mut Vec<&'a str>) {
    let object = resolved(root, schema);
    if !matches!(object, Node::Object(_)) || depth >= 3 {
        return;
    }
    values.extend(object.get("enum").map(Node::list).unwrap_or_default().iter().filter_map(Node::text));
    values.extend(object.get("const").and_then(Node::text));
    for part in parts(object).chain(object.get("items")) {
        add_enum(root, part, depth + 1, values);
    }
}

fn parts<'a>(schema: &'a Node<'a>) -> impl Iterator<Item = &'a Node<'a>> {
    ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)).flat_map(Node::list)
}

/// What a reference inside the same document points to; anything else is itself.
fn resolved<'a>(root: &'a Node<'a>, schema: &'a Node<'a>) -> &'a Node<'a> {
    let target = schema.get("$ref").and_then(Node::text).and_then(|path| path.strip_prefix('#'));
    target.and_then(|path| root.at(path)).unwrap_or(schema)
}

/// Gives `read` the tool's text as a document, every string borrowed from where it is.
pub(super) fn with_document<T>(
    name: &str,
    title: &str,
    description: &str,
    input_schema: Option<&RawValue>,
    read: impl FnOnce(&Document<'_>) -> T,
) -> T {
    // A schema that nests too deep for the parser is still a tool, found by its name and description.
    let schema = input_schema.filter(|schema| schema.get().len() <= SCHEMA_BYTES_MAX);
    let schema = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
    let schema: Node<'_> = schema.unwrap_or(Node::Other);
    read(&Document { name, title, description, parameters: parameters(&schema) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_and_referenced_parameters_are_flat() {
        let schema = json!({
            "$defs": {"Point": {"description": "A place.", "properties": {"lat": {"type": "number"}}}},
            "properties": {
                "at": {"$ref": "#/$defs/Point"},
                "tags": {"items": {"properties": {"label": {"description": "Its name."}}}},
                "mode": {"anyOf": [{"enum": ["fast", "slow"]}, {"type": "null"}]},
            }
        });
        let text = schema.to_string();
        let schema: Node<'_> = serde_json::from_str(&text).unwrap();
        let found = parameters(&schema);
        let mut names: Vec<_> = found.iter().map(|parameter| parameter.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["at", "label", "lat", "mode", "tags"]);
        assert!(found.iter().any(|parameter| parameter.description == "A place."));
        assert!(found.iter().any(|parameter| parameter.enum_values == ["fast", "slow"]));
    }

    #[test]
    fn t_x12_a_schema_over_its_limit_is_not_read() {
        let count = |bytes: usize| {
            let start = r#"{"properties":{"at":{"description":""#;
            let text = format!("{start}{}\"}}}}}}", "x".repeat(bytes - start.len() - 4));
            assert_eq!(text.len(), bytes);
            let schema: &RawValue = serde_json::from_str(&text).unwrap();
            with_document("a", "", "", Some(schema), |document| document.parameters.len())
        };
        assert_eq!((count(SCHEMA_BYTES_MAX), count(SCHEMA_BYTES_MAX + 1)), (1, 0));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema: Node<'_> = serde_json::from_str(r##"{"properties": {"next": {"$ref": "#"}}}"##).unwrap();
        assert_eq!(parameters(&schema).len(), DEPTH_MAX);
    }
}
