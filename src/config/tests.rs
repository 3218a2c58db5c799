//! The checks of settings, as tables.

use super::problems::unknown_variables;
use super::*;
use clap::CommandFactory;
use std::ffi::OsString;

fn checked(args: &[&str]) -> Result<ServeConfig, Vec<String>> {
    let args = ["toolsearch-proxy", "serve"].iter().chain(args).map(OsString::from);
    let Command::Serve(serve) = Cli::read(args).unwrap().command else { unreachable!() };
    serve.check([]).map_err(|error| error.0)
}

#[test]
fn m4_every_default_works_and_listens_on_loopback() {
    let config = checked(&["--upstream", "https://gateway.example/mcp/all"]).unwrap();
    assert_eq!(config.catalog_ttl.0.as_secs(), 600);
    assert_eq!(config.max_response_bytes.0, 16 * 1024 * 1024);
    assert!(config.listen.ip().is_loopback() && config.admin_listen.ip().is_loopback());
}

#[test]
fn all_problems_are_told_at_once() {
    let problems = checked(&[
        "--listen",
        "nowhere",
        "--catalog-ttl",
        "0s",
        "--write-tools",
        "a[,b",
        "--max-tools",
        "0",
        "--max-request-bytes",
        "1 furlong",
        "--log-level",
        "loud",
        "--upstream-ca",
        "/does/not/exist",
    ])
    .unwrap_err();
    let flags: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    assert_eq!(
        flags,
        [
            "--catalog-ttl",
            "--listen",
            "--log-level",
            "--max-request-bytes",
            "--max-tools",
            "--upstream-ca",
            "--upstream",
            "--write-tools"
        ]
    );
}

#[test]
fn the_upstream_is_a_url_that_tokens_may_be_sent_to() {
    for good in
        ["http://127.0.0.1:1/mcp", "http://localhost/mcp", "http://[::1]/", "https://a.example/mcp?x=1"]
    {
        assert!(checked(&["--upstream", good]).is_ok(), "{good}");
    }
    for bad in [
        "gateway",
        "ftp://a.example",
        "https://me:secret@a.example",
        "https://a.example/#x",
        "http://a.example/mcp",
    ] {
        let problems = checked(&["--upstream", bad]).unwrap_err();
        assert!(problems.len() == 1 && !problems[0].contains("secret"), "{bad}: {problems:?}");
    }
    assert!(checked(&["--upstream", "http://a.example/mcp", "--allow-plaintext-upstream"]).is_ok());
}

#[test]
fn what_can_not_work_is_refused_with_what_to_do() {
    for (flag, values, word) in [
        ("--public-url", &["https://u:p@h/x", "https://h/x?y", "https://h/x#z", "ftp://h"][..], "must"),
        ("--allowed-hosts", &["https://mcp.example", "a/b", "", "a,,b"], "write it without"),
        ("--allowed-origins", &["https://a/b", "foo", "https://", "", "null", "https://*.example"], "write"),
        ("--write-tools", &["a,,b"], "comma"),
        ("--max-connections", &["18446744073709551615", "-1", "0"], "m"),
        ("--max-pages", &["-1"], "whole number"),
        ("--allow-plaintext-upstream=maybe", &[], "true or false"),
    ] {
        for value in if values.is_empty() { &[""][..] } else { values } {
            let mut args = vec!["--upstream", "http://localhost", flag];
            args.extend((!values.is_empty()).then_some(*value));
            let problems = checked(&args).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(word), "{flag} {value}: {problems:?}");
        }
    }
    for (flag, value) in [
        ("--public-url", "https://h/x"),
        ("--allowed-hosts", "mcp.example,[::1]:8080,*"),
        ("--allowed-origins", "https://a.example:8443,*"),
        ("--allow-plaintext-upstream=1", "--search-schemas=0"),
    ] {
        assert!(checked(&["--upstream", "http://localhost", flag, value]).is_ok(), "{flag} {value}");
    }
}

#[test]
fn what_is_no_url_or_address_is_told_with_an_example_of_this_very_flag() {
    for (flag, example) in [
        ("--upstream", "such as https://gateway.example/mcp/all"),
        ("--public-url", "such as https://gateway.example/mcp/search"),
        ("--otlp-endpoint", "such as http://127.0.0.1:4318"),
        ("--listen", "such as 127.0.0.1:8080"),
        ("--admin-listen", "such as 127.0.0.1:9090"),
    ] {
        let problems = checked(&[flag, "nonsense"]).unwrap_err();
        let told = problems.iter().find(|problem| problem.starts_with(flag)).unwrap();
        assert!(told.ends_with(example) && told.contains("'nonsense' can't be read"), "{told}");
    }
}

#[test]
fn the_docs_name_every_word_that_a_switch_takes() {
    // Read when it runs: an image is built without the docs.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/troubleshooting.md");
    let troubleshooting = std::fs::read_to_string(page).unwrap();
    let row = troubleshooting.lines().find(|line| line.starts_with("| `write true or false`")).unwrap();
    let page = configuration_page();
    let sentence = page.split("Switches take").nth(1).unwrap().split("in a variable").next().unwrap();
    for (word, is_on) in Switch::WORDS.iter().flat_map(|[on, off]| [(on, true), (off, false)]) {
        assert_eq!(word.to_uppercase().parse(), Ok(Switch(is_on)));
        for text in [row, sentence] {
            assert!(text.contains(&format!("`{word}`")), "{word} is missing in {text}");
        }
    }
    assert!("maybe".parse::<Switch>().is_err() && "".parse::<Switch>().is_err());
}

#[test]
fn a_flag_given_twice_is_told_with_the_others() {
    let problems = checked(&["--max-tools", "1", "--max-tools=2", "--listen", "nowhere"]).unwrap_err();
    let flags: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    assert_eq!(flags, ["--listen", "--max-tools", "--upstream"]);
}

#[test]
fn t_s11_unknown_variables_with_our_prefix_and_equal_ports_are_refused() {
    let unknown =
        unknown_variables(["TOOLSEARCH_UPSTRAEM", "TOOLSEARCH_UPSTREAM", "PATH"].map(str::to_owned));
    assert!(unknown.len() == 1 && unknown[0].starts_with("TOOLSEARCH_UPSTRAEM"), "{unknown:?}");
    let equal = ["--upstream", "http://localhost", "--listen", "127.0.0.1:9090"];
    assert_eq!(checked(&equal).unwrap_err(), ["--admin-listen: must differ from --listen"]);
}

#[test]
fn every_setting_of_serve_has_a_variable_with_the_name_of_its_flag() {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").unwrap();
    for arg in serve.get_arguments().filter(|arg| arg.get_id() != "help") {
        let flag = arg.get_long().unwrap();
        let expected = format!("{ENV_PREFIX}{}", flag.replace('-', "_").to_uppercase());
        assert_eq!(arg.get_env().and_then(|env| env.to_str()), Some(expected.as_str()), "{flag}");
        assert!(arg.get_help().is_some(), "{flag}");
    }
}

#[test]
fn t_r7_the_proxy_is_not_its_own_upstream() {
    for (upstream, listen, is_itself) in [
        ("http://127.0.0.1:8080/mcp", "127.0.0.1:8080", true),
        ("http://localhost:8080/mcp", "127.0.0.1:8080", true),
        ("http://localhost:8080/mcp", "[::]:8080", true),
        ("https://10.0.0.7:8080/mcp", "10.0.0.7:8080", true),
        ("https://10.0.0.8:8080/mcp", "10.0.0.7:8080", false),
        ("http://localhost:8081/mcp", "127.0.0.1:8080", false),
        ("https://gateway.example:8080/mcp", "0.0.0.0:8080", false),
        ("http://localhost:8080/mcp", "10.0.0.7:8080", false),
    ] {
        let checked = checked(&["--upstream", upstream, "--listen", listen]);
        assert_eq!(checked.is_err(), is_itself, "{upstream} {listen}");
        if let Err(problems) = checked {
            assert_eq!(problems.len(), 1);
            assert!(problems[0].contains("own --listen address"), "{problems:?}");
        }
    }
}

#[test]
fn what_kubernetes_sets_for_a_service_is_no_typing_error() {
    let links = [
        "TOOLSEARCH_PROXY_SERVICE_HOST",
        "TOOLSEARCH_PROXY_SERVICE_PORT",
        "TOOLSEARCH_PROXY_SERVICE_PORT_HTTP",
        "TOOLSEARCH_PROXY_PORT",
        "TOOLSEARCH_PROXY_PORT_8080_TCP",
        "TOOLSEARCH_PROXY_PORT_8080_TCP_ADDR",
    ];
    assert_eq!(unknown_variables(links.map(str::to_owned)), Vec::<String>::new());
    assert_eq!(
        unknown_variables(["TOOLSEARCH_PORT", "TOOLSEARCH_LISTEN_PORT_80"].map(str::to_owned)).len(),
        2
    );
}

#[test]
fn a_misspelt_variable_is_told_with_the_one_that_was_meant() {
    let told = unknown_variables(["TOOLSEARCH_CATALOGTTL".to_owned(), "TOOLSEARCH_COLOUR".to_owned()]);
    assert!(told[0].ends_with("did you mean TOOLSEARCH_CATALOG_TTL?"), "{told:?}");
    assert!(told[1].ends_with("see toolsearch-proxy serve --help"), "{told:?}");
}
