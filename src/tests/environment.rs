//! What surrounds the process changes nothing: variables, and what scrapers may read.

use crate::support::{FakeMcp, Proxy, Style, reader, request};
use std::net::TcpListener;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"ask"}}}"#;

#[tokio::test]
async fn t_h4_variables_of_proxies_keys_and_certificates_lead_nothing_astray() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let proxy = format!("http://{}", trap.local_addr().unwrap());
    let keys = format!("{}/keys-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let variables = [
        ("HTTP_PROXY", proxy.as_str()),
        ("http_proxy", &proxy),
        ("HTTPS_PROXY", &proxy),
        ("https_proxy", &proxy),
        ("ALL_PROXY", &proxy),
        ("all_proxy", &proxy),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
        ("SSLKEYLOGFILE", &keys),
        ("SSL_CERT_FILE", "/dev/null"),
        ("SSL_CERT_DIR", "/nowhere"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "full"),
    ];
    // It makes some clients pass over the others, so it comes once with them and once not at all.
    let cgi = [("REQUEST_METHOD", "GET")];
    let server = FakeMcp::start(Style::Modern, &[reader("ask", "Asks")]).await;
    for more in [&cgi[..], &[]] {
        let proxy = Proxy::serve_in(&[&variables, more].concat(), &server.url()).await;
        let (_, body) = proxy.post("canary-token", CALL).await;
        assert!(body.contains("canary-token called"), "{body}");
        assert_eq!(trap.accept().map_err(|error| error.kind()).unwrap_err(), std::io::ErrorKind::WouldBlock);
        assert!(!std::path::Path::new(&keys).exists());
        proxy.signal("INT");
        let (_, lines) = proxy.exit().await;
        // The variable of other programs' logs does not count.
        assert!(lines.iter().all(|line| !line.contains("TRACE") && !line.contains("canary")), "{lines:?}");
    }
}

#[tokio::test]
async fn t_p5_t_x17_metrics_have_the_same_series_whatever_is_asked_for() {
    let tools: Vec<String> = (0..50).map(|i| reader(&format!("canary_{i}"), "Is a tool")).collect();
    let server = FakeMcp::start(Style::Modern, &tools).await;
    let proxy = Proxy::serve(&server.url(), &[]).await;
    let ask = async |i: usize| {
        let bodies = [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"canary/{i}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"canary_{i}"}}}}"#),
            CALL.replace("ask", &format!("canary_{i}")),
            CALL.replace("call_read_tool", "search_tools")
                .replace(r#""name":"ask""#, &format!(r#""query":"canary {i}""#)),
        ];
        let mut connection = crate::support::Connection::open(proxy.address).await;
        for body in bodies {
            connection.write_whole(request(&format!("canary-{}", i % 5), &body)).await;
            connection.response().await;
        }
    };
    let series = async || {
        let page = proxy.admin_page("/metrics").await.1;
        assert!(!page.contains("canary"), "{page}");
        page.lines().filter(|line| !line.starts_with('#')).count()
    };
    for i in 0..60 {
        ask(i).await;
    }
    let before = series().await;
    for i in 60..560 {
        ask(i).await;
    }
    assert_eq!(series().await, before);
    assert!(before < 500, "{before}");
}
