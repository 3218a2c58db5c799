//! The official conformance suite as a program: how it is started, and what it found.
//!
//! It judges by itself against a baseline of expected failures and tells by its exit code. It overlooks entries that
//! name a check which never ran, so those are found here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Reaper, Running};

const ENDS_WITHIN: Duration = Duration::from_secs(180);
/// How many lines its last words are.
const LAST_LINES: usize = 12;

pub struct Suite<'a> {
    pub reaper: &'a Arc<Reaper>,
    pub home: &'a Path,
    /// Where it writes what it found, a folder for each run.
    pub results: &'a Path,
}

/// What one run found.
pub struct Findings {
    pub scenarios: Vec<Scenario>,
    /// Baseline entries that failed as expected.
    pub expected: Vec<String>,
    /// What failed and is in no baseline: a scenario, or one check of it.
    pub unexpected: Vec<String>,
    pub is_success: bool,
    pub printed: String,
}

pub struct Scenario {
    pub name: String,
    pub checks: Vec<Check>,
}

pub struct Check {
    pub id: String,
    pub status: String,
    pub message: String,
}

impl Suite<'_> {
    /// Runs `arguments` and reads what it found. `name` is no other run's.
    ///
    /// # Errors
    /// When it cannot be started, does not end, or leaves nothing to read.
    pub fn run(
        &self,
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Findings, String> {
        let program =
            self.home.join(".third-party/node_modules/@modelcontextprotocol/conformance/dist/index.js");
        let results = self.results.join(name.replace([' ', '/'], "-"));
        let mut command = Command::new("node");
        command.arg(program).args(arguments).arg("--output-dir").arg(&results);
        command.env("NO_COLOR", "1").envs(environment.iter().copied());
        let mut running = Running::start(self.reaper, "the conformance suite", &mut command)?;
        let status = running.wait_for_end(ENDS_WITHIN)?;
        let printed = without_colours(&running.log());
        let scenarios =
            read_scenarios(&results).map_err(|error| format!("{error}; it printed:\n{printed}"))?;
        Ok(Findings {
            scenarios,
            expected: listed(&printed, "Expected failures"),
            unexpected: listed(&printed, "Unexpected failures"),
            is_success: status.success(),
            printed,
        })
    }
}

impl Findings {
    pub fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }

    /// Why the suite is not content: what it says of each check that failed and should not, or else its last words.
    pub fn complaint(&self) -> String {
        let mut lines = Vec::new();
        for scenario in &self.scenarios {
            for check in scenario.failures() {
                let entry = format!("{}:{}", scenario.name, check.id);
                let is_one_of_many = self.scenarios.len() > 1;
                if !is_one_of_many
                    || self.unexpected.contains(&entry)
                    || self.unexpected.contains(&scenario.name)
                {
                    lines.push(format!("{entry} {}: {}", check.status, check.message));
                }
            }
        }
        if lines.is_empty() {
            let printed: Vec<&str> = self.printed.lines().collect();
            let last = &printed[printed.len().saturating_sub(LAST_LINES)..];
            lines.extend(last.iter().map(|&line| line.to_owned()));
        }
        lines.join("\n")
    }
}

impl Scenario {
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| matches!(check.status.as_str(), "FAILURE" | "WARNING"))
    }

    pub fn successes(&self) -> usize {
        self.checks.iter().filter(|check| check.status == "SUCCESS").count()
    }
}

/// Each scenario's folder is `[server-]NAME-TIME` and holds `checks.json`.
fn read_scenarios(results: &Path) -> Result<Vec<Scenario>, String> {
    let told = |error: &dyn std::fmt::Display| format!("no results in {}: {error}", results.display());
    let mut scenarios = Vec::new();
    let mut pending: Vec<PathBuf> = vec![results.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| told(&error))? {
            let path = entry.map_err(|error| told(&error))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.ends_with("checks.json") {
                let checks = fs::read_to_string(&path).map_err(|error| told(&error))?;
                let checks: Value = serde_json::from_str(&checks).map_err(|error| told(&error))?;
                let relative = folder.strip_prefix(results).map_err(|error| told(&error))?;
                scenarios.push(Scenario {
                    name: scenario_name(&relative.to_string_lossy()).to_owned(),
                    checks: checks.as_array().into_iter().flatten().map(check).collect(),
                });
            }
        }
    }
    if scenarios.is_empty() {
        return Err(told(&"it is empty"));
    }
    scenarios.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(scenarios)
}

fn check(check: &Value) -> Check {
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    Check { id: text("id"), status: text("status"), message: text("errorMessage") }
}

/// `server-tools-list-2026-11-29T21-52-52-658Z` is `tools-list`.
fn scenario_name(folder: &str) -> &str {
    const TIME: &str = "-2026-11-29T21-52-52-658Z";
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    name.get(..name.len().saturating_sub(TIME.len())).unwrap_or(name)
}

/// The entries below a heading: `~ scenario:check` or another sign before the name, up to the next empty line.
fn listed(printed: &str, heading: &str) -> Vec<String> {
    let below = printed.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let entries = below.take_while(|line| !line.is_empty()).filter_map(|line| line.trim().split_once(' '));
    entries.map(|(_, entry)| entry.to_owned()).collect()
}

fn without_colours(printed: &str) -> String {
    let mut pieces = printed.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// The entries of a baseline file and the reason that stands behind each: `  - scenario:check  # reason`.
pub fn baseline(path: &Path) -> Result<Vec<(String, String)>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let entries = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    Ok(entries
        .map(|entry| entry.split_once('#').unwrap_or((entry, "")))
        .map(|(entry, reason)| (entry.trim().to_owned(), reason.trim().to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_is_named_by_its_folder() {
        assert_eq!(scenario_name("server-tools-list-2026-11-29T21-52-52-658Z"), "tools-list");
        assert_eq!(scenario_name("server-server-stateless-2026-11-29T21-52-52-658Z"), "server-stateless");
        assert_eq!(scenario_name("tools_call-2026-11-29T21-52-52-658Z"), "tools_call");
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_colours("\u{1b}[33mExpected\u{1b}[0m:\n  ~ a:b"), "Expected:\n  ~ a:b");
    }

    #[test]
    fn entries_are_read_below_their_heading() {
        let printed = "✗ x: 1 passed\n\nExpected failures (in baseline):\n  ~ a:b\n  ~ c:d\n\nUnexpected failures:\n  ✗ e\n";
        assert_eq!(listed(printed, "Expected"), ["a:b", "c:d"]);
        assert_eq!(listed(printed, "Unexpected"), ["e"]);
        assert_eq!(listed(printed, "Stale"), Vec::<String>::new());
    }

    #[test]
    fn every_baseline_entry_names_one_check_and_has_its_reason() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
        let mut files = 0;
        for file in fs::read_dir(folder).unwrap() {
            for (entry, reason) in baseline(&file.unwrap().path()).unwrap() {
                assert!(entry.contains(':') && reason.len() > 20, "{entry} # {reason}");
            }
            files += 1;
        }
        assert!(files > 0);
    }
}
