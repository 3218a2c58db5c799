//! The client that the conformance suite starts when it plays the upstream.
//!
//! The suite starts this program with its own URL as the last argument and the scenario's name in the environment. It
//! starts the proxy in front of that URL, and makes it send what the scenario looks at. The suite judges; here is only
//! checked what the suite cannot see, which is what the proxy tells its caller.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use crate::checks::{Checked, answer, ensure, names, refusal};
use crate::plain::{LEGACY, Wire, parsed};
use crate::process::Reaper;
use crate::proxy::Proxy;
use crate::steered_login;

/// What the scenario's server lists beside one tool that is sound.
const UNSOUND_TOOLS: [&str; 10] = [
    "invalid_empty_header",
    "invalid_object_header",
    "invalid_array_header",
    "invalid_null_header",
    "invalid_duplicate_same_case",
    "invalid_duplicate_diff_case",
    "invalid_space_in_name",
    "invalid_colon_in_name",
    "invalid_non_ascii_name",
    "invalid_control_char_name",
];

/// # Errors
/// When the proxy does not do what the scenario needs.
pub fn run(upstream_url: &str) -> Checked {
    let told = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let (proxy, scenario) = (told("PROXY")?, told("MCP_CONFORMANCE_SCENARIO")?);
    let is_modern = told("MCP_CONFORMANCE_PROTOCOL_VERSION")?.as_str() > LEGACY;
    let reaper = Reaper::start()?;
    end_with_the_suite();
    if scenario.starts_with("auth/") {
        let home = told("E2E_HOME")?;
        return steered_login::run(
            &reaper,
            Path::new(&home),
            Path::new(&proxy),
            upstream_url,
            &scenario,
            is_modern,
        );
    }
    let client = Steered::start(&reaper, Path::new(&proxy), upstream_url, is_modern)?;
    match scenario.as_str() {
        "initialize" | "request-metadata" => client.looks_around(),
        "http-standard-headers" => client.calls_each(&["test_headers", "my-hyphenated-tool"]),
        "http-custom-headers" => client.calls_as_told(&told("MCP_CONFORMANCE_CONTEXT")?),
        "http-invalid-tool-headers" => client.finds_only_the_sound_tool(),
        "json-schema-ref-no-deref" => client.calls_with_a_foreign_reference(),
        "json-schema-2020-12-preservation" => client.gives_the_schema_back(),
        "sep-2322-client-request-state" => client.answers_questions(),
        "sse-retry" => client.calls_each(&["test_reconnection"]),
        "tools_call" => client.adds_numbers(),
        other => Err(format!("nothing is known of the scenario {other}")),
    }
}

/// The suite keeps this program's stdin open. A suite that is gone leaves nobody to work for; the reaper then ends the
/// proxy.
fn end_with_the_suite() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
}

struct Steered {
    wire: Wire,
    _proxy: Proxy,
}

impl Steered {
    fn start(reaper: &Arc<Reaper>, binary: &Path, upstream_url: &str, is_modern: bool) -> Checked<Self> {
        let proxy = Proxy::start(reaper, binary, upstream_url)?;
        Ok(Self { wire: Wire::open(is_modern, proxy.listen, None)?, _proxy: proxy })
    }

    fn tool(&self, tool: &str, arguments: &Value) -> Checked<Value> {
        parsed(&self.wire.result("tools/call", &json!({"name": tool, "arguments": arguments}))?)
    }

    fn call(&self, name: &str, arguments: &Value) -> Checked<Value> {
        self.tool("call_write_tool", &json!({"name": name, "arguments": arguments}))
    }

    fn found(&self, query: &str) -> Checked<Vec<String>> {
        let found = answer(&self.tool("search_tools", &json!({"query": query, "limit": 20}))?)?;
        Ok(names(&found["tools"]).into_iter().map(str::to_owned).collect())
    }

    /// These servers have no tools at all.
    fn looks_around(&self) -> Checked {
        self.wire.result("tools/list", &json!({}))?;
        let found = self.found("anything")?;
        ensure(found.is_empty(), || format!("found {found:?}"))?;
        refusal(&self.call("anything", &json!({}))?).map(drop)
    }

    fn calls_each(&self, tools: &[&str]) -> Checked {
        for tool in tools {
            succeeds(&self.call(tool, &json!({}))?)?;
        }
        Ok(())
    }

    fn calls_as_told(&self, context: &str) -> Checked {
        let context: Value = serde_json::from_str(context).map_err(|error| error.to_string())?;
        for call in context["toolCalls"].as_array().into_iter().flatten() {
            let name = call["name"].as_str().unwrap_or_default();
            succeeds(&self.call(name, &call["arguments"])?)?;
        }
        Ok(())
    }

    fn finds_only_the_sound_tool(&self) -> Checked {
        let found = self.found("a tool with a header")?;
        ensure(found == ["valid_tool"], || format!("found {found:?}"))?;
        for tool in UNSOUND_TOOLS {
            let arguments =
                json!({"value": "x", "field1": "x", "field2": "x", "data": {}, "items": [], "nil": null});
            refusal(&self.call(tool, &arguments)?)?;
        }
        succeeds(&self.call("valid_tool", &json!({"region": "us-west1"}))?)
    }

    /// The scenario's server lists a tool and serves no calls, so all that counts is that each is answered.
    fn calls_with_a_foreign_reference(&self) -> Checked {
        let found = self.found("look up a user profile")?;
        ensure(found == ["lookup_user"], || format!("found {found:?}"))?;
        answer(&self.tool("describe_tool", &json!({"names": ["lookup_user"]}))?)?;
        for arguments in
            [json!({"id": "ona"}), json!({"id": "ona", "profile": {"displayName": 7}}), json!({"id": 7})]
        {
            let call = json!({"name": "call_write_tool", "arguments": {"name": "lookup_user", "arguments": arguments}});
            self.wire.post("tools/call", &call)?;
        }
        Ok(())
    }

    fn gives_the_schema_back(&self) -> Checked {
        let described = self.tool("describe_tool", &json!({"names": ["json_schema_2020_12_tool"]}))?;
        let schema = &answer(&described)?["tools"][0]["inputSchema"];
        succeeds(&self.call("json_schema_echo", &json!({"schema": schema}))?)
    }

    fn adds_numbers(&self) -> Checked {
        let found = self.found("add two numbers")?;
        ensure(found == ["add_numbers"], || format!("found {found:?}"))?;
        let sum = self.call("add_numbers", &json!({"a": 5, "b": 3}))?;
        ensure(sum["content"][0]["text"] == "The sum of 5 and 3 is 8", || format!("the sum is {sum}"))
    }

    /// One tool's questions are answered, with its state where it gave one, while another tool is called in between.
    fn answers_questions(&self) -> Checked {
        for (tool, text) in [("test_mrtr_echo_state", "echo-state-ok"), ("test_mrtr_no_state", "no-state-ok")]
        {
            let asked = self.round(tool, &json!({}))?;
            ensure(asked["resultType"] == "input_required", || format!("{tool} did not ask: {asked}"))?;
            says(&self.round("test_mrtr_unrelated", &json!({}))?, "unrelated-ok")?;
            let mut reply =
                json!({"inputResponses": {"confirm": {"action": "accept", "content": {"confirmed": true}}}});
            if let Some(state) = asked.get("requestState") {
                reply["requestState"] = state.clone();
            }
            says(&self.round(tool, &reply)?, text)?;
        }
        let plain = self.round("test_mrtr_no_result_type", &json!({}))?;
        ensure(plain["resultType"] == "complete", || format!("no result type was added: {plain}"))?;
        says(&plain, "no-result-type-test-ok")
    }

    fn round(&self, tool: &str, reply: &Value) -> Checked<Value> {
        let mut params = reply.clone();
        params["name"] = json!("call_write_tool");
        params["arguments"] = json!({"name": tool, "arguments": {}});
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
        parsed(&self.wire.result("tools/call", &params)?)
    }
}

fn succeeds(result: &Value) -> Checked {
    ensure(result["isError"] != true, || format!("a call failed: {result}"))
}

fn says(result: &Value, text: &str) -> Checked {
    ensure(result["content"][0]["text"] == text, || format!("expected {text:?}: {result}"))
}
