//! The binary as a process: settings, signals, logs, probes, the demonstration.

use crate::support::{Connection, FakeMcp, PATIENCE, Proxy, Reply, Style, reader, request};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

const READ: &str = r#"{"name":"mail__search"}"#;

async fn upstream() -> FakeMcp {
    FakeMcp::start(Style::Modern, &[reader("mail__search", "Searches mail")]).await
}

/// An upstream whose calls are never answered.
async fn slow_upstream() -> FakeMcp {
    FakeMcp::scripted(Style::Modern, &[reader("mail__search", "Searches mail")], |request| {
        (request.method() == "tools/call").then(Reply::hang)
    })
    .await
}

#[tokio::test]
async fn t_s11_bad_settings_are_told_all_at_once_with_exit_code_2_and_nothing_is_served() {
    let args =
        ["serve", "--listen", "nowhere", "--catalog-ttl", "0s", "--max-tools", "many", "--write-tools", "a["];
    let output = Proxy::run(&args, &[("TOOLSEARCH_UPSTRAEM", "x"), ("TOOLSEARCH_MAX_PAGES", "-1")]).await;
    insta::assert_snapshot!(stderr(&output), @r#"
toolsearch-proxy: --catalog-ttl: must be more than zero
toolsearch-proxy: --listen: 'nowhere' can't be read: write an IP address and a port, such as 127.0.0.1:8080
toolsearch-proxy: --max-pages: '-1' can't be read: write a whole number from 1 (from the variable TOOLSEARCH_MAX_PAGES)
toolsearch-proxy: --max-tools: 'many' can't be read: write a whole number from 1
toolsearch-proxy: --upstream: is required: the URL of the MCP server with the many tools
toolsearch-proxy: --write-tools: 'a[' is not a valid glob
toolsearch-proxy: TOOLSEARCH_UPSTRAEM: no setting has this environment variable; did you mean TOOLSEARCH_UPSTREAM?
"#);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_standard_error_that_takes_nothing_changes_no_exit_code() {
    for (args, code) in [
        (&["serve"][..], 2),
        (&["config", "check"], 2),
        (&["eval", "--catalog", "none", "--queries", "none"], 2),
        (&["healthcheck", "--admin-listen", "127.0.0.1:1"], 1),
        (&["demo", "--listen", "8.8.8.8:80"], 1),
    ] {
        assert_eq!(Proxy::run_unheard(args).await, Some(code), "{args:?}");
    }
}

#[tokio::test]
async fn settings_with_a_closed_set_of_values_are_told_with_the_others() {
    let args = ["serve", "--embedder", "magic", "--log-format", "xml", "--listen", "nowhere"];
    let output = Proxy::run(&args, &[]).await;
    assert_eq!(output.status.code(), Some(2));
    for flag in ["--embedder", "--log-format", "--listen", "--upstream"] {
        assert!(stderr(&output).contains(flag), "{flag} is missing in {}", stderr(&output));
    }
}

#[tokio::test]
async fn an_empty_variable_counts_as_not_set_and_switches_are_read_as_people_write_them() {
    let variables = [
        ("TOOLSEARCH_UPSTREAM", "http://gateway.example"),
        ("TOOLSEARCH_ALLOW_PLAINTEXT_UPSTREAM", "yes"),
        ("TOOLSEARCH_MAX_TOOLS", ""),
        ("TOOLSEARCH_PUBLIC_URL", ""),
        ("TOOLSEARCH_UPSTREAM_CA", ""),
        ("TOOLSEARCH_LISTEN", "nowhere"),
    ];
    let output = Proxy::run(&["serve"], &variables).await;
    let told = stderr(&output);
    assert!(told.lines().count() == 1 && told.contains("--listen"), "{told}");
}

#[tokio::test]
async fn t_s11_an_unknown_flag_or_command_is_exit_code_2_with_what_was_meant() {
    let output = Proxy::run(&["serve", "--upstraem", "http://localhost"], &[]).await;
    assert!(output.status.code() == Some(2) && stderr(&output).contains("--upstream"), "{}", stderr(&output));
    assert_eq!(Proxy::run(&["sreve"], &[]).await.status.code(), Some(2));
    assert_eq!(Proxy::run(&[], &[]).await.status.code(), Some(2));
}

#[tokio::test]
async fn variables_set_what_flags_set_and_the_flag_wins() {
    let variables = [
        ("TOOLSEARCH_UPSTREAM", "ftp://from-the-environment"),
        ("TOOLSEARCH_LISTEN", "from-the-environment"),
    ];
    let output = Proxy::run(&["serve"], &variables).await;
    assert!(stderr(&output).contains("--listen: 'from-the-environment'"), "{}", stderr(&output));
    let output = Proxy::run(&["serve", "--listen", "from-the-flag"], &variables).await;
    assert!(stderr(&output).contains("--listen: 'from-the-flag'"), "{}", stderr(&output));
}

#[tokio::test]
async fn help_names_every_setting_with_its_variable() {
    let help = Proxy::run(&["serve", "--help"], &[]).await;
    let text = String::from_utf8(help.stdout).unwrap();
    assert_eq!(help.status.code(), Some(0));
    let page = toolsearch_proxy::config::configuration_page();
    let flags: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.split(['`', ' ']).next()).collect();
    assert!(flags.len() > 25, "{flags:?}");
    for flag in flags {
        let variable =
            format!("TOOLSEARCH_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
        assert!(text.contains(flag) && text.contains(&variable), "{flag}");
    }
    let top = String::from_utf8(Proxy::run(&["--help"], &[]).await.stdout).unwrap();
    assert!(top.contains("serve") && top.contains("demo"), "{top}");
    let version = String::from_utf8(Proxy::run(&["--version"], &[]).await.stdout).unwrap();
    assert_eq!(version, format!("toolsearch-proxy {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn a_port_in_use_is_told_with_its_flag_and_exit_code_2() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (flag, other) in [("--listen", "--admin-listen"), ("--admin-listen", "--listen")] {
        let args = ["serve", "--upstream", "http://localhost:1", flag, &taken, other, "127.0.0.1:0"];
        let output = Proxy::run(&args, &[]).await;
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("toolsearch-proxy: {flag}: can't listen on {taken}");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn a_public_url_whose_path_is_not_served_is_told_at_the_start() {
    let upstream = upstream().await;
    let mut proxy = Proxy::serve(&upstream.url(), &["--public-url", "https://gateway.example/tools"]).await;
    let line = proxy.line_with("the path of --public-url is not served here").await;
    assert!(line.contains("INFO") && line.contains("/tools"), "{line}");
}

#[tokio::test]
async fn an_address_of_the_demonstration_is_refused_with_the_form_it_has() {
    let output = Proxy::run(&["demo", "--listen", "foo"], &[]).await;
    let told = stderr(&output);
    assert!(output.status.code() == Some(2) && told.contains("such as 127.0.0.1:8080"), "{told}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_fault() {
    for args in ["config check --upstream http://localhost:1", "demo --exit --listen 127.0.0.1:0"] {
        // The reading end is closed before anything is written.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolsearch-proxy"));
        command.args(args.split(' ')).stdout(writer);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args}");
    }
}

/// Waits until an address takes no connections any more.
async fn refuses(address: SocketAddr) {
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the listener is closed");
}

#[tokio::test]
async fn t_h13_sigterm_lets_a_request_in_flight_finish_and_exits_0() {
    let server = upstream().await;
    server.hold_calls(true);
    let mut proxy = Proxy::serve(&server.url(), &[]).await;
    let mut client = Connection::open(proxy.address).await;
    client.write(request("alice", &call("call_read_tool", READ))).await;
    server.received("tools/call", 1).await;
    assert_eq!(proxy.admin_page("/readyz").await, ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    proxy.signal("TERM");
    proxy.line_with("stopping").await;
    assert!(proxy.admin_page("/readyz").await.0.contains("503"));
    assert!(proxy.admin_page("/livez").await.0.contains("200"));
    refuses(proxy.address).await;
    server.hold_calls(false);
    let (head, body) = client.response().await;
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("alice called"), "{head}{body}");
    let (code, lines) = proxy.exit().await;
    assert_eq!(code, Some(0), "{lines:?}");
}

#[tokio::test]
async fn the_drain_ends_after_its_time_and_says_so() {
    let server = slow_upstream().await;
    let proxy = Proxy::serve(&server.url(), &["--drain-timeout", "50ms"]).await;
    let mut client = Connection::open(proxy.address).await;
    client.write(request("alice", &call("call_read_tool", READ))).await;
    server.received("tools/call", 1).await;
    proxy.signal("TERM");
    let (code, lines) = proxy.exit().await;
    assert_eq!(code, Some(0));
    assert!(
        lines.iter().any(|line| line.contains("cut off") && line.contains("--drain-timeout")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn t_h13_a_second_signal_ends_the_process_at_once() {
    let server = slow_upstream().await;
    let mut proxy = Proxy::serve(&server.url(), &["--drain-timeout", "1h"]).await;
    let mut client = Connection::open(proxy.address).await;
    client.write(request("alice", &call("call_read_tool", READ))).await;
    server.received("tools/call", 1).await;
    proxy.signal("INT");
    proxy.line_with("stopping").await;
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.0, Some(1));
}

/// Sends requests full of canaries, and gives everything that was logged and counted.
async fn logged_with(flags: &[&str]) -> (Vec<String>, String) {
    let server =
        FakeMcp::scripted(Style::Modern, &[reader("mail__search", "canary-description")], |request| {
            let error = request
                .body
                .contains("canary-fails")
                .then(|| Reply::error(request, 200, -32603, r#","data":"canary-data""#));
            let result = || Reply::result(request, r#"{"resultType":"complete","content":"canary-result"}"#);
            error.or_else(|| (request.method() == "tools/call").then(result))
        })
        .await;
    let proxy = Proxy::serve(&server.url(), flags).await;
    for body in [
        call("search_tools", r#"{"query":"canary-query"}"#),
        call("call_read_tool", r#"{"name":"mail__search","arguments":{"x":"canary-argument"}}"#),
        call("call_read_tool", r#"{"name":"mail__search","arguments":{"x":"canary-fails"}}"#),
        call("call_read_tool", r#"{"name":"canary-name"}"#),
        r#"{"jsonrpc":"2.0","id":"canary-id","method":"canary-method"}"#.to_owned(),
        "canary-no-json".to_owned(),
    ] {
        proxy.post("canary-token", &body).await;
    }
    let metrics = proxy.admin_page("/metrics").await.1;
    proxy.signal("TERM");
    let (code, lines) = proxy.exit().await;
    assert_eq!(code, Some(0));
    (lines, metrics)
}

const LOGGED: [(&str, &str, &str); 6] = [
    ("tools/call", "search_tools", "ok"),
    ("tools/call", "call_read_tool", "ok"),
    ("tools/call", "call_read_tool", "upstream_error"),
    ("tools/call", "call_read_tool", "refused"),
    ("other", "none", "invalid_request"),
    ("other", "none", "invalid_request"),
];

#[tokio::test]
async fn t_p1_one_line_a_request_as_text_and_nothing_private_even_at_trace() {
    let (lines, metrics) = logged_with(&["--log-level", "trace"]).await;
    let requests: Vec<&String> = lines.iter().filter(|line| line.contains("outcome=")).collect();
    assert_eq!(requests.len(), LOGGED.len(), "{lines:?}");
    for (line, (method, tool, outcome)) in requests.iter().zip(LOGGED) {
        assert!(line.contains(&format!("{method} {tool} {outcome} ")) && line.contains(" ms"), "{line}");
    }
    assert!(!lines.concat().contains("canary") && !metrics.contains("canary"), "{lines:?}");
    for (metric, count) in [
        (r#"{method="tools/call",outcome="ok",tool="call_read_tool"}"#, 1),
        (r#"{method="tools/call",outcome="refused",tool="call_read_tool"}"#, 1),
        (r#"{method="other",outcome="invalid_request",tool="none"}"#, 2),
    ] {
        assert!(metrics.contains(&format!("toolsearch_requests_total{metric} {count}\n")), "{metrics}");
    }
    assert!(
        metrics.contains("toolsearch_callers 1\n") && metrics.contains("toolsearch_catalogs 1\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn t_p1_one_line_a_request_as_json_with_the_same_fields() {
    let (lines, _) = logged_with(&["--log-format", "json"]).await;
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line.get("outcome").is_some()).collect();
    assert_eq!(requests.len(), LOGGED.len(), "{lines:?}");
    for (line, (method, tool, outcome)) in requests.iter().zip(LOGGED) {
        assert_eq!(
            (&line["method"], &line["tool"], &line["outcome"]),
            (&method.into(), &tool.into(), &outcome.into())
        );
        assert!(line["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{line}");
        assert_eq!((&line["level"], line["timestamp"].is_string()), (&"INFO".into(), true));
    }
}

#[tokio::test]
async fn t_h14_the_probes_stay_true_while_the_upstream_is_down() {
    let proxy = Proxy::serve("http://127.0.0.1:1/mcp", &[]).await;
    let (head, body) = proxy.post("alice", &call("search_tools", r#"{"query":"x"}"#)).await;
    assert!(
        head.starts_with("HTTP/1.1 200") && body.contains("can't be reached: the connection was refused"),
        "{head}{body}"
    );
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(proxy.admin_page(path).await.0, "HTTP/1.1 200 OK", "{path}");
    }
    assert!(proxy.admin_page("/mcp").await.0.contains("404"));
}

#[tokio::test]
async fn why_there_is_no_connection_is_told_and_logged() {
    for (url, why) in [
        ("http://127.0.0.1:1/mcp", "the connection was refused"),
        ("https://no-such-host.invalid/mcp", "its name is not found"),
    ] {
        let mut proxy = Proxy::serve(url, &[]).await;
        let (_, body) = proxy.post("alice", &call("search_tools", r#"{"query":"x"}"#)).await;
        assert!(body.contains(why), "{url}: {body}");
        let line = proxy.line_with("can't be reached").await;
        assert!(line.contains("WARN") && line.contains(why), "{line}");
    }
}

#[tokio::test]
async fn the_proxy_works_from_end_to_end_as_a_process() {
    let server = upstream().await;
    let proxy = Proxy::serve(&server.url(), &[]).await;
    let (_, body) =
        proxy.post("alice", &call("call_read_tool", r#"{"name":"mail__search","arguments":{"q":1}}"#)).await;
    assert!(body.contains(r#"alice called \"mail__search\" with {\"q\":1}"#), "{body}");
}

#[tokio::test]
async fn the_demonstration_searches_once_and_says_how_to_connect() {
    let output = Proxy::run(&["demo", "--exit", "--listen", "127.0.0.1:0"], &[]).await;
    let page = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for expected in [
        "five tools",
        "search_tools \"who is on call this week\"",
        "\n  1. ",
        "\"mcpServers\"",
        "curl -s http://127.0.0.1:",
        "Authorization: Bearer demo-alice",
    ] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    assert!(!page.contains("Serving."), "{page}");
}

#[tokio::test]
async fn the_demonstration_takes_another_port_where_its_own_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output =
        Proxy::run(&["demo", "--exit", "--listen", &address, "--query", "rotate a password"], &[]).await;
    let page = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(page.contains("rotate a password") && !page.contains(&format!("http://{address}/")), "{page}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn t_p4_the_process_leaves_no_core_dump() {
    use std::os::unix::process::ExitStatusExt;
    let upstream = upstream().await;
    let proxy = Proxy::serve_within("ulimit -c unlimited", &upstream.url()).await;
    let limits = proxy.proc("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");
    proxy.signal("ABRT");
    let status = proxy.ended().await;
    assert!(status.signal().is_some() && !status.core_dumped(), "{status:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn t_x18_few_descriptors_mean_fewer_connections_and_the_rest_wait() {
    let upstream = upstream().await;
    let proxy = Proxy::serve_within("ulimit -n 64", &upstream.url()).await;
    assert!(proxy.seen.iter().any(|line| line.contains("fewer than --max-connections")), "{:?}", proxy.seen);
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(Connection::open(proxy.address).await);
    }
    let (status, _) = proxy.admin_page("/livez").await;
    assert!(status.contains("200"), "{status}");
    drop(idle);
    let (head, body) = proxy.post("alice", &call("call_read_tool", READ)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head} {body}");
    assert_eq!(upstream.received("tools/call", 1).await.len(), 1);
    proxy.signal("TERM");
    assert_eq!(proxy.exit().await.0, Some(0));
}

#[tokio::test]
async fn t_x19_a_log_that_nobody_reads_holds_up_no_request() {
    let upstream = upstream().await;
    let proxy = Proxy::serve_unread(&upstream.url(), &["--log-level", "trace"]).await;
    let mut connection = Connection::open(proxy.address).await;
    // Several times what a pipe holds.
    for _ in 0..3_000 {
        connection.write(request("alice", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await;
        assert!(connection.response().await.0.starts_with("HTTP/1.1 200"));
    }
    proxy.signal("TERM");
}

#[tokio::test]
async fn t_h13_new_requests_are_taken_while_a_balancer_turns_away_and_each_ends_its_connection() {
    let upstream = upstream().await;
    let mut proxy = Proxy::serve(&upstream.url(), &["--drain-delay", "2s"]).await;
    let mut kept = Connection::open(proxy.address).await;
    kept.write(request("alice", &call("call_read_tool", READ))).await;
    assert!(!kept.response().await.0.to_lowercase().contains("connection: close"));
    proxy.signal("TERM");
    proxy.line_with("--drain-delay").await;
    assert!(proxy.admin_page("/readyz").await.0.contains("503"));
    let (head, _) = proxy.post("alice", &call("call_read_tool", READ)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    kept.write(request("alice", &call("call_read_tool", READ))).await;
    let (head, _) = kept.response().await;
    assert!(head.starts_with("HTTP/1.1 200") && head.to_lowercase().contains("connection: close"), "{head}");
    proxy.line_with("requests in flight may finish").await;
    refuses(proxy.address).await;
    assert_eq!(proxy.exit().await.0, Some(0));
}

#[tokio::test]
async fn t_x9_one_more_connection_than_an_address_may_have_is_closed() {
    let upstream = upstream().await;
    let mut proxy = Proxy::serve(&upstream.url(), &["--max-connections-per-address", "2"]).await;
    let mut first = Connection::open(proxy.address).await;
    let _second = Connection::open(proxy.address).await;
    first.write(request("alice", &call("call_read_tool", READ))).await;
    assert!(first.response().await.0.starts_with("HTTP/1.1 200"));
    assert_eq!(Connection::open(proxy.address).await.read_to_end().await, "");
    proxy.line_with("--max-connections-per-address").await;
    drop(first);
    // The end of a connection is seen a moment after it.
    let mut answer = String::new();
    for _ in 0..100 {
        let mut again = Connection::open(proxy.address).await;
        again.write(request("alice", &call("call_read_tool", READ))).await;
        again.half_close().await;
        answer = again.read_to_end().await;
        if !answer.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn f5_a_process_that_nobody_asks_anything_frees_its_catalogues() {
    let upstream = upstream().await;
    let proxy = Proxy::serve(&upstream.url(), &["--catalog-idle", "1ms"]).await;
    proxy.post("alice", &call("call_read_tool", READ)).await;
    let metrics = async || proxy.admin_page("/metrics").await.1;
    let freed = async {
        while !metrics().await.contains(r#"toolsearch_catalog_evictions_total{cause="idle"} 1"#) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.expect("it is freed by itself");
    let text = metrics().await;
    for gauge in ["toolsearch_catalogs 0", "toolsearch_interned_tools 0", "toolsearch_callers 0"] {
        assert!(text.contains(gauge), "{gauge}: {text}");
    }
}
