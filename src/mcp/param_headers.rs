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
use std::collections::{HashMap, HashSet};

/// Most headers that a call carries. A tool that names more stays; a call that gives more is refused.
const HEADERS_MAX: usize = 64;
/// Longest value of one header, encoded, in bytes: what common servers read at most.
const VALUE_BYTES_MAX: usize = 8 * 1024;
/// Largest schema in which annotations are looked for, in bytes: all of it is held in memory for that, as values that take
/// many times their text.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of all names on the way to the arguments: each header has its whole way, so that a few long names far down
/// would take thousands of times their bytes.
const PATHS_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of all values together.
const VALUES_BYTES_MAX: usize = 64 * 1024;

/// One argument that is repeated as a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The name behind `Mcp-Param-`.
    pub name: String,
    /// Where the argument is: a chain of property names.
    pub path: Vec<String>,
}

impl ParamHeader {
    /// About what it takes on the heap, itself included.
    pub fn heap_bytes(&self) -> usize {
        let texts = self.path.iter().chain([&self.name]);
        size_of::<Self>()
            + texts.map(|text| size_of::<String>() + text.capacity().next_multiple_of(16)).sum::<usize>()
    }
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
    /// More than is read.
    #[error(
        "its schema is larger than 1 MiB, or the ways to the arguments of its x-mcp-header annotations are longer than 256 KiB"
    )]
    TooLarge,
    /// Inside an array, a combinator or a definition.
    #[error("an x-mcp-header stands where no chain of properties reaches it")]
    Unreachable,
}

/// Why a call's arguments can't be repeated as its tool asks. The texts are for the model.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParamValueFault {
    /// More arguments than headers are sent.
    #[error("the upstream wants more than 64 of these arguments in headers")]
    TooMany,
    /// One value, or all together.
    #[error(
        "the upstream wants an argument in the header Mcp-Param-{0}, and it is too long for that (8 KiB each, 64 KiB in all)"
    )]
    TooLong(String),
    /// No text, whole number or boolean.
    #[error(
        "the upstream wants an argument in the header Mcp-Param-{0}, and it is not text, a whole number, true or false"
    )]
    Type(String),
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
    if input_schema.get().len() > SCHEMA_BYTES_MAX {
        return Err(ParamHeaderFault::TooLarge);
    }
    let Ok(schema) = serde_json::from_str::<Value>(input_schema.get()) else {
        return Err(ParamHeaderFault::Unreachable);
    };
    collect(&schema, &mut Vec::new(), &mut Found::default(), &mut headers)?;
    // Whatever the walk along `properties` did not reach is somewhere it may not be.
    if annotations(&schema) != headers.len() {
        return Err(ParamHeaderFault::Unreachable);
    }
    Ok(headers)
}

/// What a walk has found so far.
#[derive(Default)]
struct Found {
    names: HashSet<String>,
    path_bytes: usize,
}

/// As deep as the parser goes, which is 128 levels of JSON.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    seen: &mut Found,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), ParamHeaderFault> {
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
    seen: &mut Found,
    headers: &mut Vec<ParamHeader>,
) -> Result<(), ParamHeaderFault> {
    let name = annotation.as_str().filter(|name| is_token(name)).ok_or(ParamHeaderFault::Name)?;
    if !matches!(property.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(ParamHeaderFault::Type);
    }
    if !seen.names.insert(name.to_ascii_lowercase()) {
        return Err(ParamHeaderFault::Duplicate);
    }
    seen.path_bytes += path.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
    if seen.path_bytes > PATHS_BYTES_MAX {
        return Err(ParamHeaderFault::TooLarge);
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
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The name behind `Mcp-Param-` and the value of each header for these arguments. One that is absent or null has none.
///
/// # Errors
/// When one can't be sent: the call must not be made without it.
pub fn param_header_values<'a>(
    headers: &'a [ParamHeader],
    arguments: &RawValue,
) -> Result<Vec<(&'a str, String)>, ParamValueFault> {
    let mut values = Vec::new();
    if headers.is_empty() {
        return Ok(values);
    }
    let (top, mut bytes) = (members(arguments), 0);
    for header in headers {
        let Some(raw) = top.as_ref().and_then(|top| argument(top, &header.path)) else { continue };
        let value = value(raw.get()).ok_or_else(|| ParamValueFault::Type(header.name.clone()))?;
        bytes += header.name.len() + value.len();
        if value.len() > VALUE_BYTES_MAX || bytes > VALUES_BYTES_MAX {
            return Err(ParamValueFault::TooLong(header.name.clone()));
        }
        if values.len() == HEADERS_MAX {
            return Err(ParamValueFault::TooMany);
        }
        values.push((header.name.as_str(), value));
    }
    Ok(values)
}

type Members<'a> = HashMap<Cow<'a, str>, &'a RawValue>;

fn members(object: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(object.get()).ok()
}

/// What stands at the end of a chain of properties and is not null.
fn argument<'a>(top: &Members<'a>, path: &[String]) -> Option<&'a RawValue> {
    let (first, rest) = path.split_first()?;
    let mut at = *top.get(first.as_str())?;
    for name in rest {
        at = *members(at)?.get(name.as_str())?;
    }
    (at.get() != "null").then_some(at)
}

fn value(raw: &str) -> Option<String> {
    match raw.as_bytes().first()? {
        b'"' => Some(encode_header_text(&serde_json::from_str::<String>(raw).ok()?).into_owned()),
        b't' | b'f' => Some(raw.to_owned()),
        b'-' | b'0'..=b'9' => integer(raw),
        _ => None,
    }
}

/// A JSON number as a decimal integer with each of its digits, if it is one: `5.0` is 5, and `1e30` is a 1 and thirty
/// zeros.
fn integer(raw: &str) -> Option<String> {
    let (sign, number) = raw.strip_prefix('-').map_or(("", raw), |number| ("-", number));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    // How many zeros stand behind the significant digits; below none it is a fraction.
    let zeros = exponent.parse::<i64>().ok()?;
    let zeros = zeros.checked_add(i64::try_from(digits.len() - significant.len()).ok()?)?;
    let zeros = usize::try_from(zeros.checked_sub(i64::try_from(fraction.len()).ok()?)?).ok()?;
    // One more than may be sent is enough to be refused for it.
    Some(format!("{sign}{significant}{}", "0".repeat(zeros.min(VALUE_BYTES_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(schema: &str) -> Result<Vec<ParamHeader>, ParamHeaderFault> {
        param_headers(serde_json::from_str(schema).unwrap())
    }

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn t_x12_ways_to_header_arguments_end_at_their_limit() {
        let headers = |count: usize| {
            let leaf = |i| format!(r#""a{i:03}":{{"type":"string","x-mcp-header":"a{i:03}"}}"#);
            let leaves: Vec<String> = (0..count).map(leaf).collect();
            let (name, leaves) = ("x".repeat(1000), leaves.join(","));
            let schema = format!(r#"{{"properties":{{"{name}":{{"properties":{{{leaves}}}}}}}}}"#);
            param_headers(serde_json::from_str(&schema).unwrap()).map(|headers| headers.len())
        };
        let each = 1000 + 4 + 2 * size_of::<String>();
        let most = PATHS_BYTES_MAX / each;
        assert_eq!(headers(most), Ok(most));
        assert_eq!(headers(most + 1), Err(ParamHeaderFault::TooLarge));
        let sized = |bytes: usize| {
            let schema = format!(r#"{{"description":"\u0041{}"}}"#, "x".repeat(bytes - 24));
            assert_eq!(schema.len(), bytes);
            param_headers(serde_json::from_str(&schema).unwrap()).map(|headers| headers.len())
        };
        assert_eq!(sized(SCHEMA_BYTES_MAX), Ok(0));
        assert_eq!(sized(SCHEMA_BYTES_MAX + 1), Err(ParamHeaderFault::TooLarge));
    }

    #[test]
    fn c5_a_tool_may_name_many_headers_and_a_call_gives_64_of_8_kib_and_no_more() {
        let properties: Vec<String> =
            (10..90).map(|i| format!(r#""p{i}":{{"type":"string","x-mcp-h\u0065ader":"H{i}"}}"#)).collect();
        let found = headers(&format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))).unwrap();
        assert_eq!(found.len(), 80);
        let give = |count: usize, first: usize| {
            let first = format!(r#""p10":"{}""#, "v".repeat(first));
            let others = (11..10 + count).map(|i| format!(r#","p{i}":"v""#)).collect::<String>();
            let arguments = format!("{{{first}{others}}}");
            param_header_values(&found, raw(&arguments)).map(|values| values.len())
        };
        assert_eq!(give(64, VALUE_BYTES_MAX), Ok(64));
        assert_eq!(give(65, 1), Err(ParamValueFault::TooMany));
        assert_eq!(give(1, VALUE_BYTES_MAX + 1), Err(ParamValueFault::TooLong("H10".to_owned())));
        let all: Vec<String> =
            (10..18).map(|i| format!(r#""p{i}":"{}""#, "v".repeat(VALUE_BYTES_MAX))).collect();
        let all = format!("{{{}}}", all.join(","));
        assert_eq!(param_header_values(&found, raw(&all)), Err(ParamValueFault::TooLong("H17".to_owned())));
    }

    #[test]
    fn c5_integers_are_sent_with_each_of_their_digits() {
        for (written, sent) in [
            ("1e30", "1000000000000000000000000000000"),
            ("9007199254740993.0", "9007199254740993"),
            ("-1.25E2", "-125"),
            ("-0", "0"),
            ("0e99999999999999999999", "0"),
            ("100e-2", "1"),
            ("1200", "1200"),
        ] {
            assert_eq!(integer(written).as_deref(), Some(sent), "{written}");
        }
        for fraction in ["1.5", "1e-1", "1e99999999999999999999"] {
            assert_eq!(integer(fraction), None, "{fraction}");
        }
        let one = [ParamHeader { name: "N".to_owned(), path: vec!["n".to_owned()] }];
        let fault = param_header_values(&one, raw(r#"{"n":1e999999}"#));
        assert_eq!(fault, Err(ParamValueFault::TooLong("N".to_owned())));
    }

    #[test]
    fn c6_an_annotation_may_be_as_deep_as_a_definition() {
        let (open, close) = (r#"{"properties":{"a":"#.repeat(40), "}}".repeat(40));
        let schema = format!(r#"{open}{{"type":"string","x-mcp-header":"Deep"}}{close}"#);
        assert_eq!(headers(&schema).unwrap()[0].path.len(), 40);
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
        let mut values = param_header_values(&found, arguments).unwrap();
        values.sort();
        assert_eq!(
            values,
            [
                ("B", "false".to_owned()),
                ("N", "123456789012345678901234567890".to_owned()),
                ("Region", "=?base64?xaBpYXVsaWFp?=".to_owned()),
            ]
        );
        for absent in ["{}", r#"{"region":null}"#, r#"{"o":{}}"#, r#"{"o":{"n":null}}"#] {
            assert_eq!(param_header_values(&found, raw(absent)), Ok(vec![]), "{absent}");
        }
        let fault = param_header_values(&found, raw(r#"{"region":[1]}"#));
        assert_eq!(fault, Err(ParamValueFault::Type("Region".to_owned())));
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
