//! What an answer must look like: pure functions over what a client received.

use serde_json::Value;

pub type Checked<T = ()> = Result<T, String>;

pub const READ_TOOLS: [&str; 4] = ["call_read_tool", "call_read_tools", "describe_tool", "search_tools"];
pub const WRITE_TOOL: &str = "call_write_tool";

/// # Errors
/// With `message` when `holds` is false.
pub fn ensure(holds: bool, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(message()) }
}

/// Equal as JSON values. Numbers are compared by value: an SDK in JavaScript hands on 45.0 as 45 (`wire` compares bytes).
///
/// # Errors
/// When the two differ; with both.
pub fn same(what: &str, found: &Value, expected: &Value) -> Checked {
    ensure(alike(found, expected), || format!("{what} differs\nfound:    {found}\nexpected: {expected}"))
}

fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let held =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|found| alike(value, found));
            one.len() == other.len() && one.iter().all(held)
        }
        _ => one == other,
    }
}

/// The listing is exactly the five tools, described, with schemas and with the annotations clients decide by.
///
/// # Errors
/// When it is anything else.
pub fn five_tools(tools: &[Value]) -> Checked {
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    let mut expected = READ_TOOLS.to_vec();
    expected.push(WRITE_TOOL);
    expected.sort_unstable();
    ensure(names == expected, || format!("listed {names:?}, expected {expected:?}"))?;
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        ensure(tool["description"].as_str().is_some_and(|text| text.len() > 20), || {
            format!("{name} has no description")
        })?;
        ensure(tool["inputSchema"]["type"] == "object", || format!("{name} has no object schema"))?;
        let hints = &tool["annotations"];
        if name == WRITE_TOOL {
            ensure(hints["readOnlyHint"] != true, || format!("{name} must not be marked read-only"))?;
            ensure(hints["destructiveHint"] == true, || {
                format!("{name} must be marked destructive: {hints}")
            })?;
        } else {
            ensure(hints["readOnlyHint"] == true, || format!("{name} must be marked read-only: {hints}"))?;
            ensure(hints["destructiveHint"] != true, || format!("{name} must not be marked destructive"))?;
        }
    }
    Ok(())
}

/// The JSON in the one text block of a result that is not an error.
///
/// # Errors
/// When the result is an error, or is not one block of JSON.
pub fn answer(result: &Value) -> Checked<Value> {
    ensure(result["isError"] != true, || format!("an error result: {result}"))?;
    text_block(result)
}

/// The JSON in the one text block of a result, of which nothing but refusals may be left.
///
/// # Errors
/// When the result is not one block of JSON.
pub fn any_answer(result: &Value) -> Checked<Value> {
    text_block(result)
}

/// The JSON in the one text block of a result by which the proxy itself refuses.
///
/// # Errors
/// When the result is no error, or does not say in `error` what is wrong.
pub fn refusal(result: &Value) -> Checked<Value> {
    ensure(result["isError"] == true, || format!("not a refusal: {result}"))?;
    let refusal = text_block(result)?;
    ensure(refusal["error"].as_str().is_some_and(|text| !text.is_empty()), || {
        format!("the refusal does not say what is wrong: {refusal}")
    })?;
    Ok(refusal)
}

fn text_block(result: &Value) -> Checked<Value> {
    let blocks = result["content"].as_array().ok_or_else(|| format!("no content: {result}"))?;
    ensure(blocks.len() == 1 && blocks[0]["type"] == "text", || format!("not one text block: {result}"))?;
    let text = blocks[0]["text"].as_str().ok_or_else(|| format!("no text: {result}"))?;
    ensure(!text.contains('\n'), || format!("the JSON is not compact: {text}"))?;
    serde_json::from_str(text).map_err(|error| format!("the text is not JSON ({error}): {text}"))
}

/// A result that came through the proxy says the same as one that did not. What belongs to the hop (`resultType`, the
/// server's name in `_meta`) may differ, as the two hops may be of different eras.
///
/// # Errors
/// When they differ.
pub fn same_result(through: &Value, direct: &Value) -> Checked {
    for field in ["content", "structuredContent"] {
        same(field, &through[field], &direct[field])?;
    }
    let is_error = |result: &Value| Value::Bool(result["isError"] == true);
    same("isError", &is_error(through), &is_error(direct))?;
    same("_meta", &own_meta(through), &own_meta(direct))
}

fn own_meta(result: &Value) -> Value {
    let Some(meta) = result["_meta"].as_object() else {
        return Value::Object(serde_json::Map::new());
    };
    meta.iter()
        .filter(|(key, _)| !key.starts_with("io.modelcontextprotocol/"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Each of `problems[].at`.
pub fn problem_pointers(refusal: &Value) -> Vec<&str> {
    refusal["problems"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|problem| problem["at"].as_str())
        .collect()
}

/// The `name` of each tool in a list.
pub fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

/// Suggested names, given as strings or as objects with a `name`.
pub fn nearest(refusal: &Value) -> Vec<&str> {
    let suggestions = refusal["nearest"].as_array().into_iter().flatten();
    suggestions.filter_map(|near| near.as_str().or_else(|| near["name"].as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing() -> Vec<Value> {
        let described = "A description of some length.";
        let mut tools: Vec<Value> = READ_TOOLS
            .iter()
            .map(|name| {
                json!({"name": name, "description": described, "inputSchema": {"type": "object"},
                       "annotations": {"readOnlyHint": true}})
            })
            .collect();
        tools.push(json!({"name": WRITE_TOOL, "description": described, "inputSchema": {"type": "object"},
                          "annotations": {"readOnlyHint": false, "destructiveHint": true}}));
        tools
    }

    fn text(value: &Value, is_error: bool) -> Value {
        json!({"content": [{"type": "text", "text": value.to_string()}], "isError": is_error})
    }

    #[test]
    fn five_tools_must_be_all_there_and_no_other() {
        assert_eq!(five_tools(&listing()), Ok(()));
        assert!(five_tools(&listing()[1..]).is_err());
        let mut six = listing();
        six.push(json!({"name": "echo"}));
        assert!(five_tools(&six).is_err());
    }

    #[test]
    fn wrong_annotations_are_found() {
        let mut tools = listing();
        tools[4]["annotations"] = json!({"destructiveHint": true, "readOnlyHint": true});
        assert!(five_tools(&tools).is_err());
        let mut tools = listing();
        tools[0]["annotations"] = json!({});
        assert!(five_tools(&tools).is_err());
    }

    #[test]
    fn answer_is_one_block_of_compact_json_and_no_error() {
        let tools = json!({"tools": []});
        assert_eq!(answer(&text(&tools, false)), Ok(tools.clone()));
        assert!(answer(&text(&tools, true)).is_err());
        assert!(answer(&json!({"content": [{"type": "text", "text": "{\n}"}]})).is_err());
        assert!(answer(&json!({"content": []})).is_err());
    }

    #[test]
    fn refusal_must_say_what_is_wrong() {
        assert!(refusal(&text(&json!({"error": "no such tool"}), true)).is_ok());
        assert!(refusal(&text(&json!({"error": ""}), true)).is_err());
        assert!(refusal(&text(&json!({"error": "no such tool"}), false)).is_err());
    }

    #[test]
    fn results_of_two_hops_are_the_same_but_for_the_hop() {
        let direct =
            json!({"content": [{"type": "text", "text": "5"}], "_meta": {"kept": 1}, "isError": false});
        let through = json!({"content": [{"type": "text", "text": "5"}], "resultType": "complete",
            "_meta": {"kept": 1, "io.modelcontextprotocol/serverInfo": {"name": "x"}}});
        assert_eq!(same_result(&through, &direct), Ok(()));
        for (field, value) in [("_meta", json!({})), ("content", json!([])), ("isError", json!(true))] {
            let mut changed = through.clone();
            changed[field] = value;
            assert!(same_result(&changed, &direct).is_err(), "{field}");
        }
    }

    #[test]
    fn numbers_are_the_same_by_value_at_any_depth() {
        assert!(alike(&json!({"a": [45.0, {"b": 1}]}), &json!({"a": [45, {"b": 1.0}]})));
        assert!(!alike(&json!({"a": [45.0]}), &json!({"a": [46]})));
        assert!(!alike(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!alike(&json!({"a": 1, "b": 2}), &json!({"a": 1})));
    }

    #[test]
    fn suggestions_are_read_in_both_forms() {
        assert_eq!(nearest(&json!({"nearest": ["a", {"name": "b"}]})), ["a", "b"]);
        assert_eq!(nearest(&json!({})), Vec::<&str>::new());
    }
}
