//! Speed and memory of the proxy, as anyone can measure them: `cargo run --release -p bench`.
//!
//! [`ranking`] calls the library; all else starts the release binary. Figures and method are in `docs/benchmarks.md`.

mod catalogue;
mod ranking;
mod report;
mod stats;

use report::Report;
use std::process::ExitCode;

const USAGE: &str = "usage: bench [--quick] [PART…]
  PART     rank, list; all of them without a name
  --quick  fewer runs and smaller loads, to see that it works: no verdict";

const PARTS: [&str; 2] = ["rank", "list"];

fn main() -> ExitCode {
    let (options, parts): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let is_quick = options == ["--quick"];
    if !(is_quick || options.is_empty()) || parts.iter().any(|part| !PARTS.contains(&part.as_str())) {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut report = Report::new(is_quick);
    for part in PARTS.into_iter().filter(|part| parts.is_empty() || parts.iter().any(|named| named == part)) {
        let measured = match part {
            "rank" => ranking::queries(&mut report),
            _ => ranking::listings(&mut report),
        };
        if let Err(problem) = measured {
            eprintln!("bench {part}: {problem}");
            return ExitCode::FAILURE;
        }
    }
    for missed in report.missed() {
        eprintln!("missed: {missed}");
    }
    if report.missed().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
