//! Any command line and any variables end in settings or in words that say what to mend.

use std::ffi::OsString;
use toolsearch_proxy::config::{Cli, Command};

/// Each line is an argument; those that start as our variables do are variables.
pub fn flags(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What names files reads them, and a fuzzer finds odd ones.
    if ["-ca", "dir", "manifest", "_CA", "_DIR", "_MANIFEST"].iter().any(|word| text.contains(word)) {
        return;
    }
    let (variables, arguments): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("TOOLSEARCH_"));
    let usual = ["toolsearch-proxy", "serve"].into_iter();
    let Ok(cli) = Cli::read(usual.chain(arguments).map(OsString::from)) else { return };
    let Command::Serve(serve) = cli.command else { return };
    match serve.check(variables.into_iter().map(str::to_owned)) {
        Ok(config) => assert!(config.upstream.has_host() && config.max_callers.get() > 0),
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}
