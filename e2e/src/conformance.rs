//! The official conformance suite: as a client of the proxy, and as its upstream.
//!
//! As a client it runs everything that a revision requires, first with the proxy as it stands, which shows five tools and
//! nothing else, then through the [`Shim`], which makes the suite's own tools reachable. As an upstream it is met by
//! [`crate::steered`], a client that makes the proxy do what a scenario needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checks::{Checked, ensure};
use crate::plain::{LEGACY, MODERN};
use crate::process::Reaper;
use crate::report::Report;
use crate::shim::Shim;
use crate::suite::{self, Findings, Suite};
use crate::upstream::{Program, Stack};

/// Everything a revision requires of servers, with the proxy in front of the suite's tools.
struct ServerRun {
    name: &'static str,
    revision: &'static str,
    /// How the upstream speaks.
    era: &'static str,
    is_through_shim: bool,
    /// In `conformance/`; two runs may share one.
    baseline: &'static str,
    /// Scenarios that the revision runs without counting them, and that must pass here.
    also: &'static [&'static str],
}

const SERVER_RUNS: [ServerRun; 6] = [
    ServerRun {
        name: "conformance server 2026-07-28 as it stands",
        revision: MODERN,
        era: "dual",
        is_through_shim: false,
        baseline: "as-it-stands-2026-07-28.yml",
        also: &["http-header-validation"],
    },
    ServerRun {
        name: "conformance server 2025-11-25 as it stands",
        revision: LEGACY,
        era: "dual",
        is_through_shim: false,
        baseline: "as-it-stands-2025-11-25.yml",
        also: &["server-session-lifecycle"],
    },
    ServerRun {
        name: "conformance server 2026-07-28 shim, modern upstream",
        revision: MODERN,
        era: "dual",
        is_through_shim: true,
        baseline: "shim-2026-07-28.yml",
        also: &["http-header-validation"],
    },
    ServerRun {
        name: "conformance server 2025-11-25 shim, modern upstream",
        revision: LEGACY,
        era: "dual",
        is_through_shim: true,
        baseline: "shim-2025-11-25.yml",
        also: &["server-session-lifecycle"],
    },
    ServerRun {
        name: "conformance server 2025-11-25 shim, upstream with sessions",
        revision: LEGACY,
        era: "sessions",
        is_through_shim: true,
        baseline: "shim-2025-11-25.yml",
        also: &["server-session-lifecycle"],
    },
    ServerRun {
        name: "conformance server 2025-11-25 shim, upstream without sessions",
        revision: LEGACY,
        era: "stateless",
        is_through_shim: true,
        baseline: "shim-2025-11-25.yml",
        also: &["server-session-lifecycle"],
    },
];

/// A modern client before a legacy upstream: only what such an upstream can do, so each scenario by itself.
const ACROSS: &str = "conformance server 2026-07-28 shim, upstream with sessions";
const ACROSS_ERA: &str = "sessions";
const ACROSS_SCENARIOS: [&str; 8] = [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "http-header-validation",
];

const CLIENT_RUNS: [(&str, &str); 14] = [
    ("request-metadata", MODERN),
    ("http-standard-headers", MODERN),
    ("http-custom-headers", MODERN),
    ("http-invalid-tool-headers", MODERN),
    ("json-schema-ref-no-deref", MODERN),
    ("json-schema-2020-12-preservation", MODERN),
    ("sep-2322-client-request-state", MODERN),
    ("tools_call", MODERN),
    ("initialize", LEGACY),
    ("json-schema-2020-12-preservation", LEGACY),
    ("sse-retry", LEGACY),
    ("tools_call", LEGACY),
    ("initialize", "2025-06-18"),
    ("tools_call", "2025-06-18"),
];

/// Logging in, at each revision that has the scenario.
const LOGIN_RUNS: [(&str, &[&str]); 25] = [
    ("auth/metadata-default", &[MODERN, LEGACY]),
    ("auth/metadata-var1", &[MODERN, LEGACY]),
    ("auth/metadata-var2", &[MODERN, LEGACY]),
    ("auth/metadata-var3", &[MODERN, LEGACY]),
    ("auth/basic-cimd", &[MODERN, LEGACY]),
    ("auth/scope-from-www-authenticate", &[MODERN, LEGACY]),
    ("auth/scope-from-scopes-supported", &[MODERN, LEGACY]),
    ("auth/scope-omitted-when-undefined", &[MODERN, LEGACY]),
    ("auth/scope-step-up", &[MODERN, LEGACY]),
    ("auth/scope-retry-limit", &[MODERN, LEGACY]),
    ("auth/token-endpoint-auth-basic", &[MODERN, LEGACY]),
    ("auth/token-endpoint-auth-post", &[MODERN, LEGACY]),
    ("auth/token-endpoint-auth-none", &[MODERN, LEGACY]),
    ("auth/pre-registration", &[MODERN, LEGACY]),
    ("auth/offline-access-scope", &[MODERN]),
    ("auth/offline-access-not-supported", &[MODERN]),
    ("auth/authorization-server-migration", &[MODERN]),
    ("auth/iss-supported", &[MODERN]),
    ("auth/iss-not-advertised", &[MODERN]),
    ("auth/iss-supported-missing", &[MODERN]),
    ("auth/iss-wrong-issuer", &[MODERN]),
    ("auth/iss-unexpected", &[MODERN]),
    ("auth/iss-normalized", &[MODERN]),
    ("auth/metadata-issuer-mismatch", &[MODERN]),
    ("auth/resource-mismatch", &[MODERN]),
];
/// What cannot pass where the suite plays the upstream.
const CLIENT_BASELINE: &str = "client.yml";

pub struct Conformance<'a> {
    pub home: &'a Path,
    pub proxy: &'a Path,
    /// This program.
    pub own: &'a Path,
    pub filter: &'a str,
}

impl Conformance<'_> {
    pub fn run(&self, reaper: &Arc<Reaper>, report: &mut Report) {
        let folder = Folder::new();
        let suite = Suite { reaper, home: self.home, results: &folder.0 };
        for era in ["dual", "sessions", "stateless"] {
            let runs: Vec<&ServerRun> =
                SERVER_RUNS.iter().filter(|run| run.era == era && run.name.contains(self.filter)).collect();
            let goes_across = era == ACROSS_ERA && ACROSS.contains(self.filter);
            if runs.is_empty() && !goes_across {
                continue;
            }
            let program = Program::Python { script: "conformance.py", era };
            let stack = match Stack::start(reaper, self.home, self.proxy, program) {
                Ok(stack) => stack,
                Err(error) => {
                    report.failed(&format!("conformance server, {era} upstream: starts"), &error);
                    continue;
                }
            };
            for run in runs {
                self.server_run(&suite, run, &stack, report);
            }
            if goes_across {
                across(&suite, &stack, report);
            }
        }
        let logins = LOGIN_RUNS
            .iter()
            .flat_map(|&(scenario, revisions)| revisions.iter().map(move |&revision| (scenario, revision)));
        for (scenario, revision) in CLIENT_RUNS.into_iter().chain(logins) {
            let name = format!("conformance client {revision} {scenario}");
            if name.contains(self.filter) {
                self.client_run(&suite, &name, scenario, revision, report);
            }
        }
    }

    fn server_run(&self, suite: &Suite, run: &ServerRun, stack: &Stack, report: &mut Report) {
        let url = match in_front(stack, run.is_through_shim) {
            Ok(url) => url,
            Err(error) => return report.failed(&format!("{}: starts", run.name), &error),
        };
        let baseline = self.home.join("conformance").join(run.baseline);
        let arguments = [
            "server",
            "--url",
            &url,
            "--requirements",
            run.revision,
            "--expected-failures",
            &baseline.to_string_lossy(),
        ];
        let findings = match suite.run(run.name, &arguments, &[]) {
            Ok(findings) => findings,
            Err(error) => return report.failed(&format!("{}: runs", run.name), &error),
        };
        for scenario in &findings.scenarios {
            if scenario.failures().next().is_none() && scenario.successes() > 0 {
                report.passed(&format!("{}: {}, {} checks", run.name, scenario.name, scenario.successes()));
            }
        }
        let verdicts = [
            (format!("nothing fails but what {} expects", run.baseline), only_expected(&findings)),
            (format!("every entry of {} still fails", run.baseline), none_stale(&findings, &baseline)),
            ("passes what its revision does not count".to_owned(), also_passes(&findings, run.also)),
        ];
        for (case, verdict) in verdicts {
            report.case(&format!("{}: {case}", run.name), verdict);
        }
    }

    fn client_run(&self, suite: &Suite, name: &str, scenario: &str, revision: &str, report: &mut Report) {
        let command = format!("\"{}\" steered", self.own.display());
        let arguments = ["client", "--command", &command, "--scenario", scenario, "--spec-version", revision];
        let environment =
            [("PROXY", self.proxy.to_string_lossy()), ("E2E_HOME", self.home.to_string_lossy())];
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_ref()));
        let outcome = suite.run(name, &arguments, &environment).and_then(|findings| {
            let successes: usize = findings.scenarios.iter().map(suite::Scenario::successes).sum();
            self.fails_as_expected(scenario, &findings)?;
            ensure(successes > 0, || format!("no check ran\n{}", findings.printed))?;
            Ok(successes)
        });
        match outcome {
            Ok(successes) => report.passed(&format!("{name}: {successes} checks")),
            Err(error) => report.failed(name, &error),
        }
    }
}

impl Conformance<'_> {
    /// In this direction the suite takes no baseline with a single scenario, so it is compared here.
    fn fails_as_expected(&self, scenario: &str, findings: &Findings) -> Checked {
        let prefix = format!("{scenario}:");
        let entries = suite::baseline(&self.home.join("conformance").join(CLIENT_BASELINE))?;
        let mut expected: Vec<String> = entries.into_iter().map(|(entry, _)| entry).collect();
        expected.retain(|entry| entry.starts_with(&prefix));
        if expected.is_empty() {
            return only_expected(findings);
        }
        let failures = findings.scenarios.iter().flat_map(suite::Scenario::failures);
        let mut failed: Vec<String> = failures.map(|check| format!("{prefix}{}", check.id)).collect();
        failed.sort();
        expected.sort();
        ensure(failed == expected, || format!("expected to fail: {expected:?}\n{}", findings.complaint()))
    }
}

fn in_front(stack: &Stack, is_through_shim: bool) -> Result<String, String> {
    if is_through_shim { Ok(Shim::start(stack.proxy.listen)?.url()) } else { Ok(stack.proxy.url()) }
}

fn across(suite: &Suite, stack: &Stack, report: &mut Report) {
    for scenario in ACROSS_SCENARIOS {
        let name = format!("{ACROSS}: {scenario}");
        let outcome = in_front(stack, true).and_then(|url| {
            let arguments = ["server", "--url", &url, "--scenario", scenario, "--spec-version", MODERN];
            let findings = suite.run(&name, &arguments, &[])?;
            only_expected(&findings)
        });
        report.case(&name, outcome);
    }
}

fn only_expected(findings: &Findings) -> Checked {
    ensure(findings.is_success, || findings.complaint())
}

fn none_stale(findings: &Findings, baseline: &Path) -> Checked {
    let entries = suite::baseline(baseline)?;
    let stale: Vec<&String> =
        entries.iter().map(|(entry, _)| entry).filter(|entry| !findings.expected.contains(entry)).collect();
    ensure(stale.is_empty(), || format!("these did not fail: {stale:?}"))
}

fn also_passes(findings: &Findings, scenarios: &[&str]) -> Checked {
    for name in scenarios {
        let scenario = findings.scenario(name).ok_or_else(|| format!("{name} did not run"))?;
        ensure(scenario.failures().next().is_none(), || {
            let failures = scenario.failures().map(|check| format!("{name}:{} {}", check.id, check.message));
            failures.collect::<Vec<_>>().join("\n")
        })?;
    }
    Ok(())
}

/// A folder for what the suite writes, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("e2e-conformance-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing is there when nothing ran.
        let _ = fs::remove_dir_all(&self.0);
    }
}
