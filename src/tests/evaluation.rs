//! `eval` over a catalogue that an upstream lists: with which token it asks.

use crate::support::{FakeMcp, Proxy, Style, reader};

#[tokio::test]
async fn the_token_is_sent_as_it_is_meant_and_an_empty_one_is_none() {
    let questions = std::env::temp_dir().join(format!("toolsearch-eval-{}.jsonl", std::process::id()));
    std::fs::write(&questions, r#"{"id": "1", "query": "mail", "lang": "en", "relevant": ["mail__search"]}"#)
        .unwrap();
    for (token, sent) in [
        ("alice", Some("Bearer alice")),
        (" alice\n", Some("Bearer alice")),
        ("Bearer alice", Some("Bearer alice")),
        ("", None),
        (" ", None),
    ] {
        let upstream = FakeMcp::start(Style::Modern, &[reader("mail__search", "Searches mail")]).await;
        let (queries, url) = (questions.to_str().unwrap(), upstream.url());
        let args = ["eval", "--embedder", "none", "--queries", queries, "--upstream", &url];
        let output = Proxy::run(&args, &[("MCP_TOKEN", token)]).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let requests = upstream.received("tools/list", 1).await;
        assert_eq!(requests[0].header("authorization"), sent, "{token:?}");
    }
    std::fs::remove_file(&questions).unwrap();
}
