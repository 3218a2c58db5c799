//! What no compiler checks: which module may name which, and the rules of the house that are text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which top-level modules each may name. An edge that is not here is a decision: change this table on purpose.
const EDGES: &[(&str, &[&str])] = &[
    ("main", &["app", "config", "demo", "eval", "healthcheck", "host", "telemetry"]),
    ("healthcheck", &["config"]),
    (
        "app",
        &[
            "budget",
            "caller",
            "catalog",
            "config",
            "dispatch",
            "embedder",
            "host",
            "mcp",
            "outbound",
            "search",
            "server",
            "telemetry",
            "tools",
            "upstream",
        ],
    ),
    ("config", &["catalog", "eval", "outbound", "telemetry"]),
    ("eval", &["budget", "caller", "catalog", "embedder", "mcp", "outbound", "search", "upstream"]),
    ("demo", &["app", "config", "mcp", "server"]),
    ("server", &["caller", "catalog", "dispatch", "mcp", "telemetry", "tools", "upstream"]),
    ("dispatch", &["caller", "catalog", "mcp", "telemetry", "tools", "upstream"]),
    ("tools", &["caller", "catalog", "mcp", "search", "telemetry", "upstream"]),
    ("catalog", &["budget", "caller", "mcp", "search", "upstream"]),
    ("upstream", &["budget", "caller", "mcp", "outbound", "telemetry"]),
    ("embedder", &["outbound", "search"]),
    ("budget", &[]),
    ("caller", &[]),
    ("host", &[]),
    ("outbound", &[]),
    ("mcp", &[]),
    ("search", &[]),
    ("telemetry", &["outbound"]),
];

/// Files that are longer than 500 lines, and why.
const LONG_FILES: &[(&str, &str)] = &[("src/tools/arguments/tests.rs", "a table of schemas and arguments")];

/// Inline modules of names that are part of their parent's surface.
const NAME_MODULES: [&str; 3] = ["code", "keys", "names"];

/// Files that implement a foreign trait which asks for a boxed error.
const BOXED_ERRORS: [&str; 1] = ["src/tools/arguments/prepare.rs"];

const LINES_MAX: usize = 500;

struct Source {
    /// From the root of the repository, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The top-level module that the file belongs to.
    fn module(&self) -> &str {
        let rest = self.path.strip_prefix("src/").unwrap();
        rest.split('/').next().unwrap().trim_end_matches(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("src/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.starts_with("src/benches/")
    }

    /// The lines of code that run outside of tests, which come last in a file; comments are left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().take_while(|(_, line)| *line != "#[cfg(test)]");
        let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
        let is_test = self.is_test();
        lines.filter(move |_| !is_test).map(|(i, line)| (i + 1, line))
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sources() -> Vec<Source> {
    fn collect(folder: &Path, sources: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, sources);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
                sources.push(Source { path: name, text: fs::read_to_string(&path).unwrap() });
            }
        }
    }
    let mut sources = Vec::new();
    collect(&root().join("src"), &mut sources);
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(sources.len() > 50);
    sources
}

fn sources_of_the_crate() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| !["tests", "benches"].contains(&source.module()))
}

/// The paths behind each `crate::` in a text, as segments, groups of a `use` taken apart one level deep.
fn crate_paths(text: &str) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    for start in ["crate::", "toolsearch_proxy::"] {
        for (at, _) in text.match_indices(start) {
            let is_word =
                text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            let rest = &text[at + start.len()..];
            if is_word {
                continue;
            }
            if let Some(group) = rest.strip_prefix('{') {
                let group = group.split('}').next().unwrap_or_default();
                paths.extend(
                    group.split(',').map(|path| segments(path.trim())).filter(|path| !path.is_empty()),
                );
            } else {
                paths.push(segments(rest));
            }
        }
    }
    paths
}

fn segments(path: &str) -> Vec<&str> {
    let end = path.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).unwrap_or(path.len());
    path[..end].split("::").filter(|segment| !segment.is_empty()).collect()
}

#[test]
fn a_module_names_only_those_that_the_table_allows() {
    let mut unused: BTreeSet<(&str, &str)> =
        EDGES.iter().flat_map(|(from, to)| to.iter().map(|to| (*from, *to))).collect();
    for source in sources_of_the_crate().filter(|source| source.module() != "lib") {
        let from = source.module();
        let (from, allowed) = EDGES
            .iter()
            .find(|(name, _)| *name == from)
            .unwrap_or_else(|| panic!("{from} is not in the table"));
        for path in crate_paths(&source.text) {
            let to = path[0];
            if to == *from || !EDGES.iter().any(|(name, _)| *name == to) {
                continue;
            }
            assert!(allowed.contains(&to), "{} names {to}, which {from} may not", source.path);
            unused.retain(|edge| *edge != (from, to));
        }
    }
    assert!(unused.is_empty(), "nothing needs these edges any more: {unused:?}");
}

#[test]
fn the_table_has_no_way_round() {
    // Each module stands above all that it names, so the order of the table's levels has to exist.
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    while placed.len() < EDGES.len() {
        let next =
            EDGES.iter().find(|(name, to)| !placed.contains(name) && to.iter().all(|to| placed.contains(to)));
        let Some((name, _)) = next else {
            panic!(
                "these name each other: {:?}",
                EDGES.iter().map(|edge| edge.0).filter(|name| !placed.contains(name)).collect::<Vec<_>>()
            )
        };
        placed.insert(name);
    }
}

#[test]
fn a_module_has_one_door() {
    for source in sources_of_the_crate() {
        if source.path.ends_with("/mod.rs") {
            for (line, text) in source.code() {
                let is_open = text.starts_with("pub mod ") || text.starts_with("pub(crate) mod ");
                assert!(!is_open, "{}:{line}: a file of a module is private", source.path);
            }
        }
        for path in
            crate_paths(&source.text).iter().filter(|path| path.len() > 2 && path[0] != source.module())
        {
            let is_inside =
                path[1].starts_with(|c: char| c.is_ascii_lowercase()) && !NAME_MODULES.contains(&path[1]);
            assert!(!is_inside, "{} reaches into {}", source.path, path.join("::"));
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    for source in sources() {
        assert!(source.text.starts_with("//! "), "{} has no module docs", source.path);
        let lines = source.text.lines().count();
        let is_listed = LONG_FILES.iter().any(|(path, reason)| *path == source.path && !reason.is_empty());
        assert_eq!(lines > LINES_MAX, is_listed, "{} has {lines} lines", source.path);
    }
}

#[test]
fn the_map_of_the_crate_names_every_module() {
    let map = read("src/lib.rs");
    for (name, _) in EDGES.iter().filter(|(name, _)| *name != "main") {
        assert!(map.contains(&format!("//! - [`{name}`]: ")), "{name} is not on the map");
        assert!(map.contains(&format!("pub mod {name};")), "{name} is no module of the crate");
    }
    assert_eq!(map.matches("pub mod ").count(), EDGES.len() - 1);
}

#[test]
fn words_that_the_house_does_without_are_not_in_the_code() {
    for source in sources() {
        assert!(
            !source.text.contains(concat!("#[", "allow(")),
            "{}: expect a lint with a reason",
            source.path
        );
        assert!(
            !source.text.contains(concat!("std::time::", "Instant")),
            "{}: use tokio's clock",
            source.path
        );
        assert!(!source.text.contains(concat!("unsafe", " {")), "{}", source.path);
        for (line, text) in source.code() {
            let place = format!("{}:{line}: {text}", source.path);
            assert!(!text.contains(".unwrap()"), "{place}");
            let is_boxed = text.contains("Box<dyn Error") || text.contains("Box<dyn std::error::Error");
            assert!(!is_boxed || BOXED_ERRORS.contains(&source.path.as_str()), "{place}");
            assert!(!text.contains("println!") || ["main", "demo"].contains(&source.module()), "{place}");
            assert!(
                !text.contains("std::env::var") || ["main", "config"].contains(&source.module()),
                "{place}"
            );
        }
    }
}

#[test]
fn t_f9_each_http_client_is_built_in_one_place() {
    let makers = ["Client::builder", "Client::new", "ClientBuilder", "reqwest::get", "reqwest::blocking"];
    let found: BTreeSet<String> = sources_of_the_crate()
        .filter(|source| {
            source.text.contains("reqwest") && makers.iter().any(|maker| source.text.contains(maker))
        })
        .map(|source| source.path)
        .collect();
    // Those for callers' requests, for downloads and for traces begin there, so none can lack a setting.
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["src/outbound.rs"]);
    let client = read("src/outbound.rs");
    for setting in [
        ".redirect(reqwest::redirect::Policy::none())",
        ".retry(reqwest::retry::never())",
        ".no_proxy()",
        ".referer(false)",
        ".connect_timeout(",
    ] {
        assert!(client.contains(setting), "{setting}");
    }
    for path in ["src/embedder/fetch/client.rs", "src/telemetry/otlp.rs", "src/upstream/pool.rs"] {
        assert!(read(path).contains("outbound::client("), "{path}");
    }
    assert!(read("src/upstream/pool.rs").contains(".pool_idle_timeout("));
}

/// What stands before a text that somebody is told.
const TELLS: &[&str] = &[
    "#[error(",
    "RpcError::new(",
    "RpcError::invalid_params(",
    "Refusal::new(",
    "problems.add(",
    "self.add(",
    "invalid(",
    "text(\"",
    "UpstreamError::Invalid(",
    "UpstreamError::Listing(",
    "tracing::warn!(",
    "tracing::error!(",
    "Err(\"",
    "fail(",
];

/// What the scan takes for a text that somebody is told, and is none.
const NOT_TOLD: [&str; 6] = [
    "x-repo-commit",
    "x-linked-etag",
    "progressToken",
    "references outside the schema",
    "the name is valid",
    "the names are valid",
];

/// The first text behind a place in the code that is told to somebody; flags stand before what is said of them.
fn told_text(code: &str) -> Option<String> {
    let mut rest = code;
    loop {
        let start = rest.find('"').filter(|start| *start < 300)?;
        let mut text = String::new();
        let mut chars = rest[start + 1..].char_indices();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    end = start + 1 + at + 1;
                    break;
                }
                // A line that goes on, or a quote.
                '\\' => match chars.next() {
                    Some((_, '\n')) => text.push(' '),
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                c => text.push(c),
            }
        }
        if !text.starts_with("--") {
            return Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        rest = &rest[end..];
    }
}

#[test]
fn every_message_is_in_the_page_about_trouble() {
    let page = read("docs/troubleshooting.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut seen, mut missing) = (0, BTreeSet::new());
    let elsewhere = ["eval", "demo"];
    for source in sources_of_the_crate().filter(|source| !elsewhere.contains(&source.module())) {
        let code: Vec<&str> = source.code().map(|(_, line)| line).collect();
        let code = code.join("\n");
        for tell in TELLS {
            for (at, _) in code.match_indices(tell) {
                let from = at + tell.len() - usize::from(tell.ends_with('"'));
                let Some(text) = told_text(&code[from..]) else { continue };
                // What stands between is for whoever is told; any part of some length shows that the page has it.
                // The inside of `{}` is a value.
                let outside = text.split('{').map(|part| part.rsplit('}').next().unwrap_or_default());
                let parts =
                    outside.flat_map(|part| part.split([':', ';', '.', ',', '?', '('])).map(str::trim);
                let parts: Vec<&str> = parts.filter(|part| part.len() >= 10).collect();
                if parts.is_empty() || NOT_TOLD.iter().any(|text| parts[0].starts_with(text)) {
                    continue;
                }
                seen += 1;
                if !parts.iter().any(|part| page.contains(part)) {
                    missing.insert(format!("{}: {text}", source.path));
                }
            }
        }
    }
    assert!(seen > 120, "{seen}");
    assert!(missing.is_empty(), "docs/troubleshooting.md lacks: {missing:#?}");
}

#[test]
fn the_charts_settings_are_the_flags_of_serve() {
    let schema: serde_json::Value =
        serde_json::from_str(&read("deploy/helm/toolsearch-proxy/values.schema.json")).unwrap();
    let settings = schema["properties"]["settings"]["properties"].as_object().unwrap();
    let page = toolsearch_proxy::config::configuration_page();
    let flags = page.lines().filter_map(|line| line.strip_prefix("### `--")?.split(['`', ' ']).next());
    let own = ["config", "listen", "admin-listen", "drain-delay", "drain-timeout"];
    let flags: BTreeSet<&str> = flags.filter(|flag| !own.contains(flag)).collect();
    assert_eq!(settings.keys().map(String::as_str).collect::<BTreeSet<_>>(), flags);
}

#[test]
fn f6_f7_t_x3_the_manifest_keeps_what_safety_rests_on() {
    let manifest = read("Cargo.toml");
    let dependency = |name: &str| {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
        line.unwrap_or_else(|| panic!("{name} is no dependency")).to_owned()
    };
    // A panic ends one request, not the process.
    let release = manifest.split("[profile.release]").nth(1).unwrap().split("\n[").next().unwrap();
    assert!(release.contains("panic = \"unwind\"") && !release.contains("abort"), "{release}");
    assert!(release.contains("overflow-checks = true"), "{release}");
    // Its default features fetch what a schema refers to.
    let jsonschema = dependency("jsonschema");
    assert!(
        jsonschema.contains("default-features = false") && !jsonschema.contains("resolve"),
        "{jsonschema}"
    );
    // Answers must come compressed by nobody.
    let reqwest = dependency("reqwest");
    for feature in ["gzip", "brotli", "zstd", "deflate", "cookies", "socks", "system-proxy"] {
        assert!(!reqwest.contains(feature), "{feature}");
    }
    assert!(reqwest.contains("default-features = false"), "{reqwest}");
    assert!(manifest.contains("unsafe_code = \"forbid\""));
}

/// Compares a page with the file that holds it, or writes it when asked to.
fn assert_written(path: &str, page: &str, task: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "{path} is out of date: run `mise run {task}`");
}

#[test]
fn the_configuration_page_is_made_from_the_flags() {
    assert_written("docs/configuration.md", &toolsearch_proxy::config::configuration_page(), "docs:config");
}

#[test]
fn the_metrics_page_is_made_from_the_definitions() {
    assert_written("docs/metrics.md", &toolsearch_proxy::telemetry::metrics_page(), "docs:metrics");
}
