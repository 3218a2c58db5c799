//! `x-mcp-header`: arguments that a modern upstream wants repeated as HTTP headers.
//!
//! A property of a tool's input schema may carry `"x-mcp-header": "Name"`; a call then repeats the argument in
//! `Mcp-Param-Name`. Names and values are under the control of whoever wrote the schema and of the model, so both
//! are held to the letter: a tool with an invalid annotation leaves the catalogue.
//!
//! Source: the specification's page on streamable HTTP, "Custom Headers", and its schema extension.

use super::headers::encode_header_text;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// Most headers that a call carries. A tool that asks for more is within the protocol, so it stays and gets the first.
const HEADERS_MAX: usize = 16;
/// Longest value of one header, encoded, in bytes.
const VALUE_BYTES_MAX: usize = 4 * 1024;
/// Deepest chain of `properties` that is followed.
const DEPTH_MAX: usize = 16;

/// One argument that is repeated as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The name behind `Mcp-Param-`.
    pub name: String,
    /// Where the argument is: a chain of property names.
    pub path: Vec<String>,
}

/// Why a tool's annotations are invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParamHeaderFault {
    /// Not a token of RFC 9110.
    #[error("an x-mcp-header is empty or not a header name")]
    Name,
    /// Two alike but for case.
    #[error("two x-mcp-header annotations name the same header")]
    Duplicate,
    /// Only strings, integers and booleans can be repeated.
    #[error("an x-mcp-header stands on a property that is not a string, an integer or a boolean")]
    Type,
    /// Inside an array, a combinator or a definition.
    #[error("an x-mcp-header stands where no chain of properties reaches it")]
    Unreachable,
}

/// The headers that calls of a tool must carry, from its input schema. Most tools have none, which costs one
/// search for the word.
///
/// # Errors
/// When any annotation is invalid: the tool must then not be offered.
pub fn param_headers(input_schema: &RawValue) -> Result<Vec<ParamHeader>, ParamHeaderFault> {
    let mut headers = Vec::new();
    // A key may be spelled with escapes.
    if !input_schema.get().contains("x-mcp-header") && !input_schema.get().contains("\\u") {
        return Ok(headers);
    }
    let Ok(schema) = serde_json::from_str::<Value>(input_schema.get()) else {
        return Err(ParamHeaderFault::Unreachable);
    };
    collect(&schema, &mut Vec::new(), &mut HashSet::new(), &mut headers)?;
    // Whatever the walk along `properties` did not reach is somewhere it may not be.
    if annotations(&schema) != headers.len() {
        return Err(ParamHeaderFault::Unreachable);
    }
    headers.truncate(HEADERS_MAX);
    Ok(headers)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    seen: &mut HashSet<String>,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), ParamHeaderFault> {
    if path.len() == DEPTH_MAX {
        return Ok(());
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get("x-mcp-header") {
            add(annotation, property, path, seen, headers)?;
        }
        collect(property, path, seen, headers)?;
        path.pop();
    }
    Ok(())
}

fn add(
    annotation: &Value,
    property: &Value,
    path: &[String],
    seen: &mut HashSet<String>,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), ParamHeaderFault> {
    let name = annotation.as_str().filter(|name| is_token(name)).ok_or(ParamHeaderFault::Name)?;
    if !matches!(property.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(ParamHeaderFault::Type);
    }
    if !seen.insert(name.to_ascii_lowercase()) {
        return Err(ParamHeaderFault::Duplicate);
    }
    headers.push(ParamHeader { name: name.to_owned(), path: path.to_vec() });
    Ok(())
}

/// How often the annotation stands anywhere in a schema. A property that is itself called `x-mcp-header` is not one,
/// nor is one inside `default`, `const`, `enum` or `examples`, which hold data.
fn annotations(schema: &Value) -> usize {
    fn object(map: &Map<String, Value>) -> usize {
        let mut count = usize::from(map.contains_key("x-mcp-header"));
        for (key, value) in map {
            count += match (key.as_str(), value) {
                ("default" | "const" | "enum" | "examples" | "x-mcp-header", _) => 0,
                (
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(named),
                ) => named.values().map(annotations).sum(),
                (_, value) => annotations(value),
            };
        }
        count
    }
    match schema {
        Value::Object(map) => object(map),
        Value::Array(items) => items.iter().map(annotations).sum(),
        _ => 0,
    }
}

/// A token of RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

impl ParamHeader {
    /// The header's value for these arguments; `None` when the argument is absent, null, of another type or too long.
    pub fn value(&self, arguments: &RawValue) -> Option<String> {
        let mut at: Cow<'_, RawValue> = Cow::Borrowed(arguments);
        for name in &self.path {
            let members: std::collections::HashMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(at.get()).ok()?;
            let member = (*members.get(name.as_str())?).to_owned();
            at = Cow::Owned(member);
        }
        let raw = at.get();
        let value = match raw.as_bytes().first()? {
            b'"' => encode_header_text(&serde_json::from_str::<String>(raw).ok()?).into_owned(),
            b't' | b'f' => raw.to_owned(),
            b'-' | b'0'..=b'9' => integer(raw)?,
            _ => return None,
        };
        (value.len() <= VALUE_BYTES_MAX).then_some(value)
    }
}

/// A JSON number as a decimal integer, if it is one: `5.0` is 5.
fn integer(raw: &str) -> Option<String> {
    if raw.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Some(raw.to_owned());
    }
    let number: f64 = raw.parse().ok()?;
    // Up to 2^53 every integer has one float.
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then(|| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(schema: &str) -> Result<Vec<ParamHeader>, ParamHeaderFault> {
        param_headers(serde_json::from_str(schema).unwrap())
    }

    #[test]
    fn f2_a_tool_that_asks_for_many_headers_stays_and_gets_the_first_sixteen() {
        let properties: Vec<String> =
            (10..40).map(|i| format!(r#""p{i}":{{"type":"string","x-mcp-h\u0065ader":"H{i}"}}"#)).collect();
        let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
        let headers = param_headers(serde_json::from_str(&schema).unwrap()).unwrap();
        assert_eq!((headers.len(), headers[0].name.as_str()), (HEADERS_MAX, "H10"));
    }

    #[test]
    fn c5_annotated_arguments_are_found_along_chains_of_properties_and_encoded() {
        let found = headers(
            r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}"#,
        )
        .unwrap();
        let arguments: &RawValue = serde_json::from_str(
            r#"{"region":"Šiauliai","o":{"n":123456789012345678901234567890,"b":false}}"#,
        )
        .unwrap();
        let mut values: Vec<(String, Option<String>)> =
            found.iter().map(|header| (header.name.clone(), header.value(arguments))).collect();
        values.sort();
        assert_eq!(
            values,
            [
                ("B".to_owned(), Some("false".to_owned())),
                ("N".to_owned(), Some("123456789012345678901234567890".to_owned())),
                ("Region".to_owned(), Some("=?base64?xaBpYXVsaWFp?=".to_owned())),
            ]
        );
        for (absent, expected) in [
            ("{}", None),
            (r#"{"region":null}"#, None),
            (r#"{"region":[1]}"#, None),
            (r#"{"region":5.0}"#, Some("5".to_owned())),
        ] {
            let region = found.iter().find(|header| header.name == "Region").unwrap();
            assert_eq!(region.value(serde_json::from_str(absent).unwrap()), expected, "{absent}");
        }
    }

    #[test]
    fn c6_invalid_annotations_are_told_apart() {
        for (schema, fault) in [
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#, ParamHeaderFault::Name),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#, ParamHeaderFault::Name),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}"#, ParamHeaderFault::Name),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#, ParamHeaderFault::Name),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}"#,
                ParamHeaderFault::Duplicate,
            ),
            (r#"{"properties":{"a":{"type":"number","x-mcp-header":"R"}}}"#, ParamHeaderFault::Type),
            (r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"R"}}}"#, ParamHeaderFault::Type),
            (
                r#"{"properties":{"a":{"items":{"type":"string","x-mcp-header":"R"}}}}"#,
                ParamHeaderFault::Unreachable,
            ),
            (
                r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"R"}}}]}"#,
                ParamHeaderFault::Unreachable,
            ),
        ] {
            assert_eq!(headers(schema), Err(fault), "{schema}");
        }
        assert_eq!(headers(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#), Ok(vec![]));
    }
}
