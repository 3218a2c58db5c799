//! Black-box proof of the proxy: other people's MCP servers behind it, other people's MCP clients in front of it.
//!
//! The harness starts each [`upstream`] with the proxy before it and works through [`matrix::sessions`]: an SDK client
//! in one protocol era, steered over pipes by [`driver`], runs every case of [`cases`]; [`wire`] then looks at the
//! bytes and the HTTP level without an SDK. What a result must look like is decided in [`checks`], once for all clients.
//!
//! It shares no types with the proxy on purpose: it can only see what a client sees. `e2e/run` installs what it needs.

mod cases;
mod checks;
mod driver;
mod fixtures;
mod http;
mod matrix;
mod process;
mod report;
mod upstream;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use matrix::Matrix;
use process::Reaper;
use report::Report;

const USAGE: &str = "usage: e2e HOME PROXY [FILTER]
  HOME    the folder of this crate, with .third-party installed
  PROXY   the toolsearch-proxy binary
  FILTER  run only the sessions whose name contains this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (home, proxy, filter) = match arguments.as_slice() {
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
        Ok(reaper) => matrix.run(&reaper, &mut report),
        Err(error) => report.failed("start the harness", &error),
    }
    if report.is_empty() {
        report.failed("choose sessions", &format!("no session's name contains {filter:?}"));
    }
    println!("{}", report.closing_line());
    if report.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
