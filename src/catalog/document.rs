//! The text of a tool definition that ranking reads: name, title, description, and the parameters of its schema as a
//! flat list, with nested objects, arrays, alternatives and local references.

use crate::search::{Document, Parameter};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Deeper parameters are not what anyone searches for.
const DEPTH_MAX: usize = 6;

/// More parameters than this are not read.
const PARAMETERS_MAX: usize = 256;

/// All parameters of `schema`, outer ones first within each object.
fn parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let mut found = Vec::new();
    walk(schema, schema, 0, &mut found);
    found
}

fn walk<'a>(root: &'a Value, schema: &'a Value, depth: usize, found: &mut Vec<Parameter<'a>>) {
    let Some(schema) = resolved(root, schema).as_object() else { return };
    if depth >= DEPTH_MAX {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
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

fn parameter<'a>(root: &'a Value, name: &'a str, property: &'a Value) -> Parameter<'a> {
    let target = resolved(root, property);
    let description = |value: &'a Value| value.get("description").and_then(Value::as_str);
    let mut enum_values = Vec::new();
    add_enum(root, target, 0, &mut enum_values);
    Parameter {
        name,
        description: description(property).or_else(|| description(target)).unwrap_or_default(),
        enum_values,
    }
}

fn add_enum<'a>(root: &'a Value, schema: &'a Value, depth: usize, values: &mut Vec<&'a str>) {
    let Some(object) = resolved(root, schema).as_object().filter(|_| depth < 3) else { return };
    values
        .extend(object.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str));
    values.extend(object.get("const").and_then(Value::as_str));
    for part in parts(object).chain(object.get("items")) {
        add_enum(root, part, depth + 1, values);
    }
}

fn parts(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten()
}

/// What a reference inside the same document points to; anything else is itself.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    target.and_then(|path| root.pointer(path)).unwrap_or(schema)
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
    let schema: Value =
        input_schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default();
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
        let found = parameters(&schema);
        let mut names: Vec<_> = found.iter().map(|parameter| parameter.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["at", "label", "lat", "mode", "tags"]);
        assert!(found.iter().any(|parameter| parameter.description == "A place."));
        assert!(found.iter().any(|parameter| parameter.enum_values == ["fast", "slow"]));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"properties": {"next": {"$ref": "#"}}});
        assert_eq!(parameters(&schema).len(), DEPTH_MAX);
    }
}
