//! What `docs/security.md` and `docs/privacy.md` say, held to the code, and what the dependencies may bring along.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Path and text of each Rust file below a folder.
fn sources(folder: &str) -> Vec<(String, String)> {
    fn collect(folder: &Path, sources: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, sources);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                sources.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut sources = Vec::new();
    collect(&root().join(folder), &mut sources);
    sources
}

/// A file without its tests and comments.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The names between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the tables under a heading, as cells.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section =
        page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let tables = section.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---"));
    tables.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The numbers of threats, by the letter of their group.
const THREATS: [(&str, u32); 8] =
    [("F", 22), ("C", 18), ("P", 7), ("R", 12), ("D", 7), ("X", 20), ("H", 16), ("S", 11)];

#[test]
fn each_threat_of_the_table_names_tests_that_exist_or_the_reason_why_there_is_none() {
    let page = read("docs/security.md");
    let tests: String =
        ["src", "e2e/src", "fuzz/src"].into_iter().flat_map(sources).map(|(_, text)| text).collect();
    let mut listed = BTreeSet::new();
    for cells in rows(&page, "Threats and their tests") {
        let [id, _, proof] = cells[..] else { panic!("a row has three cells: {cells:?}") };
        if id == "Threat" {
            continue;
        }
        assert!(listed.insert(id.to_owned()), "{id} is there twice");
        let mut names = 0;
        for name in quoted(proof) {
            let exists = if name.contains(['/', '.']) {
                root().join(name).exists()
            } else {
                tests.contains(&format!("fn {name}("))
            };
            assert!(exists, "{id} names {name}, which does not exist");
            names += 1;
        }
        assert!(
            names > 0 || proof.starts_with("Not needed: ") || proof.starts_with("Otherwise: "),
            "{id}: {proof}"
        );
    }
    let expected: BTreeSet<String> = THREATS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |i| format!("{letter}{i}")))
        .collect();
    let missing: Vec<_> = expected.symmetric_difference(&listed).collect();
    assert!(missing.is_empty(), "missing or unknown: {missing:?}");
}

#[test]
fn a_test_that_is_named_after_a_threat_is_in_the_table() {
    let page = read("docs/security.md");
    let listed: BTreeSet<&str> = quoted(&page).collect();
    for (path, text) in sources("src") {
        for name in text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next()) {
            let is_named =
                name.starts_with("t_") && name[2..].starts_with(['c', 'p', 'r', 'd', 'x', 'h', 's']);
            let has_number = name.as_bytes().get(3).is_some_and(u8::is_ascii_digit);
            assert!(
                !(is_named && has_number) || listed.contains(name),
                "{path}: {name} is not in docs/security.md"
            );
        }
    }
}

/// Each call that writes a log line, as its level and its message.
fn log_lines() -> BTreeSet<(String, String)> {
    let mut lines = BTreeSet::new();
    for (path, text) in sources("src").into_iter().filter(|(path, _)| !path.starts_with("src/tests/")) {
        let code = code(&text);
        for level in ["error", "warn", "info", "debug", "trace"] {
            for call in code.split(&format!("tracing::{level}!(")).skip(1) {
                let call = call.split(");").next().unwrap();
                let message =
                    call.split('"').nth(1).unwrap_or_else(|| panic!("{path}: {call} has no message"));
                lines.insert((level.to_owned(), message.to_owned()));
            }
        }
        for other in [" log::", "(log::", "dbg!("] {
            assert!(!code.contains(other), "{path} logs in another way: {other}");
        }
    }
    assert!(lines.len() > 10);
    lines
}

#[test]
fn t_p1_the_privacy_page_lists_every_log_line() {
    let listed: BTreeSet<(String, String)> = rows(&read("docs/privacy.md"), "What is logged, line by line")
        .into_iter()
        .filter(|cells| cells[0] != "Level")
        .map(|cells| (cells[0].to_owned(), cells[1].trim_matches('`').to_owned()))
        .collect();
    let written = log_lines();
    let differing: Vec<_> = written.symmetric_difference(&listed).collect();
    assert!(differing.is_empty(), "on the page or in the code alone: {differing:#?}");
}

#[test]
fn t_p3_a_panic_tells_its_place_alone() {
    let hooks: Vec<(String, String)> = sources("src")
        .into_iter()
        .map(|(path, text)| (path, code(&text)))
        .filter(|(path, text)| !path.starts_with("src/tests/") && text.contains("set_hook"))
        .collect();
    let [(path, hook)] = &hooks[..] else { panic!("one hook") };
    assert_eq!(path, "src/main.rs");
    let hook = hook.split("set_hook(").nth(1).unwrap().split("}));").next().unwrap();
    assert!(hook.contains("location()"), "{hook}");
    for word in ["payload", "{panic", "message", "{:?}", "panic}"] {
        assert!(!hook.contains(word), "{hook}");
    }
    // The hook is there before anything can panic.
    let main = read("src/main.rs");
    let body = main.split("fn main() -> ExitCode {").nth(1).unwrap();
    assert!(body.trim_start().starts_with("std::panic::set_hook("), "{body}");
}

#[test]
fn f3_t_p7_a_claim_of_a_token_is_read_in_one_place_and_only_its_expiry() {
    let caller = read("src/caller.rs");
    let claims = caller.split("struct Claims {").nth(1).unwrap().split('}').next().unwrap();
    assert_eq!(claims.trim(), "exp: f64,");
    for (path, text) in sources("src").into_iter().filter(|(path, _)| !path.starts_with("src/tests/")) {
        let code = code(&text);
        for word in ["URL_SAFE", "jsonwebtoken", "jwt", "\"sub\"", "\"iss\"", "preferred_username"] {
            assert!(path == "src/caller.rs" || !code.contains(word), "{path}: {word}");
        }
        // The value itself goes to the upstream and to nobody else.
        let users = ["src/caller.rs", "src/upstream/exchange.rs"];
        assert!(
            users.contains(&path.as_str()) || !code.contains(".authorization()"),
            "{path} reads credentials"
        );
    }
}

/// Name, version and features of each crate in the program, as cargo puts them together for the whole workspace.
fn features() -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(root())
        .args([
            "tree",
            "--workspace",
            "--offline",
            "--locked",
            "-e",
            "no-dev",
            "--prefix",
            "none",
            "-f",
            "{p} [{f}]",
        ])
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn f6_t_s6_the_features_of_what_could_reach_out_are_exactly_these() {
    let tree = features();
    let of = |name: &str| {
        let line = tree
            .iter()
            .find(|line| line.starts_with(&format!("{name} v")))
            .unwrap_or_else(|| panic!("no {name}"));
        line.split('[').nth(1).unwrap().split(']').next().unwrap().to_owned()
    };
    assert_eq!(of("jsonschema"), "");
    assert_eq!(of("reqwest"), "__rustls,__tls,http2,rustls-no-provider,stream");
    assert_eq!(of("rustls"), "ring,std,tls12");
    assert_eq!(of("hyper-rustls"), "http1,http2,tls12");
    // `client-proxy` reads nothing by itself: reqwest asks for it in all of its builds, and the client says no_proxy().
    assert_eq!(
        of("hyper-util"),
        "client,client-legacy,client-proxy,default,http1,http2,server,server-graceful,service,tokio"
    );
}

#[test]
fn f18_t_s6_t_s7_what_is_banned_is_in_no_build_of_the_program() {
    let tree = features();
    let banned = [
        "openssl",
        "openssl-sys",
        "native-tls",
        "hf-hub",
        "ureq",
        "protobuf",
        "model2vec-rs",
        "tokenizers",
        "onig",
        "aws-lc-rs",
        "aws-lc-sys",
        "git2",
        "curl",
        "isahc",
        "async-compression",
        "flate2",
        "brotli",
        "zstd",
        "moka",
        "fxhash",
        "rustc-hash",
        "serde_yaml",
        "bincode",
    ];
    for name in banned {
        assert!(!tree.iter().any(|line| line.starts_with(&format!("{name} v"))), "{name}");
    }
    // Everything comes from one registry, with its digest, or from here.
    let lock = read("Cargo.lock");
    for package in lock.split("[[package]]").skip(1) {
        let is_ours = ["toolsearch-proxy", "bench", "e2e", "fire"]
            .iter()
            .any(|name| package.contains(&format!("\"{name}\"")))
            && !package.contains("source = ");
        let is_pinned = package
            .contains("source = \"registry+https://github.com/rust-lang/crates.io-index\"")
            && package.contains("checksum = ");
        assert!(is_ours || is_pinned, "{package}");
    }
}
