//! The settings of the binary from a file, and what looks at them.

use crate::support::{FakeMcp, Proxy, Style, reader};
use std::path::PathBuf;
use std::process::Output;

/// A settings file that is gone at the end of the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}-{name}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _may_be_gone = std::fs::remove_file(&self.0);
    }
}

fn told(output: &Output, file: &File) -> String {
    let text = String::from_utf8([output.stdout.as_slice(), &output.stderr].concat()).unwrap();
    text.replace(file.path(), "proxy.toml")
}

#[tokio::test]
async fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let file = File::new(
        "wins",
        "upstream = \"https://gateway.example/mcp/all\"\nmax-tools = 1\nmax-pages = 1\nmax-callers = 1\n\
         write-tools = [\"git__*\", \"*delete*\"]\nmodel-unpinned = false\n",
    );
    let args = ["config", "check", "--config", file.path(), "--max-tools", "3"];
    let variables =
        [("TOOLSEARCH_MAX_TOOLS", "2"), ("TOOLSEARCH_MAX_PAGES", "2"), ("TOOLSEARCH_LOG_LEVEL", "")];
    let output = Proxy::run(&args, &variables).await;
    let told = told(&output, &file);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let lines: Vec<&str> = told
        .lines()
        .filter(|line| {
            ["upstream ", "max-tools", "max-pages", "max-callers", "write-tools", "log-level", "# public-url"]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
upstream = "https://gateway.example/mcp/all"     # proxy.toml
# public-url is not set
max-callers = 1                                  # proxy.toml
max-tools = 3                                    # flag
max-pages = 2                                    # variable TOOLSEARCH_MAX_PAGES
write-tools = ["git__*", "*delete*"]             # proxy.toml
log-level = "info"                               # default
"#);
}

#[tokio::test]
async fn what_config_check_prints_is_a_file_that_sets_the_same() {
    let first = Proxy::run(&["config", "check", "--upstream", "http://localhost:1/mcp"], &[]).await;
    assert_eq!(first.status.code(), Some(0));
    let printed = String::from_utf8(first.stdout).unwrap();
    let file = File::new("same", &printed);
    let second = Proxy::run(&["config", "check"], &[("TOOLSEARCH_CONFIG", file.path())]).await;
    let again = told(&second, &file);
    let settings = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(settings(&again), settings(&printed));
    assert!(again.contains("# proxy.toml") && !again.contains("# default"), "{again}");
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_told_with_everything_else_and_nothing_is_served() {
    let file = File::new("wrong", "upstraem = \"x\"\nlisten = \"nowhere\"\ncatalog-ttl = 0\n");
    let mut both = Vec::new();
    for command in [&["serve"][..], &["config", "check"]] {
        let output =
            Proxy::run(&[command, &["--config", file.path(), "--max-tools", "0"]].concat(), &[]).await;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        both.push(told(&output, &file));
    }
    assert_eq!(both[0], both[1]);
    // What is missing may stand in the file, misspelt: that is told first.
    insta::assert_snapshot!(both[0], @r"
toolsearch-proxy: proxy.toml: upstraem: no setting has this name; did you mean upstream?
toolsearch-proxy: --catalog-ttl: must be more than zero (from proxy.toml)
toolsearch-proxy: --listen: 'nowhere' can't be read: write an IP address and a port, such as 127.0.0.1:8080 (from proxy.toml)
toolsearch-proxy: --max-tools: '0' can't be read: write a whole number from 1
toolsearch-proxy: --upstream: is required: the URL of the MCP server with the many tools
");
    let output =
        Proxy::run(&["serve", "--upstream", "http://localhost", "--config", "/nowhere.toml"], &[]).await;
    let told = told(&output, &file);
    assert!(output.status.code() == Some(2) && told.contains("--config: /nowhere.toml: "), "{told}");
}

#[tokio::test]
async fn what_a_file_that_can_not_be_read_may_hold_is_not_said_to_be_missing() {
    let output = Proxy::run(&["serve", "--config", "/nowhere.toml", "--max-tools", "0"], &[]).await;
    let told = String::from_utf8(output.stderr).unwrap();
    let flags: Vec<&str> = told.lines().map(|line| line.split(':').nth(1).unwrap().trim()).collect();
    assert_eq!((output.status.code(), flags), (Some(2), vec!["--config", "--max-tools"]), "{told}");
}

#[tokio::test]
async fn a_proxy_serves_with_the_settings_of_a_file() {
    let upstream = FakeMcp::start(Style::Modern, &[reader("mail__search", "Searches mail")]).await;
    let file = File::new("serves", "log-format = \"json\"\nmax-batch-calls = 0\n");
    let proxy = Proxy::serve(&upstream.url(), &["--config", file.path()]).await;
    assert!(proxy.seen.iter().all(|line| line.starts_with('{')), "{:?}", proxy.seen);
    let (_, tools) = proxy.post("a", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert!(tools.contains("search_tools") && !tools.contains("call_read_tools"), "{tools}");
}

#[tokio::test]
async fn a_healthcheck_says_whether_the_proxy_takes_requests() {
    let upstream = FakeMcp::start(Style::Modern, &[reader("mail__search", "Searches mail")]).await;
    let proxy = Proxy::serve(&upstream.url(), &[]).await;
    let admin = proxy.admin.to_string();
    for args in [&["healthcheck"][..], &["healthcheck", "--live"]] {
        let output = Proxy::run(args, &[("TOOLSEARCH_ADMIN_LISTEN", &admin)]).await;
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}");
    }
    let file = File::new("health", &format!("admin-listen = \"{admin}\"\nmax-tools = 7\n"));
    let output = Proxy::run(&["healthcheck", "--config", file.path()], &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output, &file));
    // The port for MCP has no such page.
    let elsewhere = proxy.address.to_string();
    let output = Proxy::run(&["healthcheck", "--admin-listen", &elsewhere], &[]).await;
    assert!(output.status.code() == Some(1) && told(&output, &file).contains("404"), "{output:?}");
    drop(proxy);
    let output = Proxy::run(&["healthcheck", "--config", file.path()], &[]).await;
    assert!(
        output.status.code() == Some(1) && told(&output, &file).contains("no proxy answers"),
        "{output:?}"
    );
}
