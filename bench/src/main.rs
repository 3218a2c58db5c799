//! Speed and memory of the proxy, as anyone can measure them: `cargo run --release -p bench`.
//!
//! [`ranking`] calls the library; [`serving`] and [`memory`] start the release binary, with an upstream ([`upstream`])
//! and peers ([`bare`], nginx) beside it; [`replicas`] is a simulation. Figures and method are in `docs/benchmarks.md`.

mod bare;
mod catalogue;
mod load;
mod memory;
mod process;
mod ranking;
mod replicas;
mod report;
mod serving;
mod stats;
mod upstream;

use report::Report;
use std::path::Path;
use std::process::ExitCode;

/// As in the program that is measured; peers have the same.
#[global_allocator]
static ALLOCATOR: toolsearch_proxy::host::Allocator = toolsearch_proxy::host::ALLOCATOR;

const USAGE: &str = "usage: bench [--quick] [PART…]
  PART     rank, list, start, search, call, memory; all of them without a name. Or: replicas
  --quick  fewer runs and smaller loads, to see that it works: no verdict";

type Part = (&'static str, fn(&mut Report) -> Result<(), String>);

const PARTS: [Part; 6] = [
    ("rank", ranking::queries),
    ("list", ranking::listings),
    ("start", serving::start),
    ("search", serving::searches),
    ("call", serving::calls),
    ("memory", memory::callers),
];

/// Programs that a part can't do without.
const NEEDS: [(&str, &str); 3] = [("search", "wrk"), ("call", "wrk"), ("call", "nginx")];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--role", role, argument] => act(role, argument),
        ["replicas"] => {
            replicas::print();
            Ok(())
        }
        _ => measure(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// This program as one of its own peers.
fn act(role: &str, argument: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let result = match role {
        "upstream" => {
            runtime.block_on(upstream::run(argument.parse().map_err(|_| "how many tools?".to_owned())?))
        }
        _ => runtime.block_on(bare::run(Path::new(argument))),
    };
    runtime.shutdown_background();
    result
}

fn measure(arguments: &[String]) -> Result<(), String> {
    let (options, named): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with('-'));
    let is_quick = options == ["--quick"];
    let is_known = |name: &&String| PARTS.iter().any(|(part, _)| part == name);
    if !(is_quick || options.is_empty()) || !named.iter().all(is_known) {
        return Err(USAGE.to_owned());
    }
    let mut report = Report::new(is_quick);
    for (name, part) in PARTS.iter().filter(|(name, _)| named.is_empty() || named.iter().any(|n| n == name)) {
        let missing = NEEDS.iter().find(|(part, program)| part == name && !serving::is_there(program));
        match missing {
            // Named parts must run; the others are left out where they can't.
            Some((_, program)) if named.is_empty() => {
                eprintln!("{name} is left out: {program} is not installed")
            }
            _ => part(&mut report).map_err(|problem| format!("{name}: {problem}"))?,
        }
    }
    match report.missed() {
        [] => Ok(()),
        missed => Err(format!("missed:\n{}", missed.join("\n"))),
    }
}
