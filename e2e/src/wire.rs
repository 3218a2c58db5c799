//! What no SDK shows: the HTTP answers to a bad token, the bytes as they stand, and what the proxy writes down.

use serde_json::json;
use serde_json::value::RawValue;

use crate::checks::{Checked, answer, ensure, five_tools, same};
use crate::driver::ANSWER;
use crate::fixtures::Fixture;
use crate::http;
use crate::plain::{Wire, parsed};
use crate::upstream::{Kind, Stack};

const PATHS: [&str; 3] = ["/mcp", "/mcp/search", "/"];
const ALICE: Option<&str> = Some("alice-token");
/// Found nowhere in what the proxy logs or measures, though all clients before sent them.
const PRIVATE: [&str; 8] =
    ["alice-token", "bob-token", "nobody-token", "palūkan", "žalias", "Žemaitija", "py-mcp-auto", ANSWER.1];

pub fn run(kind: Kind, stack: &Stack, fixture: &Fixture) -> Vec<(&'static str, Checked)> {
    let mut outcomes = vec![
        ("each path serves the five tools, in both eras", each_path_serves(stack)),
        ("definitions keep their bytes", definitions_keep_bytes(kind, stack, fixture)),
        ("results keep their bytes", results_keep_bytes(kind, stack, fixture)),
    ];
    if fixture.hidden.is_some() {
        outcomes.push((
            "no token or a bad one is a 401 with the upstream's challenge",
            challenge_is_relayed(kind, stack),
        ));
    }
    outcomes.push(("nothing private is logged or measured", nothing_private_is_kept(stack)));
    outcomes
}

fn each_path_serves(stack: &Stack) -> Checked {
    for path in PATHS {
        for wire in [Wire::modern(stack.proxy.listen, path), Wire::legacy(stack.proxy.listen, path)?] {
            let listed = parsed(&wire.result("tools/list", &json!({}))?)?;
            let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
            five_tools(tools).map_err(|error| format!("{path}: {error}"))?;
            ensure(wire.session.is_none(), || format!("{path} gave a session"))?;
        }
    }
    Ok(())
}

fn definitions_keep_bytes(kind: Kind, stack: &Stack, fixture: &Fixture) -> Checked {
    let listed =
        Wire::open(kind.is_modern(), stack.upstream.address, ALICE)?.result("tools/list", &json!({}))?;
    let fields: std::collections::HashMap<&str, &RawValue> =
        serde_json::from_str(listed.get()).map_err(|error| error.to_string())?;
    let definitions: Vec<&RawValue> = fields
        .get("tools")
        .and_then(|tools| serde_json::from_str(tools.get()).ok())
        .ok_or_else(|| format!("the upstream lists no tools: {listed}"))?;
    let wanted: Vec<&str> = fixture.searches.iter().map(|(_, tool)| *tool).collect();
    for wire in [Wire::modern(stack.proxy.listen, "/mcp"), Wire::legacy(stack.proxy.listen, "/mcp")?] {
        let call = json!({"name": "describe_tool", "arguments": {"names": wanted}});
        let described = parsed(&wire.result("tools/call", &call)?)?;
        let text = described["content"][0]["text"].as_str().unwrap_or_default();
        for name in &wanted {
            let is_it = |definition: &&&RawValue| parsed(definition).is_ok_and(|tool| tool["name"] == *name);
            let definition = definitions.iter().find(is_it).ok_or_else(|| format!("no {name} upstream"))?;
            ensure(text.contains(definition.get()), || {
                format!("{name} is not byte for byte\nupstream: {definition}\nproxy:    {text}")
            })?;
        }
    }
    Ok(())
}

fn results_keep_bytes(kind: Kind, stack: &Stack, fixture: &Fixture) -> Checked {
    let (call, bytes) = &fixture.exact;
    let arguments = json!({"name": call.tool, "arguments": call.arguments});
    let direct =
        Wire::open(kind.is_modern(), stack.upstream.address, ALICE)?.result("tools/call", &arguments)?;
    ensure(direct.get().contains(bytes), || format!("the upstream does not give {bytes}: {direct}"))?;
    let read = json!({"name": "call_read_tool", "arguments": arguments});
    let batch = json!({"name": "call_read_tools", "arguments": {"calls": [arguments]}});
    for wire in [Wire::modern(stack.proxy.listen, "/mcp"), Wire::legacy(stack.proxy.listen, "/mcp")?] {
        let through = wire.result("tools/call", &read)?;
        ensure(through.get().contains(bytes), || format!("{bytes} did not survive: {through}"))?;
        let through = parsed(&wire.result("tools/call", &batch)?)?;
        answer(&through)?;
        let text = through["content"][0]["text"].as_str().unwrap_or_default();
        ensure(text.contains(bytes), || format!("{bytes} did not survive a batch: {text}"))?;
    }
    Ok(())
}

fn challenge_is_relayed(kind: Kind, stack: &Stack) -> Checked {
    let search = json!({"name": "search_tools", "arguments": {"query": "write a note"}});
    for token in [None, Some("nobody-token")] {
        let mut direct = Wire::modern(stack.upstream.address, "/mcp");
        direct.is_modern = kind.is_modern();
        direct.token = token;
        let expected =
            direct.post("tools/call", &json!({"name": "notes_find", "arguments": {"words": "x"}}))?;
        ensure(expected.status == 401, || format!("the upstream itself said {}", expected.status))?;
        for is_modern in [true, false] {
            let mut wire = Wire::modern(stack.proxy.listen, "/mcp");
            wire.is_modern = is_modern;
            wire.token = token;
            let response = wire.post("tools/call", &search)?;
            ensure(response.status == 401, || {
                format!("token {token:?}: {} {}", response.status, response.body)
            })?;
            let [found, expected] =
                [&response, &expected].map(|response| json!(response.header("www-authenticate")));
            same("WWW-Authenticate", &found, &expected)?;
        }
    }
    Ok(())
}

fn nothing_private_is_kept(stack: &Stack) -> Checked {
    let metrics = http::get(stack.proxy.admin, "/metrics")?;
    ensure(metrics.status == 200 && metrics.body.contains("toolsearch_"), || {
        format!("no metrics: {} {}", metrics.status, metrics.body)
    })?;
    for (place, text) in [("the log", stack.proxy.log()), ("the metrics", metrics.body)] {
        for private in PRIVATE {
            ensure(!text.contains(private), || format!("{private:?} stands in {place}"))?;
        }
    }
    Ok(())
}
