//! The cases every client runs against every upstream through the proxy.
//!
//! Each compares with what the same SDK gets from the upstream without the proxy, wherever the upstream has an answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::aside;
use crate::checks::{
    Checked, answer, any_answer, ensure, five_tools, names, nearest, problem_pointers, refusal, same,
    same_result,
};
use crate::driver::Driver;
use crate::fixtures::{Fixture, marked};

/// The connection through the proxy with alice's token, and the one to the upstream itself; the same for bob.
pub const ALICE: &str = "alice";
pub const ALICE_DIRECT: &str = "alice direct";
pub const BOB: &str = "bob";
pub const BOB_DIRECT: &str = "bob direct";

pub type Case = (&'static str, fn(&mut Session) -> Checked);

pub struct Session<'a> {
    pub driver: Driver,
    pub fixture: &'a Fixture,
    /// Text that only this session writes.
    pub marker: String,
    /// Alice's tools as the upstream lists them.
    pub upstream_tools: Vec<Value>,
    pub proxy_url: String,
    pub upstream_url: String,
    pub mode: &'static str,
    pub direct_mode: &'static str,
}

/// The eras on both sides of the proxy.
#[derive(Clone, Copy)]
pub struct Across {
    pub is_modern_client: bool,
    pub is_modern_upstream: bool,
}

/// The cases that fit the fixture and the eras, in the order in which they run.
pub fn all(fixture: &Fixture, across: Across) -> Vec<Case> {
    let mut cases: Vec<Case> = vec![
        ("lists exactly the five tools with their annotations", lists_five_tools),
        ("search finds the tool, with a schema to call it by", search_finds),
        ("several queries are answered each on its own", several_queries),
        ("describe gives the upstream's own definition", describe_is_the_definition),
        ("describe suggests names for an unknown one", describe_suggests),
        ("read calls give what the upstream gives", reads_are_the_same),
        ("a batch gives each call's own result, in order", batch_in_order),
        ("a write happens once", write_happens_once),
        ("the read tools refuse a write, and nothing is written", read_tools_refuse_writes),
        ("arguments that break the schema are refused with the place", misfits_are_refused),
        ("a missing argument is refused with its name", incomplete_is_refused),
        ("an unknown tool is refused with the nearest name", unknown_tool_suggests),
        ("the upstream's own tool error passes through", upstream_error_passes),
        ("progress reaches a client that asks for it", aside::progress_is_relayed),
    ];
    if across.is_modern_upstream && across.is_modern_client {
        if fixture.logging.is_some() {
            cases.push(("log messages reach a client that asks for them", aside::logs_are_relayed));
        }
        if fixture.asking.is_some() {
            cases.push(("a tool that asks gets the client's answer", aside::question_is_answered));
        }
    } else if across.is_modern_upstream && fixture.asking.is_some() {
        cases
            .push(("a tool that asks is refused to a client that cannot answer", aside::question_is_refused));
    }
    if fixture.hidden.is_some() {
        cases.push(("bob does not see alice's tools", bob_sees_less));
        cases.push(("a bad token is a 401 with the upstream's challenge", bad_token_is_401));
    }
    cases
}

/// The cases for a client that is started anew for each of them.
pub fn for_a_command_line() -> Vec<Case> {
    vec![
        ("lists exactly the five tools with their annotations", lists_five_tools),
        ("search finds the tool, with a schema to call it by", search_finds),
        ("a write happens once", write_happens_once),
        ("the read tools refuse a write, and nothing is written", read_tools_refuse_writes),
        ("an unknown tool is refused with the nearest name", unknown_tool_suggests),
        ("the upstream's own tool error passes through", upstream_error_passes),
    ]
}

impl Session<'_> {
    /// A proxy tool's result for alice.
    pub fn proxied(&mut self, tool: &str, arguments: &Value) -> Checked<Value> {
        self.call(ALICE, tool, arguments)
    }

    pub fn call(&mut self, connection: &str, tool: &str, arguments: &Value) -> Checked<Value> {
        self.driver
            .call(connection, tool, arguments)
            .map_err(|error| format!("{tool} failed in the SDK: {error}"))
    }

    fn definition(&self, tool: &str) -> Checked<&Value> {
        let found = self.upstream_tools.iter().find(|known| known["name"] == tool);
        found.ok_or_else(|| format!("the upstream itself does not list {tool}"))
    }

    /// How many things the write left at the upstream, with their text.
    fn written(&mut self) -> Checked<Vec<String>> {
        let Some((tool, arguments)) = self.fixture.witness.as_ref() else {
            return Ok(Vec::new());
        };
        let arguments = marked(arguments, &self.marker);
        let result = self.call(ALICE_DIRECT, tool, &arguments)?;
        let lines = result["content"][0]["text"].as_str().unwrap_or_default().lines();
        Ok(lines.filter(|line| line.contains(&self.marker)).map(str::to_owned).collect())
    }
}

fn lists_five_tools(session: &mut Session) -> Checked {
    five_tools(&session.driver.list(ALICE)?)
}

fn search_finds(session: &mut Session) -> Checked {
    for (query, expected) in &session.fixture.searches {
        let found = answer(&session.proxied("search_tools", &json!({"query": query}))?)?;
        Findings::default().check(session, &found["tools"], query, expected)?;
        let one = answer(&session.proxied("search_tools", &json!({"query": query, "limit": 1}))?)?;
        ensure(names(&one["tools"]).len() == 1, || format!("limit 1 gave {:?}", names(&one["tools"])))?;
    }
    Ok(())
}

fn several_queries(session: &mut Session) -> Checked {
    let searches = &session.fixture.searches;
    let queries: Vec<&str> = searches.iter().map(|(query, _)| *query).collect();
    let found = answer(&session.proxied("search_tools", &json!({"queries": queries}))?)?;
    let results = found["results"].as_array().ok_or_else(|| format!("no results: {found}"))?;
    ensure(results.len() == searches.len(), || format!("{} results for {}", results.len(), searches.len()))?;
    let mut findings = Findings::default();
    for (result, (query, expected)) in results.iter().zip(searches) {
        same("query", &result["query"], &json!(query))?;
        findings.check(session, &result["tools"], query, expected)?;
    }
    Ok(())
}

/// What one search answer has told so far: it need not say a thing twice, but it must have said it.
#[derive(Default)]
struct Findings {
    described: BTreeSet<String>,
    with_schema: BTreeSet<String>,
}

impl Findings {
    /// The expected tool is among the first three, every entry agrees with the upstream, and the best can be called.
    fn check(&mut self, session: &Session, tools: &Value, query: &str, expected: &str) -> Checked {
        let names = names(tools);
        ensure(names.iter().take(3).any(|name| *name == expected), || {
            format!("{query:?} should find {expected} among the first three, found {names:?}")
        })?;
        for tool in tools.as_array().into_iter().flatten() {
            self.check_entry(session, tool)?;
        }
        ensure(self.with_schema.contains(names[0]), || {
            format!("{query:?} finds {} best, and its inputSchema is nowhere in the answer", names[0])
        })
    }

    fn check_entry(&mut self, session: &Session, tool: &Value) -> Checked {
        let name = tool["name"].as_str().unwrap_or_default();
        let definition = session.definition(name)?;
        if tool.get("description").is_some() || !self.described.contains(name) {
            ensure(tool["description"].as_str().is_some_and(|text| !text.is_empty()), || {
                format!("{name} is found without a description: {tool}")
            })?;
            let hints = &definition["annotations"];
            let read_only = hints["readOnlyHint"] == true && hints["destructiveHint"] != true;
            same(&format!("readOnly of {name}"), &tool["readOnly"], &json!(read_only))?;
            self.described.insert(name.to_owned());
        }
        if tool.get("inputSchema").is_some() {
            self.with_schema.insert(name.to_owned());
            if tool.get("trimmed").is_none() {
                same(&format!("inputSchema of {name}"), &tool["inputSchema"], &definition["inputSchema"])?;
            }
        }
        Ok(())
    }
}

fn describe_is_the_definition(session: &mut Session) -> Checked {
    let wanted: Vec<&str> = session.fixture.searches.iter().map(|(_, tool)| *tool).collect();
    let described = answer(&session.proxied("describe_tool", &json!({"names": wanted}))?)?;
    same("names", &json!(names(&described["tools"])), &json!(wanted))?;
    ensure(described.get("unknown").is_none(), || format!("known names are called unknown: {described}"))?;
    for (index, name) in wanted.iter().enumerate() {
        same(&format!("definition of {name}"), &described["tools"][index], session.definition(name)?)?;
    }
    Ok(())
}

fn describe_suggests(session: &mut Session) -> Checked {
    let (wrong, right) = session.fixture.typo;
    let described = answer(&session.proxied("describe_tool", &json!({"names": [wrong, right]}))?)?;
    same("names", &json!(names(&described["tools"])), &json!([right]))?;
    let unknown = &described["unknown"];
    same("unknown", &json!(names(unknown)), &json!([wrong]))?;
    ensure(nearest(&unknown[0]).contains(&right), || {
        format!("{right} is not suggested for {wrong}: {unknown}")
    })
}

fn reads_are_the_same(session: &mut Session) -> Checked {
    for read in &session.fixture.reads {
        let direct = session.call(ALICE_DIRECT, read.tool, &read.arguments)?;
        ensure(says(&direct, read.says), || format!("the upstream does not say {:?}: {direct}", read.says))?;
        let through =
            session.proxied("call_read_tool", &json!({"name": read.tool, "arguments": read.arguments}))?;
        same_result(&through, &direct).map_err(|why| format!("{}: {why}", read.tool))?;
    }
    Ok(())
}

fn batch_in_order(session: &mut Session) -> Checked {
    let fixture = session.fixture;
    let calls: Vec<Value> =
        fixture.reads.iter().map(|read| json!({"name": read.tool, "arguments": read.arguments})).collect();
    let found = answer(&session.proxied("call_read_tools", &json!({"calls": calls}))?)?;
    let results = found["results"].as_array().ok_or_else(|| format!("no results: {found}"))?;
    ensure(results.len() == calls.len(), || format!("{} results for {} calls", results.len(), calls.len()))?;
    for (result, read) in results.iter().zip(&fixture.reads) {
        same("name", &result["name"], &json!(read.tool))?;
        let direct = session.call(ALICE_DIRECT, read.tool, &read.arguments)?;
        same_result(&result["result"], &direct).map_err(|why| format!("{}: {why}", read.tool))?;
    }
    one_bad_call_spoils_no_other(session)
}

fn one_bad_call_spoils_no_other(session: &mut Session) -> Checked {
    let fixture = session.fixture;
    let good = &fixture.reads[0];
    let calls = json!({"calls": [
        {"name": fixture.typo.0, "arguments": {}},
        {"name": good.tool, "arguments": good.arguments},
    ]});
    let found = answer(&session.proxied("call_read_tools", &calls)?)?;
    let [bad, fine] = [&found["results"][0], &found["results"][1]];
    ensure(bad.get("error").is_some() && bad.get("result").is_none(), || {
        format!("no error for a bad name: {bad}")
    })?;
    ensure(says(&fine["result"], good.says), || format!("the good call was spoilt: {fine}"))
}

fn write_happens_once(session: &mut Session) -> Checked {
    let write = &session.fixture.write;
    let arguments = marked(&write.arguments, &session.marker);
    let through = session.proxied("call_write_tool", &json!({"name": write.tool, "arguments": arguments}))?;
    ensure(through["isError"] != true, || format!("the write failed: {through}"))?;
    if session.fixture.witness.is_none() {
        let direct = session.call(ALICE_DIRECT, write.tool, &arguments)?;
        return same_result(&through, &direct);
    }
    ensure(says(&through, write.says), || format!("the write does not say {:?}: {through}", write.says))?;
    let written = session.written()?;
    ensure(written.len() == 1, || format!("one write left {written:?}"))
}

fn read_tools_refuse_writes(session: &mut Session) -> Checked {
    let before = session.written()?;
    let write = &session.fixture.write;
    let call = json!({"name": write.tool, "arguments": marked(&write.arguments, &session.marker)});
    let refused = refusal(&session.proxied("call_read_tool", &call)?)?;
    let told = refused["error"].as_str().unwrap_or_default();
    ensure(told.contains("call_write_tool"), || format!("the refusal does not name the way: {refused}"))?;
    let batch = any_answer(&session.proxied("call_read_tools", &json!({"calls": [call]}))?)?;
    let entry = &batch["results"][0];
    ensure(entry.get("error").is_some() && entry.get("result").is_none(), || {
        format!("a batch wrote: {batch}")
    })?;
    let after = session.written()?;
    ensure(before == after, || format!("a refused write left {after:?} where {before:?} was"))
}

fn misfits_are_refused(session: &mut Session) -> Checked {
    for (tool, arguments, at) in &session.fixture.misfits {
        let call = json!({"name": tool, "arguments": arguments});
        let refused = refusal(&session.proxied("call_read_tool", &call)?)?;
        let pointers = problem_pointers(&refused);
        ensure(pointers.contains(at), || format!("{arguments} of {tool} is wrong at {at}: {refused}"))?;
        same("inputSchema", &refused["inputSchema"], &session.definition(tool)?["inputSchema"])?;
    }
    Ok(())
}

fn incomplete_is_refused(session: &mut Session) -> Checked {
    let (tool, arguments, missing) = &session.fixture.incomplete;
    let call = json!({"name": tool, "arguments": arguments});
    let refused = refusal(&session.proxied("call_read_tool", &call)?)?;
    let problems = refused["problems"].to_string();
    ensure(problems.contains(missing), || format!("{missing} of {tool} is missing, and not named: {refused}"))
}

fn unknown_tool_suggests(session: &mut Session) -> Checked {
    let (wrong, right) = session.fixture.typo;
    for call_tool in ["call_read_tool", "call_write_tool"] {
        let refused = refusal(&session.proxied(call_tool, &json!({"name": wrong, "arguments": {}}))?)?;
        ensure(nearest(&refused).contains(&right), || {
            format!("{right} is not suggested for {wrong}: {refused}")
        })?;
    }
    Ok(())
}

fn upstream_error_passes(session: &mut Session) -> Checked {
    let (call_tool, failing) = &session.fixture.failing;
    let direct = session.call(ALICE_DIRECT, failing.tool, &failing.arguments)?;
    ensure(direct["isError"] == true && says(&direct, failing.says), || {
        format!("no such error upstream: {direct}")
    })?;
    let through =
        session.proxied(call_tool, &json!({"name": failing.tool, "arguments": failing.arguments}))?;
    same_result(&through, &direct)
}

fn bob_sees_less(session: &mut Session) -> Checked {
    let Some((query, hidden, arguments)) = &session.fixture.hidden else {
        return Ok(());
    };
    for (name, url, mode) in [
        (BOB, session.proxy_url.clone(), session.mode),
        (BOB_DIRECT, session.upstream_url.clone(), session.direct_mode),
    ] {
        session.driver.connect(name, &url, "bob-token", mode).map_err(|error| format!("{name}: {error}"))?;
    }
    let allowed = json!(session.driver.list(BOB_DIRECT)?);
    let allowed = names(&allowed);
    ensure(!allowed.contains(hidden) && !allowed.is_empty(), || format!("bob's own list: {allowed:?}"))?;
    let alice = answer(&session.proxied("search_tools", &json!({"query": query}))?)?;
    ensure(names(&alice["tools"]).contains(hidden), || format!("alice does not find {hidden}: {alice}"))?;
    let bob = answer(&session.call(BOB, "search_tools", &json!({"query": query}))?)?;
    let strangers = |found: &[&str]| found.iter().any(|name| !allowed.contains(name));
    ensure(!strangers(&names(&bob["tools"])), || format!("bob finds more than {allowed:?}: {bob}"))?;
    let described = any_answer(&session.call(BOB, "describe_tool", &json!({"names": [hidden]}))?)?;
    same("described to bob", &json!(names(&described["tools"])), &json!([]))?;
    let suggested = nearest(&described["unknown"][0]);
    ensure(!strangers(&suggested), || format!("bob is told of {suggested:?}"))?;
    for call_tool in ["call_read_tool", "call_write_tool"] {
        let call = json!({"name": hidden, "arguments": arguments});
        let refused = refusal(&session.call(BOB, call_tool, &call)?)?;
        let suggested = nearest(&refused);
        ensure(!strangers(&suggested), || format!("bob is told of {suggested:?}"))?;
    }
    Ok(())
}

/// A client that learns of it on connecting can start its login at once; at the latest the first search must tell.
fn bad_token_is_401(session: &mut Session) -> Checked {
    let (proxy_url, mode) = (session.proxy_url.clone(), session.mode);
    let rejected = |session: &mut Session,
                    name: &str,
                    url: &str,
                    mode: &str,
                    tool: &str,
                    arguments: Value| {
        match session.driver.connect(name, url, "nobody-token", mode) {
            Err(error) => Ok(error),
            Ok(_) => match session.driver.call(name, tool, &arguments) {
                Err(error) => Ok(error),
                Ok(result) => Err(format!("{name} was served: {result}")),
            },
        }
    };
    let through = rejected(session, "nobody", &proxy_url, mode, "search_tools", json!({"query": "note"}))?;
    let (upstream_url, direct_mode) = (session.upstream_url.clone(), session.direct_mode);
    let direct =
        rejected(session, "nobody direct", &upstream_url, direct_mode, "notes_find", json!({"words": "x"}))?;
    same("status", &through["status"], &json!(401))?;
    same("WWW-Authenticate", &through["challenge"], &direct["challenge"])
}

pub fn says(result: &Value, text: &str) -> bool {
    let blocks = result["content"].as_array();
    blocks
        .into_iter()
        .flatten()
        .any(|block| text.is_empty() || block["text"].as_str().is_some_and(|t| t.contains(text)))
}
