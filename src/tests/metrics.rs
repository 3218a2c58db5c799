//! What `/metrics` says after things have happened.

use crate::support::{FakeMcp, Proxy, Reply, Style, reader};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

async fn scrape(proxy: &Proxy) -> String {
    proxy.admin_page("/metrics").await.1
}

fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}")).rsplit_once(' ').unwrap().1.parse().unwrap()
}

const WITH_SCHEMA: &str = r#"{"name":"mail__read","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}"#;
const WRITER: &str = r#"{"name":"mail__send","description":"Sends mail"}"#;

async fn upstream() -> FakeMcp {
    let tools = [reader("mail__search", "Searches mail"), WITH_SCHEMA.to_owned(), WRITER.to_owned()];
    FakeMcp::scripted(Style::Modern, &tools, |request| {
        let is_call = request.method() == "tools/call";
        let asks = |name: &str| request.json().to_string().contains(name);
        (is_call && asks("broken")).then(|| Reply::json(500, "{}"))
    })
    .await
}

#[tokio::test]
async fn what_happens_is_counted_and_nothing_but_closed_sets_becomes_a_label() {
    let upstream = upstream().await;
    let proxy = Proxy::serve(&upstream.url(), &["--max-in-flight-per-caller", "3"]).await;
    for (tool, arguments) in [
        ("search_tools", r#"{"queries":["search mail","qqqq xxxx zzzz"]}"#),
        ("call_read_tool", r#"{"name":"mail__read","arguments":{"id":"1"}}"#),
        ("call_read_tool", r#"{"name":"mail__read","arguments":{"id":1}}"#),
        ("call_read_tool", r#"{"name":"mail__raed"}"#),
        ("call_read_tool", r#"{"name":"calendar_of_somebody"}"#),
        ("call_read_tool", r#"{"name":"mail__send"}"#),
        ("call_read_tool", r#"{"nome":"mail__send"}"#),
        ("call_read_tools", r#"{"calls":[{"name":"mail__send"},{"name":"mail__search"}]}"#),
        ("call_write_tool", r#"{"name":"mail__send","arguments":{"to":"broken"}}"#),
    ] {
        proxy.post("canary-token", &call(tool, arguments)).await;
    }
    proxy.post("canary-token", "canary{").await;
    let metrics = scrape(&proxy).await;
    for (series, expected) in [
        (r#"toolsearch_search_queries_total{result="hits"}"#, 1.0),
        (r#"toolsearch_search_queries_total{result="no_hits"}"#, 1.0),
        ("toolsearch_search_duration_seconds_count", 1.0),
        ("toolsearch_searches_followed_total", 1.0),
        (r#"toolsearch_refusals_total{reason="arguments"}"#, 1.0),
        (r#"toolsearch_refusals_total{reason="misspelt_tool"}"#, 1.0),
        (r#"toolsearch_refusals_total{reason="unknown_tool"}"#, 1.0),
        (r#"toolsearch_refusals_total{reason="not_read_only"}"#, 2.0),
        (r#"toolsearch_refusals_total{reason="malformed"}"#, 1.0),
        (r#"toolsearch_rejections_total{reason="message"}"#, 1.0),
        (r#"toolsearch_calls_forwarded_total{checked="whole"}"#, 2.0),
        (r#"toolsearch_calls_forwarded_total{checked="unchecked"}"#, 1.0),
        (r#"toolsearch_upstream_requests_total{operation="call",outcome="ok"}"#, 2.0),
        (r#"toolsearch_upstream_requests_total{operation="call",outcome="status"}"#, 1.0),
        (r#"toolsearch_upstream_requests_total{operation="list",outcome="ok"}"#, 1.0),
        (r#"toolsearch_upstream_request_duration_seconds_count{operation="call"}"#, 3.0),
        (r#"toolsearch_catalog_lookups_total{result="listed"}"#, 1.0),
        (r#"toolsearch_catalog_refreshes_total{outcome="ok"}"#, 1.0),
        ("toolsearch_catalogs", 1.0),
        ("toolsearch_catalog_tools", 3.0),
        ("toolsearch_catalog_largest_tools", 3.0),
        ("toolsearch_interned_tools", 3.0),
        ("toolsearch_requests_in_flight", 0.0),
        (r#"toolsearch_degraded{state="words_only"}"#, 0.0),
        (r#"toolsearch_degraded{state="upstream_unreachable"}"#, 0.0),
    ] {
        assert!((value(&metrics, series) - expected).abs() < 0.1, "{series}: {metrics}");
    }
    assert!(value(&metrics, "process_resident_memory_bytes") > 1e6);
    assert!(metrics.contains("toolsearch_build_info{embedder=\"builtin\",version="), "{metrics}");
    assert_labels_are_closed_sets(&metrics);
    assert!(!metrics.contains("canary") && !metrics.contains("mail"), "{metrics}");
}

/// Each value of each label stands in the page about metrics.
fn assert_labels_are_closed_sets(metrics: &str) {
    let page = toolsearch_proxy::telemetry::metrics_page();
    let mut sets: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut name = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## `") {
            name = heading.trim_end_matches('`');
        } else if let Some((label, values)) = line.strip_prefix("- `").and_then(|rest| rest.split_once("`: "))
        {
            let values = values.split(", ").map(|value| value.trim_matches('`')).collect();
            sets.insert((name, label), values);
        }
    }
    let mut seen = 0;
    for line in metrics.lines().filter(|line| line.starts_with("toolsearch_")) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let Some((name, labels)) = series.split_once('{') else { continue };
        let name = ["_bucket", "_sum", "_count"].iter().fold(name, |name, end| name.trim_end_matches(end));
        for label in labels.trim_end_matches('}').split("\",").filter(|label| !label.starts_with("le=")) {
            let (label, value) = label.split_once("=\"").unwrap();
            let value = value.trim_end_matches('"');
            let set = sets.get(&(name, label)).unwrap_or_else(|| panic!("{name} {label} is not on the page"));
            assert!(set.contains(value) || set.contains("what runs"), "{line}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} labels");
}

#[tokio::test]
async fn an_upstream_that_is_gone_and_a_full_house_are_seen() {
    let proxy = Proxy::serve("http://127.0.0.1:1/mcp", &["--max-in-flight", "1"]).await;
    proxy.post("a", &call("search_tools", r#"{"query":"mail"}"#)).await;
    let metrics = scrape(&proxy).await;
    for (series, expected) in [
        (r#"toolsearch_degraded{state="upstream_unreachable"}"#, 1.0),
        (r#"toolsearch_catalog_refreshes_total{outcome="failed"}"#, 1.0),
        (r#"toolsearch_upstream_requests_total{operation="list",outcome="unreachable"}"#, 1.0),
    ] {
        assert!((value(&metrics, series) - expected).abs() < 0.1, "{series}: {metrics}");
    }
    let slow = FakeMcp::scripted(Style::Modern, &[reader("mail__search", "Searches mail")], |request| {
        (request.method() == "tools/call").then(Reply::hang)
    })
    .await;
    let proxy = Proxy::serve(&slow.url(), &["--max-in-flight-per-caller", "1"]).await;
    let endless = call("call_read_tool", r#"{"name":"mail__search"}"#);
    let waits = proxy.post("a", &endless);
    let crowd = async {
        slow.received("tools/call", 1).await;
        proxy.post("a", &call("search_tools", r#"{"query":"mail"}"#)).await
    };
    let answer = tokio::select! {
        _ = waits => panic!("the upstream never answers"),
        answer = crowd => answer,
    };
    assert!(answer.0.starts_with("HTTP/1.1 503"), "{}", answer.0);
    let metrics = scrape(&proxy).await;
    assert!((value(&metrics, "toolsearch_requests_in_flight") - 1.0).abs() < 0.1, "{metrics}");
    assert!(
        (value(&metrics, r#"toolsearch_rejections_total{reason="caller_overloaded"}"#) - 1.0).abs() < 0.1,
        "{metrics}"
    );
}

#[tokio::test]
async fn a_path_that_leads_nowhere_and_a_look_for_metadata_are_logged_and_counted() {
    let upstream = upstream().await;
    let mut proxy = Proxy::serve(&upstream.url(), &["--log-format", "json"]).await;
    for path in ["/sse", "/.well-known/oauth-protected-resource/mcp"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        crate::support::exchange(proxy.address, get).await;
    }
    let line: Value = serde_json::from_str(&proxy.line_with("no_route").await).unwrap();
    assert_eq!((&line["method"], &line["outcome"]), (&"no_route".into(), &"invalid_request".into()));
    proxy.line_with("metadata").await;
    let metrics = scrape(&proxy).await;
    assert!(metrics.contains(r#"toolsearch_requests_total{method="no_route""#), "{metrics}");
    assert!(metrics.contains(r#"toolsearch_requests_total{method="metadata""#), "{metrics}");
    assert!(proxy.seen.iter().all(|line| !line.contains("/sse")), "{:?}", proxy.seen);
}
