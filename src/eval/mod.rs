//! `eval`: how well the ranker finds the tools of a catalogue, on questions whose answers are known.
//!
//! [`run`] is the command: it reads a catalogue ([`Catalogue`]) and questions ([`Question`]), ranks every question and
//! writes a [`Report`]. Measures are those of information retrieval with binary relevance, gains where a question has
//! grades; a question that nothing answers is right when the answer is empty. Not here: ranking.

mod args;
mod baseline;
mod catalogue;
mod explain;
mod live;
mod measures;
mod progress;
mod questions;
mod report;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use args::{EmbedderChoice, EvalArgs};
pub use catalogue::Catalogue;
pub use questions::Question;
pub use report::{Group, Report};

use crate::embedder::{ModelError, StaticModel};
use crate::outbound::is_open_to_others;
use crate::search::{Embed, Hit, Ranker, RankerOptions};

/// Why an evaluation cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the report")]
    Report(#[source] io::Error),
    #[error("{path} is not a catalogue: {reason}")]
    Catalogue { path: PathBuf, reason: String },
    #[error("{path}, line {line}, is not a question: {reason}")]
    Question { path: PathBuf, line: usize, reason: String },
    #[error("{path} can't be used as a baseline: {reason}")]
    Baseline { path: PathBuf, reason: String },
    #[error("the ranking got worse than the baseline; --update accepts that:\n{}", .0.join("\n"))]
    Fallen(Vec<String>),
    #[error("name a catalogue: --catalog FILE, or --upstream URL")]
    NoCatalogue,
    #[error(
        "--upstream is http:// and not on this machine, so the token would cross the network unencrypted; use https://, or \
         add --allow-plaintext-upstream where the network is trusted"
    )]
    Plaintext,
    #[error("{0} has no questions: write one a line")]
    NoQuestions(PathBuf),
    #[error("the upstream's tools can't be listed: {0}")]
    Upstream(String),
    #[error("no question has the id {0:?}")]
    UnknownId(String),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// The command. `token` is for `--upstream`. The report goes to `out`, progress to standard error when that is a
/// terminal.
///
/// # Errors
///
/// [`EvalError`] when a file cannot be read or written, or is not what it should be, or the upstream gives no listing.
pub async fn run(
    args: &EvalArgs,
    token: Option<&str>,
    out: &mut (dyn Write + Send),
) -> Result<(), EvalError> {
    let questions = Question::read_all(&args.queries)?;
    if questions.is_empty() {
        return Err(EvalError::NoQuestions(args.queries.clone()));
    }
    let ranker = Ranker::new(RankerOptions::default(), embedder(&args.embedder)?);
    let catalogue = match (&args.catalog, &args.upstream) {
        (Some(path), _) => Catalogue::read(path, &ranker)?,
        (None, Some(url)) if token.is_some() && is_open_to_others(url) && !args.allow_plaintext_upstream => {
            return Err(EvalError::Plaintext);
        }
        (None, Some(url)) => Catalogue::new(live::list(url, token).await?, &ranker),
        (None, None) => return Err(EvalError::NoCatalogue),
    };
    evaluate(args, &ranker, &catalogue, &questions, out)
}

/// The embedder that the command line chose.
///
/// # Errors
///
/// [`ModelError`] when the model cannot be used.
pub fn embedder(choice: &EmbedderChoice) -> Result<Option<Arc<dyn Embed>>, ModelError> {
    Ok(match choice {
        EmbedderChoice::None => None,
        EmbedderChoice::Builtin => Some(StaticModel::builtin()?),
        EmbedderChoice::Folder(folder) => Some(StaticModel::open(folder)?),
    })
}

/// Ranks the questions over a catalogue from wherever, and writes what was asked for.
///
/// # Errors
///
/// [`EvalError`] when something cannot be written, or no question has the id to explain.
pub fn evaluate(
    args: &EvalArgs,
    ranker: &Ranker,
    catalogue: &Catalogue,
    questions: &[Question],
    out: &mut dyn Write,
) -> Result<(), EvalError> {
    let index = ranker.index(catalogue.documents());
    if let Some(id) = &args.explain {
        let question = questions.iter().find(|question| question.id == *id);
        let question = question.ok_or_else(|| EvalError::UnknownId(id.clone()))?;
        return explain::write(ranker, &index, catalogue, question, args.limit, out)
            .map_err(EvalError::Report);
    }
    let mut progress = progress::Progress::new(questions.len());
    let answers: Vec<Vec<Hit>> = questions
        .iter()
        .map(|question| {
            progress.step();
            ranker.rank(&question.query, &index, args.limit)
        })
        .collect();
    progress.finish();
    if let Some(path) = &args.run_out {
        write_run(path, catalogue, questions, &answers)?;
    }
    let report = Report::new(catalogue, questions, &answers, args.resamples);
    report.write(out).map_err(EvalError::Report)?;
    match &args.baseline {
        Some(path) => baseline::hold(&report, &args.embedder.to_string(), path, args.update),
        None => Ok(()),
    }
}

/// One line a question: `{"id", "ranked": [names], "scores": [..]}`.
fn write_run(
    path: &Path,
    catalogue: &Catalogue,
    questions: &[Question],
    answers: &[Vec<Hit>],
) -> Result<(), EvalError> {
    let failed = |source| EvalError::Write { path: path.to_owned(), source };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    for (question, hits) in questions.iter().zip(answers) {
        let ranked: Vec<&str> = hits.iter().map(|hit| catalogue.name(hit.index)).collect();
        let scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
        let line = serde_json::json!({ "id": question.id, "ranked": ranked, "scores": scores });
        writeln!(file, "{line}").map_err(failed)?;
    }
    file.flush().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: EvalArgs,
    }

    async fn fault(questions: &str, upstream: &str, token: Option<&str>) -> EvalError {
        let name =
            format!("toolsearch-eval-{}-{}.jsonl", std::process::id(), questions.len() + upstream.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, questions).unwrap();
        let queries = path.to_str().unwrap();
        let cli = ["eval", "--embedder", "none", "--upstream", upstream, "--queries", queries];
        let args = Cli::try_parse_from(cli).unwrap().args;
        let fault = run(&args, token, &mut Vec::new()).await.unwrap_err();
        std::fs::remove_file(&path).unwrap();
        fault
    }

    #[tokio::test]
    async fn a_token_does_not_cross_a_network_unencrypted() {
        const QUESTION: &str = r#"{"id": "1", "query": "a", "lang": "en", "relevant": []}"#;
        let far = fault(QUESTION, "http://gateway.example/mcp", Some("token")).await;
        assert!(matches!(far, EvalError::Plaintext), "{far}");
        // Nothing listens there, and it was tried.
        let here = fault(QUESTION, "http://127.0.0.1:1/mcp", Some("token")).await;
        assert!(matches!(here, EvalError::Upstream(_)), "{here}");
    }

    #[tokio::test]
    async fn a_file_without_questions_measures_nothing() {
        let empty = fault("", "http://127.0.0.1:1/mcp", None).await;
        assert!(matches!(empty, EvalError::NoQuestions(_)), "{empty}");
    }
}
