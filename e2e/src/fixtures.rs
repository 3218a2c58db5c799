//! What each upstream offers that the cases can hold an answer against. Data only: how it is used stands in `cases`.

use serde_json::{Value, json};

/// Stands in a write's arguments for text that no other session writes.
pub const MARKER: &str = "<marker>";

pub struct Call {
    pub tool: &'static str,
    pub arguments: Value,
    /// Part of the text in the answer, so that two equal answers are not equally wrong.
    pub says: &'static str,
}

pub struct Fixture {
    /// A query and the tool that must be among its first three results.
    pub searches: Vec<(&'static str, &'static str)>,
    /// A name with a slip, and the tool that was meant.
    pub typo: (&'static str, &'static str),
    /// Calls of read-only tools.
    pub reads: Vec<Call>,
    /// Arguments that break the schema, and the pointer to where.
    pub misfits: Vec<(&'static str, Value, &'static str)>,
    /// Arguments that lack a property, and its name.
    pub incomplete: (&'static str, Value, &'static str),
    /// A write that fits its schema, with [`MARKER`] in it.
    pub write: Call,
    /// A read-only tool that finds what the write left, if anything can.
    pub witness: Option<(&'static str, Value)>,
    /// A call that fits its schema and fails all the same, and the tool to make it with.
    pub failing: (&'static str, Call),
    /// A read-only call, and bytes that must be in its answer as they stand.
    pub exact: (Call, &'static str),
    /// A read-only call that tells how far it has come.
    pub progress: Call,
    /// A read-only call that logs, if one does in a way that a result can be held against.
    pub logging: Option<Call>,
    /// A write that asks back before it is done, where the era has a way to ask.
    pub asking: Option<Call>,
    /// For an upstream that asks who is calling: a query that finds this tool for alice, while bob may not see it.
    pub hidden: Option<(&'static str, &'static str, Value)>,
}

fn call(tool: &'static str, arguments: Value, says: &'static str) -> Call {
    Call { tool, arguments, says }
}

/// The official reference server: keeps sessions, asks nobody who they are, answers in event streams.
pub fn everything() -> Fixture {
    Fixture {
        searches: vec![
            ("add two numbers and give their sum", "get-sum"),
            ("compress a file with gzip", "gzip-file-as-resource"),
            ("echo a message back", "echo"),
        ],
        typo: ("get-smu", "get-sum"),
        reads: vec![
            call("get-sum", json!({"a": 2, "b": 40}), "42"),
            call(
                "echo",
                json!({"message": "žalias 緑 \u{1f600} \"quoted\""}),
                "žalias 緑 \u{1f600} \"quoted\"",
            ),
            call("get-structured-content", json!({"location": "Chicago"}), "humidity"),
            call("get-resource-links", json!({"count": 2}), "2 resource links"),
            call("get-tiny-image", json!({}), ""),
        ],
        misfits: vec![
            ("get-sum", json!({"a": "two", "b": 40}), "/a"),
            ("get-structured-content", json!({"location": "Vilnius"}), "/location"),
        ],
        incomplete: ("get-sum", json!({"a": 2}), "b"),
        write: call(
            "gzip-file-as-resource",
            json!({"name": "note.gz", "data": "data:text/plain,<marker>", "outputType": "resource"}),
            "",
        ),
        witness: None,
        failing: (
            "call_write_tool",
            call(
                "gzip-file-as-resource",
                json!({"name": "x.gz", "data": "gopher://127.0.0.1/x"}),
                "Unsupported URL",
            ),
        ),
        exact: (
            call("get-sum", json!({"a": 0.1, "b": 0.2}), ""),
            "The sum of 0.1 and 0.2 is 0.30000000000000004.",
        ),
        progress: call("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2}), "completed"),
        logging: None,
        asking: None,
        hidden: None,
    }
}

/// Our aggregate of small servers, built with someone else's framework: bearer tokens, tools by token.
pub fn aggregate() -> Fixture {
    let open_tickets =
        json!({"filter": {"status": "open", "assignee": {"name": "Ona", "team": "billing"}}, "limit": 2});
    Fixture {
        searches: vec![
            ("write down a new note", "notes_create"),
            ("search support tickets by status", "tickets_search"),
            ("kiek palūkanų kainuos paskola", "calc_interest"),
        ],
        typo: ("calc_divid", "calc_divide"),
        reads: vec![
            call("calc_divide", json!({"dividend": 1, "divisor": 8}), "0.125"),
            call("calc_interest", json!({"amount": 1000, "percent": 4.5}), "1045"),
            call("tickets_search", open_tickets, "wrong currency"),
            call(
                "tickets_queue",
                json!({"region": "Žemaitija, \u{1f30d}"}),
                "tickets wait in Žemaitija, \u{1f30d}",
            ),
            call("files_list", json!({}), "logo.svg"),
        ],
        misfits: vec![
            ("tickets_search", json!({"filter": {"status": "lost"}}), "/filter/status"),
            ("tickets_search", json!({"filter": {"status": "open"}, "limit": 0}), "/limit"),
            ("calc_divide", json!({"dividend": "one", "divisor": 8}), "/dividend"),
        ],
        incomplete: ("calc_divide", json!({"dividend": 1}), "divisor"),
        write: call("notes_create", json!({"text": "remember <marker>"}), "created"),
        witness: Some(("notes_find", json!({"words": MARKER}))),
        failing: (
            "call_read_tool",
            call("calc_divide", json!({"dividend": 1, "divisor": 0}), "cannot divide by zero"),
        ),
        exact: (
            call("calc_factorial", json!({"number": 25}), ""),
            r#""structuredContent":{"result":15511210043330985984000000}"#,
        ),
        progress: call("files_index", json!({}), "words"),
        logging: Some(call("files_index", json!({}), "words")),
        asking: Some(call(
            "notes_archive",
            json!({"key": 1}),
            "note 1 archived: no longer needed (asked once)",
        )),
        hidden: Some((
            "read the text of a file in the shared folder",
            "files_read",
            json!({"path": "readme.txt"}),
        )),
    }
}

/// `value` with [`MARKER`] replaced in every string.
pub fn marked(value: &Value, marker: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(MARKER, marker)),
        Value::Array(items) => items.iter().map(|item| marked(item, marker)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, item)| (key.clone(), marked(item, marker))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_is_replaced_at_any_depth() {
        let arguments = json!({"a": ["x <marker>", 1], "b": {"c": "<marker>"}});
        assert_eq!(marked(&arguments, "m7"), json!({"a": ["x m7", 1], "b": {"c": "m7"}}));
    }

    #[test]
    fn every_write_carries_the_marker() {
        for fixture in [everything(), aggregate()] {
            assert!(fixture.write.arguments.to_string().contains(MARKER));
        }
    }
}
