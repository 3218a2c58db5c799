//! The text of a tool definition that ranking reads.

use crate::search::{Document, Parameter};
use serde_json::Value;
use serde_json::value::RawValue;

/// Most parameters that are read from one schema, nested ones included.
const PARAMETERS_MAX: usize = 128;
/// Most values of one `enum` that are read.
const ENUM_VALUES_MAX: usize = 32;
/// Deepest nesting of schemas that is read.
const DEPTH_MAX: usize = 6;

/// Gives `read` the tool's text as a document. The borrowed form keeps every string where it is.
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
    let mut parameters = Vec::new();
    collect(&schema, &schema, DEPTH_MAX, &mut parameters);
    read(&Document { name, title, description, parameters })
}

fn collect<'a>(root: &'a Value, schema: &'a Value, depth: usize, out: &mut Vec<Parameter<'a>>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            if out.len() == PARAMETERS_MAX {
                return;
            }
            let property = resolved(root, property);
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            out.push(Parameter { name, description, enum_values: enum_values(property) });
            collect(root, property, depth, out);
        }
    }
    if let Some(items) = schema.get("items") {
        collect(root, resolved(root, items), depth, out);
    }
    for combinator in ["anyOf", "oneOf", "allOf"] {
        for branch in schema.get(combinator).and_then(Value::as_array).into_iter().flatten() {
            collect(root, resolved(root, branch), depth, out);
        }
    }
}

/// The schema that a local `$ref` points to, one step far; any other schema as it is.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer =
        schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn enum_values(schema: &Value) -> Vec<&str> {
    let items = schema.get("items").and_then(|items| items.get("enum"));
    let values = schema.get("enum").or(items).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).take(ENUM_VALUES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_and_referenced_parameters_are_flattened() {
        let schema: Box<RawValue> = serde_json::from_str(
            r##"{"properties":{"at":{"$ref":"#/$defs/Place"},"kinds":{"type":"array","items":{"enum":["a",1,"b"]}},"any":{"anyOf":[{"properties":{"deep":{"description":"d"}}}]}},"$defs":{"Place":{"description":"where","properties":{"city":{"type":"string"}}}}}"##,
        )
        .unwrap();
        with_document("n", "t", "d", Some(&schema), |document| {
            let flat: Vec<(&str, &str, usize)> = document
                .parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.description, parameter.enum_values.len()))
                .collect();
            assert_eq!(
                flat,
                [("any", "", 0), ("deep", "d", 0), ("at", "where", 0), ("city", "", 0), ("kinds", "", 2)]
            );
        });
    }

    #[test]
    fn schemas_without_end_are_read_to_a_depth() {
        for schema in
            [r##"{"properties":{"a":{"$ref":"#"}}}"##, r##"{"items":{"$ref":"#"}}"##, "null", "[]", "7"]
        {
            let schema: Box<RawValue> = serde_json::from_str(schema).unwrap();
            with_document("n", "", "", Some(&schema), |document| {
                assert!(document.parameters.len() <= DEPTH_MAX);
            });
        }
    }
}
