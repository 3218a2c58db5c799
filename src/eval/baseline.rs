//! Holds a report against a committed one, so that a change of ranking is seen before it lands.

use super::{EvalError, Report};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How much a measure over many questions may fall before it counts as a fall. The ranker gives the same answers every
/// time, so this is no noise of measuring: it lets a change trade single questions against one another.
const TOLERANCE: f64 = 0.01;

/// Measures by name ("lt recall@5"), for each embedder.
type Baseline = BTreeMap<String, BTreeMap<String, f64>>;

/// Compares the report of one embedder with the file, or writes it there.
///
/// # Errors
/// When a measure has fallen by more than it may: all that have, with both figures. When the file can't be used.
pub(super) fn hold(report: &Report, embedder: &str, path: &Path, update: bool) -> Result<(), EvalError> {
    let found = measures(report);
    let wrong = |reason: String| EvalError::Baseline { path: path.to_owned(), reason };
    let mut baseline: Baseline = match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?,
        Err(_) if update => Baseline::new(),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if update {
        baseline
            .insert(embedder.to_owned(), found.into_iter().map(|(name, (value, _))| (name, value)).collect());
        let text = serde_json::to_string_pretty(&baseline).expect("names and numbers serialise");
        return fs::write(path, text + "\n").map_err(|error| wrong(error.to_string()));
    }
    let committed =
        baseline.get(embedder).ok_or_else(|| wrong(format!("it has no figures for {embedder}")))?;
    let fallen: Vec<String> = committed
        .iter()
        .filter_map(|(name, before)| {
            let (now, tolerance) = found.get(name).copied().unwrap_or((0.0, 0.0));
            (now + tolerance < *before).then(|| format!("{name}: {before:.3} before, {now:.3} now"))
        })
        .collect();
    if fallen.is_empty() { Ok(()) } else { Err(EvalError::Fallen(fallen)) }
}

/// Each measure with how much it may fall: one question's worth in a small group.
fn measures(report: &Report) -> BTreeMap<String, (f64, f64)> {
    let mut found = BTreeMap::new();
    let all = std::iter::once(("all", report.all()));
    for (language, group) in all.chain(report.languages().iter().map(|(name, group)| (name.as_str(), group)))
    {
        let mean = group.mean();
        let mut add = |name: &str, value: f64, questions: usize| {
            let tolerance = TOLERANCE.max(1.0 / questions.max(1) as f64) + 1e-9;
            // Four decimals are what a reader compares.
            found.insert(format!("{language} {name}"), ((value * 1e4).round() / 1e4, tolerance));
        };
        if group.answerable() > 0 {
            add("recall@1", mean.recall[0], group.answerable());
            add("recall@5", mean.recall[2], group.answerable());
            add("mrr", mean.reciprocal_rank, group.answerable());
            add("ndcg@10", mean.ndcg, group.answerable());
            add(
                "answered",
                1.0 - group.refused_wrongly() as f64 / group.answerable() as f64,
                group.answerable(),
            );
        }
        if group.unanswerable() > 0 {
            add(
                "refused",
                group.refused_rightly() as f64 / group.unanswerable() as f64,
                group.unanswerable(),
            );
        }
    }
    found
}
