//! What the checks of arguments promise, over schemas as they are written and schemas written to do harm.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn compile(schema: &str) -> ArgumentSchema {
    ArgumentSchema::compile(&raw(schema))
}

fn check(schema: &str, arguments: &str) -> Result<Checked, Vec<Violation>> {
    compile(schema).check(&raw(arguments))
}

/// The violations as `pointer: message` lines.
fn told(schema: &str, arguments: &str) -> String {
    let violations = check(schema, arguments).expect_err("these arguments are wrong");
    violations.iter().map(|violation| format!("{}: {}\n", violation.pointer, violation.message)).collect()
}

/// Runs on a stack as small as an async worker's, and with a clock.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) -> Duration {
    let started = SystemTime::now();
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap();
    started.elapsed().unwrap_or_default()
}

const ISSUE: &str = r#"{"type":"object","properties":{"repository":{"type":"string"},"title":{"type":"string","minLength":3},
    "state":{"enum":["open","closed"]},"priority":{"type":"integer","minimum":1,"maximum":5},
    "labels":{"type":"array","items":{"type":"string"},"maxItems":2,"uniqueItems":true},
    "due":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}},
    "required":["repository","title"],"additionalProperties":false}"#;

#[test]
fn arguments_that_fit_pass() {
    let arguments =
        r#"{"repository":"a/b","title":"It broke","priority":1.0,"due":null,"labels":["x"],"state":"open"}"#;
    assert_eq!(check(ISSUE, arguments), Ok(Checked::Whole));
    // Formats describe and do not refuse, whatever the dialect.
    let dated = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"date-time"},
        "b":{"contentEncoding":"base64","contentMediaType":"application/json"}}}"#;
    assert_eq!(check(dated, r#"{"a":"tomorrow","b":"!"}"#), Ok(Checked::Whole));
}

#[test]
fn violations_say_what_would_fit() {
    assert_eq!(
        told(
            ISSUE,
            r#"{"repo_name":"a/b","title":"x","state":"OPEN","priority":"3","labels":["a","a",1],"due":7,"colour":"red"}"#
        ),
        "\
: missing required property \"repository\" (a string)
/due: must be null or a string, not a number
/labels: must have at most 2 items
/labels: must not have the same item twice
/labels/2: must be a string, not a number
/priority: must be an integer, not a string: give it without quotes
/state: must be one of \"open\", \"closed\"
/title: must have at least 3 characters
: unknown property \"colour\"; known are \"due\", \"labels\", \"priority\", \"repository\", \"state\", \"title\"
: unknown property \"repo_name\"; did you mean \"repository\"?
"
    );
}

#[test]
fn an_unknown_name_is_tied_to_the_missing_one_where_more_properties_are_allowed() {
    let schema =
        r#"{"properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}"#;
    assert_eq!(
        told(schema, r#"{"search_term":"x"}"#),
        ": missing required property \"query\" (a string); \"search_term\" is not a declared property and may be meant for it\n"
    );
    assert_eq!(
        told(schema, r#"{"a":1,"b":2,"q":3}"#),
        ": missing required property \"query\" (a string); \"q\" is not a declared property and may be meant for it\n"
    );
    assert_eq!(told(schema, r#"{"a":1,"b":2}"#), ": missing required property \"query\" (a string)\n");
}

#[test]
fn the_only_unknown_name_is_taken_for_the_only_missing_one() {
    let schema = r#"{"properties":{"recipient":{},"text":{}},"required":["recipient","text"],"additionalProperties":false}"#;
    assert_eq!(
        told(schema, r#"{"channel":"x","text":"y"}"#),
        ": missing required property \"recipient\"\n: unknown property \"channel\"; did you mean \"recipient\"?\n"
    );
}

#[test]
fn alternatives_are_told_by_the_nearest_one() {
    let schema = r##"{"properties":{"block":{"oneOf":[
        {"type":"object","properties":{"kind":{"const":"text"},"text":{"type":"string"}},"required":["kind","text"]},
        {"type":"object","properties":{"kind":{"const":"image"},"url":{"type":"string"}},"required":["kind","url"]}]}}}"##;
    assert_eq!(
        told(schema, r#"{"block":{"kind":"image","url":5}}"#),
        "/block: fits none of the 2 alternatives; the nearest asks: \"/block/url\" must be a string, not a number\n"
    );
    assert_eq!(told(schema, r#"{"block":"image"}"#), "/block: must be an object, not a string\n");
}

#[test]
fn json_in_a_string_is_recognised() {
    let schema = r#"{"properties":{"list":{"type":"array"}}}"#;
    assert_eq!(
        told(schema, r#"{"list":"[1]"}"#),
        "/list: must be an array, not a string: give the JSON itself, not a string that holds it\n"
    );
    let whole = compile("{}").check(&raw(r#""{}""#)).unwrap_err();
    assert!(whole[0].message.contains("must be an object, not a string"));
}

#[test]
fn arguments_that_are_no_object_are_refused_whatever_the_schema() {
    for arguments in ["null", "[]", "1", "true", "\"a\""] {
        for schema in ["{}", "true", "null", r#"{"$ref":"http://example.com/a"}"#] {
            assert_eq!(check(schema, arguments).unwrap_err().len(), 1, "{arguments} {schema}");
        }
    }
    assert!(ArgumentSchema::missing().check(&raw("null")).is_err());
}

#[test]
fn schemas_without_rules_take_every_object() {
    for schema in ["{}", "true", r#"{"type":"object"}"#, r#"{"type":"object","properties":{}}"#] {
        assert_eq!(check(schema, r#"{"a":1}"#), Ok(Checked::Whole), "{schema}");
    }
    assert_eq!(check("null", "{}"), Ok(Checked::Not(Unchecked::Missing)));
    assert_eq!(ArgumentSchema::missing().unchecked(), Some(Unchecked::Missing));
}

/// A schema that is twice as much work with each level.
fn doubling(levels: usize) -> String {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "string"}));
    json!({"$defs": definitions, "properties": {"a": {"$ref": "#/$defs/d0"}}}).to_string()
}

#[test]
fn t_r11_t_x6_every_schema_that_is_not_compiled_has_its_reason() {
    let many = |count: usize| {
        let properties: serde_json::Map<_, _> =
            (0..count).map(|name| (format!("p{name}"), json!({}))).collect();
        json!({"properties": properties}).to_string()
    };
    let nested =
        |levels: usize| format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(levels), "}}".repeat(levels));
    let references = |count: usize| {
        let branches = vec![json!({"$ref": "#/$defs/a"}); count];
        json!({"$defs": {"a": {}}, "allOf": branches}).to_string()
    };
    let enumeration =
        json!({"enum": (0..20_000).map(|option| format!("o{option}")).collect::<Vec<_>>()}).to_string();
    for (schema, reason) in [
        ("false".to_owned(), Some(Unchecked::Invalid)),
        ("[]".to_owned(), Some(Unchecked::Invalid)),
        ("\"string\"".to_owned(), Some(Unchecked::Invalid)),
        (r#"{"type":"any"}"#.to_owned(), Some(Unchecked::Invalid)),
        (r#"{"required":true}"#.to_owned(), Some(Unchecked::Invalid)),
        (r#"{"$schema":"https://example.com/mine"}"#.to_owned(), Some(Unchecked::UnknownDialect)),
        (r#"{"$schema":7}"#.to_owned(), Some(Unchecked::UnknownDialect)),
        (r#"{"$ref":"http://169.254.169.254/latest"}"#.to_owned(), Some(Unchecked::ExternalReference)),
        (r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#.to_owned(), Some(Unchecked::ExternalReference)),
        (r#"{"properties":{"a":{"$ref":"other.json#/a"}}}"#.to_owned(), Some(Unchecked::ExternalReference)),
        (r##"{"$ref":"#/$defs/none"}"##.to_owned(), Some(Unchecked::UnresolvedReference)),
        (
            r##"{"properties":{"a":{"default":{},"$ref":"#/properties/a/default"}}}"##.to_owned(),
            Some(Unchecked::UnresolvedReference),
        ),
        (r##"{"$ref":"#"}"##.to_owned(), Some(Unchecked::ReferenceLoop)),
        (r##"{"$dynamicAnchor":"a","$dynamicRef":"#a"}"##.to_owned(), Some(Unchecked::ReferenceLoop)),
        (
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}"##
                .to_owned(),
            Some(Unchecked::ReferenceLoop),
        ),
        (r#"{"$defs":{"a":{"$id":"http://example.com/a"}}}"#.to_owned(), Some(Unchecked::EmbeddedResource)),
        (doubling(14), None),
        (doubling(15), Some(Unchecked::TooManyPaths)),
        (doubling(22), Some(Unchecked::TooManyPaths)),
        (many(1_999), None),
        (many(2_000), Some(Unchecked::TooManySubschemas)),
        (nested(31), None),
        (nested(32), Some(Unchecked::TooDeep)),
        (nested(1_000), Some(Unchecked::TooDeep)),
        (format!("{}{{}}{}", r#"{"not":"#.repeat(7_000), "}".repeat(7_000)), Some(Unchecked::TooDeep)),
        (references(256), None),
        (references(257), Some(Unchecked::TooManyReferences)),
        (format!(r#"{{"description":"{}"}}"#, "x".repeat(64 * 1024 - 18)), None),
        (format!(r#"{{"description":"{}"}}"#, "x".repeat(64 * 1024 - 17)), Some(Unchecked::TooLarge)),
        (enumeration, Some(Unchecked::TooLarge)),
    ] {
        let start: String = schema.chars().take(80).collect();
        let took = on_a_small_stack(move || {
            let compiled = compile(&schema);
            assert_eq!(compiled.unchecked(), reason, "{start}");
            let checked = compiled.check(&raw(r#"{"a":1}"#));
            match reason {
                Some(reason) => assert_eq!(checked, Ok(Checked::Not(reason)), "{start}"),
                None => assert!(!matches!(checked, Ok(Checked::Not(_))), "{start}: {checked:?}"),
            }
        });
        assert!(took < Duration::from_secs(5), "took {took:?}");
    }
}

#[test]
fn references_are_followed_in_every_local_form() {
    for schema in [
        r##"{"$defs":{"a/b~c d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a~1b~0c%20d"}}}"##,
        r##"{"$defs":{"x":{"$anchor":"here","type":"string"}},"properties":{"a":{"$ref":"#here"}}}"##,
        r##"{"$id":"http://example.com/s","$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"http://example.com/s#/$defs/x"}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"$id":"#here","type":"string"}},"properties":{"a":{"$ref":"#here"}}}"##,
        r##"{"components":{"schemas":{"X":{"type":"string"}}},"properties":{"a":{"$ref":"#/components/schemas/X"}}}"##,
    ] {
        assert_eq!(told(schema, r#"{"a":1}"#), "/a: must be a string, not a number\n", "{schema}");
        assert_eq!(check(schema, r#"{"a":"b"}"#), Ok(Checked::Whole), "{schema}");
    }
}

#[test]
fn t_x7_expressions_that_are_not_supported_are_left_out_alone() {
    for pattern in [
        r"^(a+)\\1$",
        "^(?=.*[0-9]).{8,}$",
        "(?<!a)b",
        r"^(\\p{L}{1,500}){1,500}$",
        "(((",
        r"(?:x{1000}){1000}",
    ] {
        let schema =
            format!(r#"{{"properties":{{"a":{{"type":"string","minLength":2,"pattern":"{pattern}"}}}}}}"#);
        let compiled = compile(&schema);
        assert_eq!((compiled.unchecked(), compiled.skipped_patterns()), (None, 1), "{pattern}");
        assert_eq!(compiled.check(&raw(r#"{"a":"bc"}"#)), Ok(Checked::WithoutSomePatterns));
        assert!(compiled.check(&raw(r#"{"a":"b"}"#)).is_err());
    }
}

#[test]
fn what_is_left_out_never_makes_a_schema_stricter() {
    let lookahead = "(?=x)y";
    for (schema, arguments) in [
        (json!({"properties": {"a": {"not": {"pattern": lookahead}}}}), json!({"a": "b"})),
        (
            json!({"properties": {"a": {"if": {"pattern": lookahead}, "then": {"minLength": 9}}}}),
            json!({"a": "b"}),
        ),
        (
            json!({"properties": {"a": {"oneOf": [{"pattern": lookahead}, {"type": "string"}]}}}),
            json!({"a": "b"}),
        ),
        (json!({"patternProperties": {lookahead: {}}, "additionalProperties": false}), json!({"xy": 1})),
        (
            json!({"allOf": [{"patternProperties": {lookahead: {}}}], "unevaluatedProperties": false}),
            json!({"xy": 1}),
        ),
        (
            json!({"$defs": {"p": {"pattern": lookahead}}, "properties": {"a": {"not": {"$ref": "#/$defs/p"}}}}),
            json!({"a": "b"}),
        ),
        (
            json!({"properties": {"a": {"contains": {"pattern": lookahead}, "minContains": 0, "maxContains": 1}}}),
            json!({"a": ["b", "c"]}),
        ),
    ] {
        assert_eq!(
            check(&schema.to_string(), &arguments.to_string()),
            Ok(Checked::WithoutSomePatterns),
            "{schema}"
        );
    }
    // And what does not depend on it stays as strict as it was.
    let schema =
        json!({"properties": {"a": {"pattern": lookahead}, "b": {"not": {"type": "string"}}}}).to_string();
    assert!(check(&schema, r#"{"b":"c"}"#).is_err());
}

#[test]
fn a_property_may_have_the_name_of_a_keyword() {
    let schema = r#"{"properties":{"pattern":{"type":"string"},"$ref":{"type":"string"},"not":{"type":"string"},
        "enum":{"type":"string"},"$id":{"type":"string"},"$schema":{"type":"string"}},"additionalProperties":false}"#;
    assert_eq!(
        check(schema, r#"{"pattern":"(((","$ref":"x","not":"y","enum":"z","$id":"i","$schema":"s"}"#),
        Ok(Checked::Whole)
    );
    assert!(check(schema, r#"{"$schema":1}"#).is_err());
}

#[test]
fn numbers_are_judged_leniently() {
    let integer =
        |dialect: &str| format!(r#"{{"$schema":"{dialect}","properties":{{"a":{{"type":"integer"}}}}}}"#);
    for dialect in ["http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        for number in ["1", "1.0", "1e3", "-0.0", "18446744073709551616", "123456789012345678901234567890"] {
            let checked = check(&integer(dialect), &format!(r#"{{"a":{number}}}"#));
            assert_eq!(checked, Ok(Checked::Whole), "{dialect} {number}");
        }
        assert!(check(&integer(dialect), r#"{"a":1.5}"#).is_err());
    }
    let unique = r#"{"properties":{"a":{"uniqueItems":true},"b":{"type":"string"}}}"#;
    let twins = r#"{"a":[36893488147419103232,36893488147419103233]}"#;
    assert_eq!(check(unique, twins), Ok(Checked::Not(Unchecked::Inexact)));
    let twins_and_error = r#"{"a":[36893488147419103232,36893488147419103233],"b":1}"#;
    assert_eq!(told(unique, twins_and_error), "/b: must be a string, not a number\n");
    for unreadable in [r#"{"a":1e400}"#, r#"{"a":"\ud800"}"#] {
        assert_eq!(check("{}", unreadable), Ok(Checked::Not(Unchecked::Inexact)));
    }
}

#[test]
fn t_x6_arguments_over_the_limits_are_not_checked() {
    let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    assert_eq!(check("{}", &nested(64)), Ok(Checked::Whole));
    assert_eq!(check("{}", &nested(65)), Ok(Checked::Not(Unchecked::ArgumentsTooDeep)));
    assert_eq!(check("{}", &nested(100_000)), Ok(Checked::Not(Unchecked::ArgumentsTooDeep)));
    let sized = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    assert_eq!(check("{}", &sized(1024 * 1024)), Ok(Checked::Whole));
    assert_eq!(check("{}", &sized(1024 * 1024 + 1)), Ok(Checked::Not(Unchecked::ArgumentsTooLarge)));
}

#[test]
fn t_p2_violations_are_few_and_short_and_hold_no_value() {
    const SECRET: &str = "canary-4711";
    let long = SECRET.repeat(500);
    let schema = json!({"properties": {
        "a": {"items": {"type": "integer"}}, "b": {"enum": (0..2_000).map(|o| format!("option {o}")).collect::<Vec<_>>()},
        "c": {"pattern": "^x"}, "d": {"const": "x".repeat(5_000)}, "e": {"anyOf": [{"maxLength": 1}, {"not": {"type": "string"}}]},
        "f": {"maxLength": 2}, "g": {"type": "number"}, "h": {"items": {"properties": {"x": {"format": "y", "maxLength": 1}}}}
    }, "additionalProperties": false});
    let schema = schema.to_string();
    for value in [json!(SECRET), json!(long)] {
        let arguments = json!({"a": vec![&value; 50], "b": value, "c": value, "d": value, "e": value, "f": value, "g": value,
            "h": [{"x": value}]});
        for only in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let one = json!({only: arguments[only]}).to_string();
            let violations = check(&schema, &one).unwrap_err();
            assert!(violations.len() <= VIOLATIONS_MAX);
            for violation in violations {
                assert!(violation.message.len() <= 2 * 1024, "{} bytes", violation.message.len());
                assert!(!format!("{violation:?}").contains("canary"), "{violation:?}");
            }
        }
    }
    let unknown: serde_json::Map<_, _> =
        (0..50).map(|n| (format!("{n}{}", "\u{7}ą".repeat(900)), json!(SECRET))).collect();
    let violations = check(&schema, &json!(unknown).to_string()).unwrap_err();
    assert_eq!(violations.len(), VIOLATIONS_MAX);
    assert!(
        violations
            .iter()
            .all(|violation| violation.message.len() <= 2 * 1024 && !violation.message.contains('\u{7}'))
    );
}

#[test]
fn t_x6_work_that_multiplies_is_stopped() {
    // Twenty alternatives, each with the same recursive child: 20^depth ways, none of which fits.
    let branch = |name: usize| json!({"properties": {"c": {"$ref": "#/$defs/n"}, "k": {"const": name}}, "required": ["k", "c"]});
    let branches: Vec<_> = (0..20).map(branch).collect();
    let recursive =
        json!({"$defs": {"n": {"anyOf": branches}}, "properties": {"a": {"$ref": "#/$defs/n"}}}).to_string();
    let deep = format!(r#"{{"a":{}{{}}{}}}"#, r#"{"k":19,"c":"#.repeat(40), "}".repeat(40));
    // A long list of numbers, each compared with thousands of options, the last of which is equal.
    let options: Vec<usize> = (0..12_000).collect();
    let listed = json!({"properties": {"a": {"items": {"enum": options}}}}).to_string();
    let list = format!(r#"{{"a":[{}11999]}}"#, "11999,".repeat(170_000));
    let alternatives: Vec<_> = (0..1_900).map(|_| json!({"type": "string"})).collect();
    let many = json!({"properties": {"a": {"items": {"anyOf": alternatives}}}}).to_string();
    let numbers = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(500_000));
    for (schema, arguments) in [(recursive, deep), (listed, list), (many, numbers)] {
        let took = on_a_small_stack(move || {
            let compiled = compile(&schema);
            assert_eq!(compiled.unchecked(), None);
            let started = SystemTime::now();
            let checked = compiled.check(&raw(&arguments));
            println!("{:?} after {:?}", checked.as_ref().map_err(Vec::len), started.elapsed());
        });
        println!("{took:?}");
        assert!(took < Duration::from_secs(8), "took {took:?}");
    }
}

#[test]
fn f7_t_x6_the_stack_is_enough_for_the_deepest_check() {
    // Chains of references on one value, repeated at every level of the arguments.
    for chain in [1_usize, 4, 8, 15, 30] {
        let mut definitions = serde_json::Map::new();
        for link in 0..chain {
            definitions
                .insert(format!("d{link}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", link + 1)}]}));
        }
        definitions.insert(
            format!("d{chain}"),
            json!({"properties": {"c": {"$ref": "#/$defs/d0"}}, "items": {"$ref": "#/$defs/d0"}}),
        );
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"}).to_string();
        on_a_small_stack(move || {
            let compiled = compile(&schema);
            assert_eq!(compiled.unchecked(), None, "{chain}");
            for depth in [1_usize, 5, 15, 30, 50, 62] {
                let fits = format!("{}1{}", r#"{"c":"#.repeat(depth), "}".repeat(depth));
                let _ = compiled.check(&raw(&fits));
            }
        });
    }
    // A long chain of references down into the value.
    for chain in [60_usize, 120, 250] {
        let mut definitions = serde_json::Map::new();
        for link in 0..chain {
            definitions.insert(
                format!("d{link}"),
                json!({"properties": {"c": {"$ref": format!("#/$defs/d{}", link + 1)}}}),
            );
        }
        definitions.insert(format!("d{chain}"), json!({"type": "string"}));
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"}).to_string();
        on_a_small_stack(move || drop(compile(&schema)));
    }
}

#[test]
fn nothing_that_the_work_does_gets_out() {
    assert_eq!(budget::within(1, || 7), Ok(7));
    assert_eq!(
        budget::within(1, || -> u8 { std::panic::resume_unwind(Box::new("broken")) }),
        Err(Stopped::Panicked)
    );
    // The validator with nothing left stops at the first counter.
    let options = prepare::options(Draft::Draft202012, &PatternCache::new());
    let mut schema = json!({"anyOf": [{"type": "string"}]});
    prepare::prepare(&mut schema, &std::collections::HashSet::new());
    let validator = options.build(&schema).unwrap();
    assert_eq!(budget::within(0, || validator.is_valid(&json!("a"))), Err(Stopped::Exhausted));
    assert_eq!(budget::within(9, || validator.is_valid(&json!("a"))), Ok(true));
}

fn schemas() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "$ref",
        "$defs",
        "$id",
        "enum",
        "const",
        "pattern",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "minimum",
        "contains",
        "maxContains",
        "dependentSchemas",
        "$dynamicRef",
        "$dynamicAnchor",
        "$schema",
        "a",
        "b",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        (-3_i64..4).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        prop::sample::select(vec![
            "object",
            "string",
            "integer",
            "#",
            "#/$defs/a",
            "#/properties/b",
            "#a",
            "a",
            "^a",
            "(?=a)",
            "(",
            "http://x/y",
            "http://json-schema.org/draft-07/schema#",
        ])
        .prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 80, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(names.clone(), inner, 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_json_is_a_schema_and_any_object_is_checked(schema in schemas(), arguments in schemas()) {
        let compiled = compile(&schema.to_string());
        let checked = compiled.check(&raw(&json!({"a": arguments, "b": 1}).to_string()));
        if let Err(violations) = checked {
            prop_assert!(!violations.is_empty() && violations.len() <= VIOLATIONS_MAX);
        }
    }
}

#[test]
fn a_root_that_no_object_meets_is_not_checked() {
    for (schema, checked) in [
        (r#"{"type":"string"}"#, false),
        (r#"{"type":["array","null"]}"#, false),
        (r#"{"type":["object","null"]}"#, true),
        (r#"{"type":"object"}"#, true),
    ] {
        let schema = ArgumentSchema::compile(serde_json::from_str(schema).unwrap());
        assert_eq!(schema.unchecked().is_none(), checked);
        assert!(schema.check(serde_json::from_str("{}").unwrap()).is_ok());
    }
}
