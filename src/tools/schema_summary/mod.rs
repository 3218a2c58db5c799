//! A shorter input schema for a search answer.
//!
//! A model that gets the schema with the search result can call at once, but the schemas of a few tools are larger than
//! all the rest of the answer. [`compact`] keeps a schema that is small enough as it is. Of a larger one it keeps what a
//! call needs most: every argument that takes a plain value, and of structured ones the type and the description. The
//! names of what was cut are told, so that the model asks for the whole before it uses them.
//!
//! The order of the schema is kept, as authors put important arguments first. Nested values are only looked at as text
//! ([`RawValue`]), a few levels down, so a deep schema costs no stack.

mod members;

use std::borrow::Cow;

use serde_json::value::RawValue;

use members::{Members, find, members, minify};

/// How far a value is followed to see whether it is plain: `anyOf` of arrays of strings is.
const PLAIN_DEPTH_MAX: usize = 3;
/// Names of optional arguments in [`Summary::trimmed`].
const TRIMMED_MAX: usize = 100;

/// A schema for a search answer.
#[derive(Debug)]
pub struct Summary {
    /// Valid JSON without whitespace between its tokens.
    pub schema: Box<RawValue>,
    /// Nothing was left out.
    pub whole: bool,
    /// The arguments of which something other than words of a description is missing, in the schema's order; at most
    /// 100.
    pub trimmed: Vec<String>,
}

/// What is kept at one try; each try keeps less than the one before.
struct Level {
    /// Bytes of a description of a required and of an optional argument; 0 leaves it out.
    description_bytes: (usize, usize),
    /// Bytes of a plain argument that is kept whole.
    plain_bytes: usize,
    /// Optional arguments are listed by name only, or not at all.
    optional: Optional,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Optional {
    Shown,
    Named,
    Dropped,
}

const LEVELS: [Level; 7] = [
    Level { description_bytes: (200, 200), plain_bytes: 2_000, optional: Optional::Shown },
    Level { description_bytes: (120, 80), plain_bytes: 600, optional: Optional::Shown },
    Level { description_bytes: (80, 0), plain_bytes: 300, optional: Optional::Shown },
    Level { description_bytes: (60, 0), plain_bytes: 100, optional: Optional::Shown },
    Level { description_bytes: (60, 0), plain_bytes: 150, optional: Optional::Named },
    Level { description_bytes: (0, 0), plain_bytes: 60, optional: Optional::Named },
    Level { description_bytes: (0, 0), plain_bytes: 0, optional: Optional::Dropped },
];

/// The schema in at most `bytes_max` bytes where that can be: required arguments stay in any case, by name and type.
///
/// # Cost
///
/// Linear in the schema's bytes, some six times at most.
#[must_use]
pub fn compact(schema: &RawValue, bytes_max: usize) -> Summary {
    let text = minify(schema.get());
    if text.len() <= bytes_max {
        return Summary { schema: raw(text.into_owned()), whole: true, trimmed: Vec::new() };
    }
    let Some(arguments) = Arguments::read(&text) else {
        return Summary { schema: raw(r#"{"type":"object"}"#.to_owned()), whole: false, trimmed: Vec::new() };
    };
    let mut tries = LEVELS.iter().map(|level| arguments.write(level));
    let mut last = None;
    for (text, trimmed) in tries.by_ref() {
        let fits = text.len() <= bytes_max;
        last = Some((text, trimmed));
        if fits {
            break;
        }
    }
    let (text, mut trimmed) = last.unwrap_or_default();
    trimmed.truncate(TRIMMED_MAX);
    Summary { schema: raw(text), whole: false, trimmed }
}

struct Argument<'a> {
    name: Cow<'a, str>,
    /// With a reference to a definition of the schema followed.
    keywords: Members<'a>,
    required: bool,
    plain: bool,
}

struct Arguments<'a> {
    arguments: Vec<Argument<'a>>,
    required: Vec<String>,
}

impl<'a> Arguments<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let schema = members(text)?;
        let required =
            find(&schema, "required").and_then(|names| serde_json::from_str::<Vec<String>>(names.get()).ok());
        let required = required.unwrap_or_default();
        let definitions: Vec<Members<'_>> = ["$defs", "definitions"]
            .iter()
            .filter_map(|&keyword| members(find(&schema, keyword)?.get()))
            .collect();
        let properties = members(find(&schema, "properties")?.get())?;
        let arguments = properties.into_iter().map(|(name, value)| {
            let own = members(value.get()).unwrap_or_default();
            let keywords = follow(own, &definitions);
            let plain = is_plain(&keywords, PLAIN_DEPTH_MAX);
            let required = required.iter().any(|wanted| *wanted == name);
            Argument { name, keywords, required, plain }
        });
        Some(Self { arguments: arguments.collect(), required })
    }

    fn write(&self, level: &Level) -> (String, Vec<String>) {
        let mut trimmed = Vec::new();
        let mut properties = Vec::new();
        for argument in &self.arguments {
            let value = argument.write(level);
            match value {
                Written::Whole(value) => properties.push(format!("{}:{value}", quoted(&argument.name))),
                Written::Cut(value) => {
                    properties.push(format!("{}:{value}", quoted(&argument.name)));
                    trimmed.push(argument.name.clone().into_owned());
                }
                Written::Nothing => trimmed.push(argument.name.clone().into_owned()),
            }
        }
        let mut text = format!(r#"{{"type":"object","properties":{{{}}}"#, properties.join(","));
        if !self.required.is_empty() {
            let names: Vec<String> = self.required.iter().map(|name| quoted(name)).collect();
            text.extend([r#","required":["#, &names.join(","), "]"]);
        }
        text.push('}');
        (text, trimmed)
    }
}

enum Written {
    Whole(String),
    Cut(String),
    Nothing,
}

impl Argument<'_> {
    fn write(&self, level: &Level) -> Written {
        if !self.required {
            match level.optional {
                Optional::Shown => {}
                Optional::Named => return Written::Cut("{}".to_owned()),
                Optional::Dropped => return Written::Nothing,
            }
        }
        let bytes = if self.required { level.description_bytes.0 } else { level.description_bytes.1 };
        let described = |(keyword, value): &(Cow<'_, str>, &RawValue)| {
            (keyword == "description").then(|| shortened(value, bytes))
        };
        if self.plain {
            let kept = self.keywords.iter().filter_map(|member| match described(member) {
                Some(description) => Some(("description", Cow::Owned(description?))),
                None => Some((member.0.as_ref(), Cow::Borrowed(member.1.get()))),
            });
            let text = object(kept);
            if text.len() <= level.plain_bytes {
                return Written::Whole(text);
            }
        }
        let says_more =
            self.keywords.iter().any(|(keyword, _)| keyword != "type" && keyword != "description");
        let kept = self.keywords.iter().filter_map(|member| match described(member) {
            Some(description) => Some(("description", Cow::Owned(description?))),
            None if member.0 == "type" && member.1.get().len() < 100 => {
                Some(("type", Cow::Borrowed(member.1.get())))
            }
            None => None,
        });
        let text = object(kept);
        if says_more { Written::Cut(text) } else { Written::Whole(text) }
    }
}

/// Follows a `$ref` into the definitions, once; what stands beside it wins.
fn follow<'a>(own: Members<'a>, definitions: &[Members<'a>]) -> Members<'a> {
    let target =
        find(&own, "$ref").and_then(|target| serde_json::from_str::<Cow<'_, str>>(target.get()).ok());
    let name = target
        .as_deref()
        .and_then(|target| target.strip_prefix("#/$defs/").or_else(|| target.strip_prefix("#/definitions/")));
    let found = name.and_then(|name| definitions.iter().find_map(|named| find(named, name)));
    let Some(target) = found.and_then(|target| members(target.get())) else { return own };
    let beside = own.iter().filter(|(keyword, _)| keyword != "$ref").cloned();
    let inherited = target.into_iter().filter(|(keyword, _)| find(&own, keyword).is_none());
    // A reference behind the reference is one too many, and stays as a mark that this is not plain.
    inherited.chain(beside).collect()
}

/// It takes a single value, or a list of single values: nothing below it has properties or refers elsewhere.
fn is_plain(keywords: &Members<'_>, depth: usize) -> bool {
    let plain = |value: &RawValue| match value.get().as_bytes().first() {
        Some(b't' | b'f') => true,
        Some(b'{') if depth > 0 => {
            members(value.get()).is_some_and(|keywords| is_plain(&keywords, depth - 1))
        }
        _ => false,
    };
    keywords.iter().all(|(keyword, value)| match keyword.as_ref() {
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "$ref"
        | "$dynamicRef"
        | "if"
        | "not" => false,
        "items" => plain(value),
        "anyOf" | "oneOf" | "allOf" => serde_json::from_str::<Vec<&RawValue>>(value.get())
            .is_ok_and(|branches| branches.into_iter().all(&plain)),
        "type" => !value.get().contains("\"object\""),
        _ => true,
    })
}

/// A description in at most about `bytes` bytes: cut behind a sentence if one ends late enough, else behind a word.
/// `None` for nothing.
fn shortened(description: &RawValue, bytes: usize) -> Option<String> {
    if bytes == 0 {
        return None;
    }
    // Most are short, and those keep the very bytes they came with.
    if description.get().len() <= bytes + 2 {
        return Some(description.get().to_owned());
    }
    let text: String = serde_json::from_str(description.get()).ok()?;
    if text.len() <= bytes {
        return Some(quoted(&text));
    }
    let start = &text[..text.floor_char_boundary(bytes)];
    let mut sentence_ends = start.char_indices().filter(|&(at, character)| {
        let rest = &text[at + character.len_utf8()..];
        matches!(character, '。' | '\n')
            || (matches!(character, '.' | '!' | '?') && rest.starts_with([' ', '\n']))
    });
    let sentence = sentence_ends.next_back().map(|(at, character)| at + character.len_utf8());
    if let Some(end) = sentence.filter(|&end| end >= bytes / 3) {
        return Some(quoted(start[..end].trim_end()));
    }
    let word = start.rfind(char::is_whitespace).filter(|&end| end >= bytes / 3).unwrap_or(start.len());
    Some(quoted(&format!("{}…", start[..word].trim_end())))
}

fn object<'a>(members: impl Iterator<Item = (&'a str, Cow<'a, str>)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always valid JSON")
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("made of valid pieces")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn summary(schema: &str, bytes_max: usize) -> Summary {
        compact(&RawValue::from_string(schema.to_owned()).unwrap(), bytes_max)
    }

    const ISSUE: &str = r##"{"$defs":{"State":{"enum":["open","closed"],"type":"string"},"Who":{"type":"object",
        "properties":{"login":{"type":"string"}}}},"type":"object","properties":{"title":{"type":"string","description":
        "The title. It should say in one line what is wrong, so that whoever reads a list of a hundred of them knows."},
        "state":{"$ref":"#/$defs/State","description":"Open or closed."},"assignee":{"$ref":"#/$defs/Who"},
        "labels":{"type":"array","items":{"type":"string"}},"filter":{"anyOf":[{"type":"object","properties":{}}],
        "description":"What to match."},"limit":{"default":1.0,"type":["integer","null"]}},"required":["title"]}"##;

    #[test]
    fn a_small_schema_is_kept_with_its_bytes() {
        let schema =
            r#"{"type":"object","properties":{"b":{"const":1.0},"a":{"maximum":18446744073709551616}}}"#;
        let summary = summary(schema, 1_000);
        assert!(summary.whole);
        assert_eq!(summary.schema.get(), schema);
    }

    #[test]
    fn whitespace_between_tokens_goes_and_whitespace_in_strings_stays() {
        let summary = summary("{ \"a b\" :\n [ 1 , \"c \\\" d\" ] }", 1_000);
        assert_eq!(summary.schema.get(), r#"{"a b":[1,"c \" d"]}"#);
    }

    #[test]
    fn plain_arguments_are_kept_and_structured_ones_are_cut_and_named() {
        let summary = summary(ISSUE, 480);
        assert_eq!(
            summary.schema.get(),
            r#"{"type":"object","properties":{"title":{"type":"string","description":"The title. It should say in one line what is wrong, so that whoever reads a list of a hundred of them knows."},"state":{"enum":["open","closed"],"type":"string","description":"Open or closed."},"assignee":{"type":"object"},"labels":{"type":"array","items":{"type":"string"}},"filter":{"description":"What to match."},"limit":{"default":1.0,"type":["integer","null"]}},"required":["title"]}"#
        );
        assert_eq!(summary.trimmed, ["assignee", "filter"]);
        assert!(!summary.whole);
    }

    #[test]
    fn less_and_less_is_kept_as_room_shrinks() {
        let lengths: Vec<(usize, usize)> = [480, 430, 380, 200, 120, 10]
            .into_iter()
            .map(|room| summary(ISSUE, room))
            .map(|summary| (summary.schema.get().len(), summary.trimmed.len()))
            .collect();
        assert_eq!(lengths, [(460, 2), (368, 2), (368, 2), (139, 5), (79, 5), (79, 5)]);
        let least = summary(ISSUE, 10);
        assert_eq!(
            least.schema.get(),
            r#"{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}"#
        );
    }

    #[test]
    fn a_long_description_ends_behind_a_sentence_or_a_word() {
        let shorten = |text: &str| {
            let text = RawValue::from_string(quoted(text)).unwrap();
            shortened(&text, 40).unwrap()
        };
        assert_eq!(shorten("Short."), r#""Short.""#);
        assert_eq!(
            shorten("First sentence is here. Then comes another, longer one."),
            r#""First sentence is here.""#
        );
        assert_eq!(
            shorten("One. This sentence is much longer than what there is room for"),
            r#""One. This sentence is much longer than…""#
        );
        assert_eq!(shorten(&"ą".repeat(30)), format!("\"{}…\"", "ą".repeat(20)));
    }

    #[test]
    fn what_is_no_object_schema_is_only_called_an_object() {
        for schema in
            [r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}"##, "[1,2,3,4,5,6,7,8,9,10,11,12]"]
        {
            let summary = summary(schema, 10);
            assert_eq!(summary.schema.get(), r#"{"type":"object"}"#);
            assert!(!summary.whole);
        }
    }

    #[test]
    fn a_huge_enum_is_cut_to_its_type() {
        let options: Vec<String> = (0..20_000).map(|option| format!("\"option {option}\"")).collect();
        let schema = format!(
            r#"{{"properties":{{"a":{{"type":"string","enum":[{}]}},"b":{{"type":"integer"}}}}}}"#,
            options.join(",")
        );
        let summary = summary(&schema, 300);
        assert_eq!(
            summary.schema.get(),
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}"#
        );
        assert_eq!(summary.trimmed, ["a"]);
    }

    #[test]
    fn a_deep_schema_costs_no_stack() {
        for (open, close) in [(r#"{"properties":{"a":"#, "}}"), (r#"{"items":"#, "}"), ("[", "]")] {
            let deep = format!("{}{}{}", open.repeat(50_000), "{}", close.repeat(50_000));
            let schema = format!(r#"{{"properties":{{"x":{deep}}},"required":["x"]}}"#);
            let summary = summary(&schema, 500);
            assert!(summary.schema.get().len() <= 500);
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let names = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "anyOf",
            "$ref",
            "$defs",
            "description",
            "enum",
            "a",
            "ą",
        ]);
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[a-zą.\" ]{0,60}".prop_map(Into::into),
            Just("object".into()),
            Just("#/$defs/a".into()),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<serde_json::Map<_, _>>()
                        .into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_schema_has_a_summary_that_is_json_and_keeps_required_arguments(schema in json(), room in 0_usize..400) {
            let text = schema.to_string();
            let summary = summary(&text, room);
            let parsed: serde_json::Value = serde_json::from_str(summary.schema.get()).unwrap();
            prop_assert!(!summary.whole || parsed == schema);
            let known = schema.get("properties").and_then(|properties| properties.as_object());
            let required = schema.get("required").and_then(|names| names.as_array());
            if let (Some(known), Some(required)) = (known, required)
                && required.iter().all(serde_json::Value::is_string)
            {
                for name in required.iter().filter_map(|name| name.as_str()).filter(|name| known.contains_key(*name)) {
                    prop_assert!(parsed["properties"].get(name).is_some(), "{name} is gone from {parsed}");
                }
            }
        }
    }
}
