//! Which JSON Schema keywords hold schemas, and where those schemas apply.
//!
//! Every walk over a schema asks this table, so that the name of a property is never taken for a keyword and a value
//! under `enum` or `default` never for a schema.

use jsonschema::Draft;

/// What stands under a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// One schema.
    Schema,
    /// One schema, or a list of them.
    SchemaOrList,
    /// Schemas by name.
    Map,
    /// Values that are never schemas.
    Values,
}

/// Which part of the instance the schemas under a keyword look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The same value as the schema they stand in.
    Same,
    /// A property, an item, or a property's name.
    Below,
    /// Nothing, until a reference names them.
    Nothing,
}

/// The keywords that refer to a schema elsewhere.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The place of `keyword` in the table. What is not a keyword counts as a schema that nothing applies, because a
/// reference may point into it.
pub(super) fn place(keyword: &str) -> (Holds, Reach) {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => (Holds::SchemaOrList, Reach::Same),
        "dependentSchemas" | "dependencies" => (Holds::Map, Reach::Same),
        "properties" | "patternProperties" => (Holds::Map, Reach::Below),
        "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "contentSchema" => (Holds::Schema, Reach::Below),
        "items" | "prefixItems" => (Holds::SchemaOrList, Reach::Below),
        "$defs" | "definitions" => (Holds::Map, Reach::Nothing),
        "enum" | "const" | "default" | "example" | "examples" | "required" | "type" | "dependentRequired"
        | "discriminator" | "$vocabulary" | "pattern" | "description" | "title" => {
            (Holds::Values, Reach::Nothing)
        }
        _ => (Holds::SchemaOrList, Reach::Nothing),
    }
}

/// The draft that a `$schema` value names, in any of the spellings met in the wild.
pub(super) fn draft_of(uri: &str) -> Option<Draft> {
    let uri = uri.trim();
    let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
    match rest.trim_end_matches('#').trim_end_matches('/') {
        "json-schema.org/draft-04/schema" => Some(Draft::Draft4),
        "json-schema.org/draft-06/schema" => Some(Draft::Draft6),
        "json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        "json-schema.org/draft/2019-09/schema" => Some(Draft::Draft201909),
        "json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        // The unversioned name always meant the newest draft.
        "json-schema.org/schema" => Some(Draft::Draft202012),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_known_dialect_is_recognised() {
        for (uri, draft) in [
            ("http://json-schema.org/draft-04/schema#", Draft::Draft4),
            ("http://json-schema.org/draft-06/schema", Draft::Draft6),
            ("https://json-schema.org/draft-07/schema#", Draft::Draft7),
            ("https://json-schema.org/draft/2019-09/schema", Draft::Draft201909),
            ("http://json-schema.org/draft/2020-12/schema#", Draft::Draft202012),
        ] {
            assert_eq!(draft_of(uri), Some(draft), "{uri}");
        }
        for uri in ["", "draft-07", "http://json-schema.org/draft-03/schema#", "https://example.com/dialect"]
        {
            assert_eq!(draft_of(uri), None, "{uri}");
        }
    }
}
