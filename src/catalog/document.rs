//! The text of a tool definition that ranking reads: name, title, description, and the parameters of its schema as a
//! flat list, with nested objects, arrays, alternatives and local references.

use crate::search::{Document, Parameter};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Deeper parameters are not what anyone searches for.
const DEPTH_MAX: usize = 6;

/// A larger schema is not read: what its JSON becomes takes up to forty times its bytes while it is read, and no tool is
/// found by parameters of that number.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// More parameters than this are not read.
const PARAMETERS_MAX: usize = 256;

/// A JSON value of which only texts are kept, each borrowed where it stands without escapes. What objects hold lies in one
/// array and what lists hold in another, so that a schema of a hundred values is not a hundred allocations.
struct Tree<'j> {
    root: Node<'j>,
    /// Of all objects.
    members: Vec<Member<'j>>,
    /// Of all lists.
    elements: Vec<Node<'j>>,
}

struct Member<'j> {
    name: Cow<'j, str>,
    keyword: Option<Keyword>,
    value: Node<'j>,
}

/// What is read of a schema. A member's is found out once: schemas are looked at many times.
#[derive(Clone, Copy)]
enum Keyword {
    Reference,
    AllOf,
    AnyOf,
    Constant,
    Description,
    Values,
    Items,
    OneOf,
    Properties,
}

const KEYWORDS: usize = Keyword::Properties as usize + 1;

impl Keyword {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "$ref" => Self::Reference,
            "allOf" => Self::AllOf,
            "anyOf" => Self::AnyOf,
            "const" => Self::Constant,
            "description" => Self::Description,
            "enum" => Self::Values,
            "items" => Self::Items,
            "oneOf" => Self::OneOf,
            "properties" => Self::Properties,
            _ => return None,
        })
    }
}

#[derive(Debug)]
enum Node<'j> {
    Text(Cow<'j, str>),
    /// Where its elements lie.
    List(Range<usize>),
    /// Where its members lie, in the order in which they were written.
    Object(Range<usize>),
    Other,
}

impl<'j> Tree<'j> {
    /// A tree without anything when the text is no JSON, or nests too deep for the parser.
    fn read(json: &'j str) -> Self {
        let mut reader = Reader {
            members: Open { open: Vec::with_capacity(32), closed: Vec::with_capacity(64) },
            elements: Open { open: Vec::new(), closed: Vec::new() },
        };
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let root = ReadNode(&mut reader).deserialize(&mut deserializer);
        let root = root.and_then(|root| deserializer.end().map(|()| root)).unwrap_or(Node::Other);
        Self { root, members: reader.members.closed, elements: reader.elements.closed }
    }

    fn members(&self, node: &Node<'_>) -> &[Member<'j>] {
        if let Node::Object(range) = node { &self.members[range.clone()] } else { &[] }
    }

    fn list(&self, node: Option<&Node<'_>>) -> impl Iterator<Item = &Node<'j>> {
        let range = if let Some(Node::List(range)) = node { range.clone() } else { 0..0 };
        self.elements[range].iter()
    }

    /// The keywords of a schema; none when it is no object. Of equal ones the last counts.
    fn keywords<'a>(&'a self, node: &Node<'j>) -> Keywords<'a, 'j> {
        let mut keywords = Keywords::default();
        for Member { keyword, value, .. } in self.members(node) {
            if let Some(keyword) = keyword {
                keywords.0[*keyword as usize] = Some(value);
            }
        }
        keywords
    }

    /// The members of an object sorted by name, each name once.
    fn sorted_members(&self, node: Option<&Node<'_>>) -> Vec<&Member<'j>> {
        // Of equal names the last counts; the sort keeps their order.
        let members = node.map_or(&[][..], |node| self.members(node));
        let mut members: Vec<&Member<'_>> = members.iter().rev().collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        members.dedup_by(|one, other| one.name == other.name);
        members
    }

    /// What a JSON pointer (RFC 6901) leads to.
    fn at(&self, pointer: &str) -> Option<&Node<'j>> {
        if pointer.is_empty() {
            return Some(&self.root);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(&self.root, |node, step| match node {
            Node::Object(_) => {
                let step = step.replace("~1", "/").replace("~0", "~");
                self.members(node).iter().rev().find(|member| member.name == step).map(|member| &member.value)
            }
            Node::List(range) => self.elements[range.clone()].get(step.parse::<usize>().ok()?),
            Node::Text(_) | Node::Other => None,
        })
    }

    /// What a reference inside the same document points to; anything else is itself.
    fn resolved<'a>(&'a self, schema: &'a Node<'j>) -> &'a Node<'j> {
        let reference = self
            .members(schema)
            .iter()
            .rev()
            .find(|member| matches!(member.keyword, Some(Keyword::Reference)));
        let target = text(reference.map(|member| &member.value)).and_then(|path| path.strip_prefix('#'));
        target.and_then(|path| self.at(path)).unwrap_or(schema)
    }
}

/// What stands at each keyword of a schema.
#[derive(Default)]
struct Keywords<'a, 'j>([Option<&'a Node<'j>>; KEYWORDS]);

impl<'a, 'j> Keywords<'a, 'j> {
    fn at(&self, keyword: Keyword) -> Option<&'a Node<'j>> {
        self.0[keyword as usize]
    }

    fn parts(&self, tree: &'a Tree<'j>) -> impl Iterator<Item = &'a Node<'j>> {
        [Keyword::AnyOf, Keyword::OneOf, Keyword::AllOf]
            .map(|keyword| self.at(keyword))
            .into_iter()
            .flat_map(|parts| tree.list(parts))
    }
}

fn text<'a>(node: Option<&'a Node<'_>>) -> Option<&'a str> {
    node.and_then(Node::text)
}

impl Node<'_> {
    fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// What is read of a tree.
struct Reader<'j> {
    members: Open<Member<'j>>,
    elements: Open<Node<'j>>,
}

/// What values hold that are still open, and what those hold that are closed.
struct Open<T> {
    open: Vec<T>,
    closed: Vec<T>,
}

impl<T> Open<T> {
    /// Closes the value that holds what is open from `start` on.
    fn close(&mut self, start: usize) -> Range<usize> {
        let from = self.closed.len();
        self.closed.extend(self.open.drain(start..));
        from..self.closed.len()
    }
}

struct ReadNode<'r, 'j>(&'r mut Reader<'j>);

impl<'de> DeserializeSeed<'de> for ReadNode<'_, 'de> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadNode<'_, 'de> {
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
        let start = self.0.elements.open.len();
        while let Some(value) = seq.next_element_seed(ReadNode(self.0))? {
            self.0.elements.open.push(value);
        }
        Ok(Node::List(self.0.elements.close(start)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let start = self.0.members.open.len();
        while let Some(Key(key)) = map.next_key()? {
            let value = map.next_value_seed(ReadNode(self.0))?;
            self.0.members.open.push(Member { keyword: Keyword::of(&key), name: key, value });
        }
        Ok(Node::Object(self.0.members.close(start)))
    }
}

/// A member's name, borrowed where it can be: the derived `Cow` of the standard library never is.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// All parameters of a schema, outer ones first within each object.
fn parameters<'a>(tree: &'a Tree<'_>) -> Vec<Parameter<'a>> {
    let mut found = Vec::new();
    walk(tree, &tree.root, 0, &mut found);
    found
}

fn walk<'a, 'j>(tree: &'a Tree<'j>, schema: &'a Node<'j>, depth: usize, found: &mut Vec<Parameter<'a>>) {
    if depth >= DEPTH_MAX {
        return;
    }
    let keywords = tree.keywords(tree.resolved(schema));
    for Member { name, value: property, .. } in tree.sorted_members(keywords.at(Keyword::Properties)) {
        if found.len() >= PARAMETERS_MAX {
            return;
        }
        found.push(parameter(tree, name, property));
        walk(tree, property, depth + 1, found);
    }
    for part in keywords.at(Keyword::Items).into_iter().chain(keywords.parts(tree)) {
        walk(tree, part, depth + 1, found);
    }
}

fn parameter<'a, 'j>(tree: &'a Tree<'j>, name: &'a str, property: &'a Node<'j>) -> Parameter<'a> {
    let target = tree.resolved(property);
    let description = |node| text(tree.keywords(node).at(Keyword::Description));
    let mut enum_values = Vec::new();
    add_enum(tree, target, 0, &mut enum_values);
    Parameter {
        name,
        description: description(property).or_else(|| description(target)).unwrap_or_default(),
        enum_values,
    }
}

fn add_enum<'a, 'j>(tree: &'a Tree<'j>, schema: &'a Node<'j>, depth: usize, values: &mut Vec<&'a str>) {
    if depth >= 3 {
        return;
    }
    let keywords = tree.keywords(tree.resolved(schema));
    values.extend(tree.list(keywords.at(Keyword::Values)).filter_map(Node::text));
    values.extend(text(keywords.at(Keyword::Constant)));
    for part in keywords.parts(tree).chain(keywords.at(Keyword::Items)) {
        add_enum(tree, part, depth + 1, values);
    }
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
    let schema = Tree::read(schema.map_or("null", RawValue::get));
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
        let schema = Tree::read(&text);
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
        let schema = Tree::read(r##"{"properties": {"next": {"$ref": "#"}}}"##);
        assert_eq!(parameters(&schema).len(), DEPTH_MAX);
    }
}
