//! One conversation for each version of the protocol, with our exact answers.
//!
//! A transcript is a text file. `-->` begins a request, its headers behind it, separated by `; `; the next line is the
//! body. `<--` is the status of our answer, with our body on the next line. Lines that start with `#` explain.
//! `UPDATE_TRANSCRIPTS=1` writes our answers into the files; read what has changed.

use crate::support::{FakeUpstream, TestApp, listing, reader, tool};
use std::fmt::Write as _;
use std::path::PathBuf;
use toolsearch_proxy::upstream::Listing;

async fn check(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/transcripts").join(name);
    let written = std::fs::read_to_string(&path).unwrap();
    let played = play(&written).await;
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &played).unwrap();
    }
    for (line, (expected, got)) in written.lines().zip(played.lines()).enumerate() {
        assert_eq!(expected, got, "{name}, line {}", line + 1);
    }
    assert_eq!(written, played, "{name}");
}

/// The transcript with our answers of now.
async fn play(transcript: &str) -> String {
    let upstream = FakeUpstream::new();
    let tools = [
        tool(
            "mail__send_message",
            false,
            "Sends an e-mail message.",
            r#"{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}"#,
        ),
        reader("mail__search_inbox", "Searches the inbox."),
    ];
    let instructions = Some("Mail is for work.".to_owned());
    upstream.answers_listing("alice", Ok(Listing { instructions, ..listing(&tools) }));
    let app = TestApp::over(&upstream, &[]);
    let mut played = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(played, "{line}").unwrap();
        let Some(headers) = line.strip_prefix("-->") else { continue };
        let headers: Vec<(&str, &str)> =
            headers.trim().split("; ").filter_map(|header| header.split_once(": ")).collect();
        let body = lines.next().unwrap();
        let answer = app.caller("alice").post(&headers, body.to_owned()).await;
        let text = answer
            .text()
            .replace(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"version\":\"VERSION\"");
        write!(played, "{body}\n<-- {}\n{text}\n", answer.status).unwrap();
        // The answer of the file is what ours is compared with.
        while lines.next_if(|line| !line.is_empty()).is_some() {}
        if text.is_empty() && lines.peek().is_some_and(|line| line.is_empty()) {
            lines.next();
        }
    }
    played
}

#[tokio::test]
async fn a_client_of_2024_11_05_is_served() {
    check("2024-11-05.txt").await;
}

#[tokio::test]
async fn a_client_of_2025_03_26_is_served() {
    check("2025-03-26.txt").await;
}

#[tokio::test]
async fn a_client_of_2025_06_18_is_served() {
    check("2025-06-18.txt").await;
}

#[tokio::test]
async fn a_client_of_2025_11_25_is_served() {
    check("2025-11-25.txt").await;
}

#[tokio::test]
async fn a_client_of_2026_07_28_is_served() {
    check("2026-07-28.txt").await;
}
