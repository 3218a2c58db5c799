//! The promises, each with a check of its own that says what it saw.

mod drain;
mod fronts;
mod gates;
mod isolation;
mod kill;
mod load;
mod matrix;
mod memory;
mod overload;
mod readers;
mod revocation;
mod secrets;
mod slow;
mod soak;
mod writes;

use crate::canary::{Canary, leaks};
use crate::process::Proxy;
use crate::report::Report;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

/// What a check is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary under test.
    pub proxy: PathBuf,
    pub seed: u64,
    /// The long form.
    pub is_long: bool,
    /// How many requests, where a check counts them and its own number is not wanted.
    pub requests: Option<u64>,
    /// Only the parts whose name contains this.
    pub only: String,
}

impl Options {
    /// A number of requests: as given, or by the form.
    pub fn count(&self, short: u64, long: u64) -> u64 {
        self.requests.unwrap_or(if self.is_long { long } else { short })
    }
}

type Run = for<'a> fn(&'a Options, &'a Report) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// A check by its name.
pub struct Check {
    pub name: &'static str,
    pub says: &'static str,
    pub run: Run,
}

/// All checks in the order of their use.
pub const CHECKS: &[Check] = &[
    Check {
        name: "isolation",
        says: "no answer reaches the wrong caller, whatever the upstream does",
        run: |options, report| Box::pin(isolation::run(options, report)),
    },
    Check {
        name: "writes",
        says: "a write is sent at most once, and what is told of it is true",
        run: |options, report| Box::pin(writes::run(options, report)),
    },
    Check {
        name: "matrix",
        says: "each fault, tool, cache state and kind of upstream has an allowed end in time, and leaves nothing behind",
        run: |options, report| Box::pin(matrix::run(options, report)),
    },
    Check {
        name: "secrets",
        says: "nothing private reaches the operator or another caller",
        run: |options, report| Box::pin(secrets::run(options, report)),
    },
    Check {
        name: "gates",
        says: "batches hold no writes, searches no foreign tools, metrics no new series, however many are asked for",
        run: |options, report| Box::pin(gates::run(options, report)),
    },
    Check {
        name: "revocation",
        says: "a revoked token is refused on the next call, and its tools are forgotten in time",
        run: |options, report| Box::pin(revocation::run(options, report)),
    },
    Check {
        name: "memory",
        says: "memory stays within its budget whatever upstreams list",
        run: |options, report| Box::pin(memory::run(options, report)),
    },
    Check {
        name: "overload",
        says: "ten times what it can do: as much work as ever, and quick refusals",
        run: |options, report| Box::pin(overload::run(options, report)),
    },
    Check {
        name: "slow",
        says: "clients that dribble or never read harm nobody else",
        run: |options, report| Box::pin(slow::run(options, report)),
    },
    Check {
        name: "drain",
        says: "restarts behind a balancer fail no request",
        run: |options, report| Box::pin(drain::run(options, report)),
    },
    Check {
        name: "fronts",
        says: "nothing is smuggled past nginx or haproxy",
        run: |options, report| Box::pin(fronts::run(options, report)),
    },
    Check {
        name: "readers",
        says: "what is let through is read alike by CPython, Node and who keeps the first of two keys",
        run: |options, report| Box::pin(readers::run(options, report)),
    },
    Check {
        name: "kill",
        says: "killed at any moment it is ready again, and leaves nothing behind",
        run: |options, report| Box::pin(kill::run(options, report)),
    },
    Check {
        name: "soak",
        says: "steady traffic with faults, and nothing grows",
        run: |options, report| Box::pin(soak::run(options, report)),
    },
];

/// What callers and upstreams of a run call secret. Each stands in everything of its kind.
#[derive(Clone, Debug)]
pub struct Secrets {
    pub token: String,
    pub query: String,
    pub argument: String,
    /// In the upstream's instructions, definitions and results.
    pub upstream: String,
}

impl Secrets {
    /// Secrets that follow from the seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = crate::rng::Rng::new(seed, 0x5ec2e7);
        let mut secret = |kind: &str, odd: &str| format!("{kind}{}{odd}{}", rng.hex(), &rng.hex()[..4]);
        Self {
            token: secret("tk", "~+/"),
            query: secret("qu", "žé"),
            argument: secret("ar", "=&%"),
            upstream: secret("up", "<>'"),
        }
    }

    fn canaries(&self) -> Vec<Canary> {
        vec![
            Canary::new("token", &self.token),
            Canary::new("query", &self.query),
            Canary::new("argument", &self.argument),
            Canary::new("upstream's text", &self.upstream),
        ]
    }
}

/// Looks for secrets, marks and panics in all that a proxy told its operator.
///
/// # Errors
/// When its log can't be read.
pub async fn nothing_private(proxy: &Proxy, secrets: &Secrets, report: &Report) -> io::Result<()> {
    let log = String::from_utf8_lossy(&proxy.log_bytes()?).into_owned();
    let metrics = match proxy.operator("/metrics").await {
        Ok(page) => page.text().to_owned(),
        Err(_) => String::new(),
    };
    let canaries = secrets.canaries();
    for (place, text) in [("the log", &log), ("the metrics", &metrics)] {
        let mut found = leaks(&canaries, text);
        found
            .extend(crate::mark::found(text, crate::mark::MARK).take(1).map(|mark| format!("a mark {mark}")));
        found.extend(
            crate::mark::found(text, crate::mark::NONCE).take(1).map(|nonce| format!("a nonce {nonce}")),
        );
        report.must(
            &format!("nothing private in {place}"),
            found.is_empty(),
            format!("{} bytes {}", text.len(), found.join("; ")),
        );
    }
    let panics = log.lines().filter(|line| line.contains("panic at")).collect::<Vec<_>>();
    report.must("no panics", panics.is_empty(), format!("{} {}", panics.len(), panics.join("; ")));
    Ok(())
}
