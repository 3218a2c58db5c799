//! Schemas made to cost, to loop, or to be checked by nobody: each ends in time, in a state that `describe_tool` shows.

use crate::support::{FakeUpstream, TestApp, reader, tool};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// For one call in a build that is not optimised, on a machine that does other things as well. What these schemas are
/// made for takes minutes to centuries.
const LONG: Duration = Duration::from_secs(10);

/// Calls a tool with this schema; how long it took, and whether the call went upstream.
async fn called(schema: &str, arguments: &str) -> (Duration, bool) {
    let upstream = FakeUpstream::new().lists("alice", &[tool("odd", true, "Is odd", schema)]);
    let app = TestApp::over(&upstream, &[]);
    let started = SystemTime::now();
    let answer = app.caller("alice").call_read("odd", arguments).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (started.elapsed().unwrap_or_default(), !upstream.called().is_empty())
}

/// Expressions that take a backtracking engine exponential time on the text behind them, in many variants.
fn evil_patterns() -> Vec<(String, String)> {
    let shapes = [
        "(A+)+",
        "(A*)*",
        "(A|A)+",
        "(A|AA)+",
        "(A+|B)+",
        "(A|A?)+",
        "(A+A+)+",
        "(A*)+",
        "((A+)+)+",
        "(A{1,9})+",
        "(A|B|AB)+",
        "(?:A+)+",
        "(A+)*A",
        "(A+){2,}",
        "(AA*)*",
        "(A?){40}A{40}",
        "(A+B?)+",
        "(A*B*)*",
        "(.*)*",
        "(.+)+",
        "(A|[AB])+",
        "(A+)+B?",
        "([AB]+)*",
        "(\\\\w+)+",
        "(A+?)+",
    ];
    let classes = ["a", "[a-z]", "\\\\w", "(?:a)", "[ab]"];
    let ends = ["$", "!$", "x$", "[0-9]$"];
    let mut patterns = Vec::new();
    for shape in shapes {
        for class in classes {
            for end in ends {
                let body = shape.replace('A', class).replace('B', "b");
                patterns.push((format!("^{body}{end}"), format!("{}\\u0021\\u0021", "a".repeat(45))));
            }
        }
    }
    patterns
}

#[tokio::test]
async fn t_x7_no_expression_makes_a_check_backtrack() {
    let patterns = evil_patterns();
    assert!(patterns.len() >= 500);
    // Twenty in one schema: a call checks them all.
    for some in patterns.chunks(20) {
        let mut properties = String::new();
        let mut arguments = String::new();
        for (i, (pattern, text)) in some.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(properties, r#"{comma}"p{i}":{{"type":"string","pattern":"{pattern}"}}"#).unwrap();
            write!(arguments, r#"{comma}"p{i}":"{text}""#).unwrap();
        }
        let schema = format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
        let (took, _) = called(&schema, &format!("{{{arguments}}}")).await;
        assert!(took < LONG, "{took:?} for {properties}");
    }
    for pattern in
        [r"^(\\p{L}{1,500}){1,500}$", r"(a{1,1000}){1,1000}", r"^(?:(a+)\\1)+$", r"(?=a)(?!b)", "a{99999}"]
    {
        let schema = format!(r#"{{"properties":{{"p":{{"pattern":"{pattern}"}}}}}}"#);
        let (took, went) = called(&schema, r#"{"p":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#).await;
        assert!(took < LONG && went, "{pattern}: {took:?}");
    }
}

/// A schema whose alternatives double at each level.
fn doubling(levels: usize) -> String {
    let mut definitions = String::new();
    for level in 0..levels {
        let next = level + 1;
        write!(
            definitions,
            r##""d{level}":{{"anyOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}},"##
        )
        .unwrap();
    }
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{definitions}"d{levels}":{{"required":["x"]}}}}}}"##)
}

fn nested(levels: usize) -> String {
    let (open, close) = (r#"{"properties":{"a":"#.repeat(levels), "}}".repeat(levels));
    format!("{open}{{}}{close}")
}

#[tokio::test]
async fn t_x6_schemas_made_to_cost_end_in_time() {
    let many = |count: usize, item: fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
    let values = many(20_000, |i| format!("{{\"k\":{i}}}"));
    for (name, schema, arguments) in [
        ("doubling", doubling(14), "{}".to_owned()),
        ("more doubling", doubling(22), "{}".to_owned()),
        ("doubling without end", doubling(200), "{}".to_owned()),
        ("depth", nested(100), "{}".to_owned()),
        ("great depth", nested(20_000), "{}".to_owned()),
        ("a loop", r##"{"$ref":"#"}"##.to_owned(), "{}".to_owned()),
        (
            "two that name each other",
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##
                .to_owned(),
            "{}".to_owned(),
        ),
        (
            "a dynamic loop",
            r##"{"$dynamicAnchor":"a","$dynamicRef":"#a","properties":{"x":{"$dynamicRef":"#a"}}}"##
                .to_owned(),
            "{}".to_owned(),
        ),
        (
            "unique items",
            r#"{"properties":{"a":{"uniqueItems":true}}}"#.to_owned(),
            format!("{{\"a\":[{values}]}}"),
        ),
        (
            "an enum without end",
            format!(
                r#"{{"properties":{{"a":{{"items":{{"enum":[{}]}}}}}}}}"#,
                many(5_000, |i| i.to_string())
            ),
            format!("{{\"a\":[{}]}}", many(5_000, |i| format!("\"{i}\""))),
        ),
        (
            "many subschemas",
            format!(r#"{{"allOf":[{}]}}"#, many(5_000, |i| format!("{{\"minProperties\":{}}}", i % 3))),
            "{}".to_owned(),
        ),
        (
            "a chain of references",
            format!(
                r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d300":{{}}}}}}"##,
                many(300, |i| format!(r##""d{i}":{{"$ref":"#/$defs/d{}"}}"##, i + 1))
            ),
            "{}".to_owned(),
        ),
    ] {
        let (took, _) = called(&schema, &arguments).await;
        assert!(took < LONG, "{name}: {took:?}");
    }
}

/// Schemas that can't be made ready, each for its own reason, in variants.
fn uncompilable() -> Vec<String> {
    let mut schemas: Vec<String> = Vec::new();
    for target in [
        "http://127.0.0.1:9/x",
        "https://gateway.example/schema.json",
        "file:///etc/passwd",
        "other.json",
        "//host/x",
        "urn:x:y",
        "ftp://host/x",
        "#/nowhere",
        "#/$defs/none",
        "#nothing",
    ] {
        for place in [
            r#"{"$ref":"TARGET"}"#,
            r#"{"properties":{"a":{"$ref":"TARGET"}}}"#,
            r#"{"items":{"$ref":"TARGET"}}"#,
            r#"{"anyOf":[{"type":"object"},{"$ref":"TARGET"}]}"#,
            r#"{"additionalProperties":{"not":{"$ref":"TARGET"}}}"#,
            r#"{"$defs":{"a":{"$ref":"TARGET"}},"$ref":"\#/$defs/a"}"#,
            r#"{"if":{"$ref":"TARGET"}}"#,
            r#"{"patternProperties":{"a":{"$ref":"TARGET"}}}"#,
        ] {
            schemas.push(place.replace("\\#", "#").replace("TARGET", target));
        }
    }
    for dialect in ["http://json-schema.org/draft-01/schema#", "https://example/mine", "x", "", "7"] {
        schemas.push(format!(r#"{{"$schema":"{dialect}"}}"#));
    }
    for wrong in ["7", "\"x\"", "[]", "{}", "null", "1.5", "true", "[7]", "-1", "[{}]"] {
        for keyword in [
            "type",
            "required",
            "properties",
            "minLength",
            "enum",
            "pattern",
            "allOf",
            "maximum",
            "$defs",
            "items",
        ] {
            schemas.push(format!(r#"{{"{keyword}":{wrong}}}"#));
        }
    }
    schemas.extend([doubling(40), nested(200), format!("{{\"x\":\"{}\"}}", "y".repeat(70_000))]);
    schemas.extend(["7", "\"object\"", "[]", "false", r#"{"type":"string"}"#].map(str::to_owned));
    schemas
}

#[tokio::test]
async fn t_r11_a_schema_is_checked_or_said_to_be_unchecked_and_never_taken_for_checked() {
    let schemas = uncompilable();
    let (mut unchecked, mut checked) = (0, 0);
    let tools: Vec<String> = schemas
        .iter()
        .enumerate()
        .map(|(i, schema)| tool(&format!("t{i}"), true, "Is odd", schema))
        .collect();
    let upstream = FakeUpstream::new().lists("alice", &[&tools[..], &[reader("plain", "Is plain")]].concat());
    let app = TestApp::over(&upstream, &["--max-in-flight-per-caller", "100"]);
    for (i, schema) in schemas.iter().enumerate() {
        let name = format!("t{i}");
        let described = app.caller("alice").describe(&[&name]).await;
        let before = upstream.called().len();
        let answer = app.caller("alice").call_read(&name, r#"{"a":1,"zzz":[]}"#).await;
        let went = upstream.called().len() > before;
        let shown = &schema[..schema.len().min(120)];
        if described.contains("argumentsNotCheckedHere") {
            assert!(went, "{shown} is not checked, but {}", answer.text());
            unchecked += 1;
        } else {
            // What is said to be checked is: the arguments either fit or are refused with the reason.
            assert_eq!(went, !answer.is_error(), "{shown}: {}", answer.text());
            checked += 1;
        }
    }
    assert!(unchecked >= 120, "{unchecked} of {} are not checked, {checked} are", schemas.len());
}
