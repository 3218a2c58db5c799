//! Black-box proof of the proxy: other people's MCP servers behind it, other people's MCP clients in front of it.
//!
//! The harness starts each [`upstream`] with the proxy before it and works through [`matrix`]: an SDK client
//! in one protocol era, steered over pipes by [`driver`], runs every case of [`cases`]; [`wire`] then looks at the
//! bytes and the HTTP level without an SDK. What a result must look like is decided in [`checks`], once for all clients.
//! [`conformance`] then lets the official suite judge: as a client of the proxy, and as its upstream. [`login`] lets
//! clients log in through the proxy.
//!
//! It shares no types with the proxy on purpose: it can only see what a client sees. `e2e/run` installs what it needs.

mod aside;
mod authority;
mod cases;
mod challenged;
mod checks;
mod conformance;
mod driver;
mod fixtures;
mod http;
mod login;
mod matrix;
mod plain;
mod process;
mod proxy;
mod report;
mod shim;
mod steered;
mod steered_login;
mod suite;
mod upstream;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use conformance::Conformance;
use login::Login;
use matrix::Matrix;
use process::Reaper;
use report::Report;

const USAGE: &str = "usage: e2e HOME PROXY [FILTER]
  HOME    the folder of this crate, with .third-party installed
  PROXY   the toolsearch-proxy binary
  FILTER  run only what contains this text in its name";

fn main() -> ExitCode {
    // Asked now, since a build that runs meanwhile may replace the file, which then has no name any more.
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("e2e"));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (home, proxy, filter) = match arguments.as_slice() {
        [mode, url] if mode == "steered" => return steered_by_the_suite(url),
        [home, proxy] => (home, proxy, ""),
        [home, proxy, filter] => (home, proxy, filter.as_str()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let matrix = Matrix { home: PathBuf::from(home), proxy: PathBuf::from(proxy), filter: filter.to_owned() };
    let mut report = Report::default();
    match Reaper::start() {
        Ok(reaper) => {
            matrix.run(&reaper, &mut report);
            let conformance =
                Conformance { home: &matrix.home, proxy: &matrix.proxy, own: &own, filter: &matrix.filter };
            conformance.run(&reaper, &mut report);
            let login = Login { home: &matrix.home, proxy: &matrix.proxy, filter: &matrix.filter };
            login.run(&reaper, &mut report);
        }
        Err(error) => report.failed("start the harness", &error),
    }
    if report.is_empty() {
        report.failed("choose sessions", &format!("nothing has a name that contains {filter:?}"));
    }
    println!("{}", report.closing_line());
    if report.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The conformance suite starts this program as the client under test.
fn steered_by_the_suite(upstream_url: &str) -> ExitCode {
    match steered::run(upstream_url) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
