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
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the report: {0}")]
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
        return written(explain::write(ranker, &index, catalogue, question, args.limit, out));
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
    written(report.write(out))?;
    match &args.baseline {
        Some(path) => baseline::hold(&report, &args.embedder.to_string(), path, args.update),
        None => Ok(()),
    }
}

/// Whoever reads the report, such as `head`, may have seen enough: what else is to be done is done all the same.
fn written(result: io::Result<()>) -> Result<(), EvalError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(EvalError::Report(error)),
        Ok(()) | Err(_) => Ok(()),
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

    fn refused(args: &[&str]) -> String {
        let args = ["eval"].iter().chain(args);
        Cli::try_parse_from(args).map(|cli| cli.args).unwrap_err().to_string()
    }

    #[test]
    fn what_an_evaluation_needs_is_named() {
        let told = refused(&["--queries", "q"]);
        assert!(told.contains("--catalog <FILE>") && told.contains("--upstream <URL>"), "{told}");
        let told = refused(&["--queries", "q", "--catalog", "c", "--upstream", "http://localhost"]);
        assert!(told.contains("cannot be used with"), "{told}");
        for limit in ["0", "1001", "18446744073709551615", "-1", "x"] {
            let told = refused(&["--queries", "q", "--catalog", "c", &format!("--limit={limit}")]);
            assert!(told.contains("write a whole number from 1 to 1000"), "{told}");
        }
        let told = refused(&["--queries", "q", "--upstream", "gateway"]);
        assert!(told.contains("write a whole URL"), "{told}");
    }

    /// The reader of a pipe that is gone.
    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_reader_that_has_seen_enough_ends_nothing_but_the_report() {
        let folder = std::env::temp_dir().join(format!("toolsearch-eval-{}-pipe", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        std::fs::write(path("tools"), r#"[{"name":"a","inputSchema":{"type":"object"}}]"#).unwrap();
        std::fs::write(path("questions"), r#"{"id":"1","query":"a","relevant":["a"]}"#).unwrap();
        let (tools, questions, baseline) = (path("tools"), path("questions"), path("baseline"));
        let common = ["eval", "--embedder", "none", "--catalog", &tools, "--queries", &questions];
        for more in [&["--explain", "1"][..], &["--baseline", &baseline, "--update"]] {
            let args = Cli::try_parse_from(common.iter().chain(more)).unwrap().args;
            run(&args, None, &mut Gone).await.unwrap();
        }
        assert!(std::fs::read_to_string(&baseline).unwrap().contains("recall@1"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_can_not_be_read_is_told_with_why() {
        let folder = std::env::temp_dir();
        for (path, why) in [(folder.to_str().unwrap(), "irectory"), ("/does/not/exist", "No such file")] {
            let cli = ["eval", "--embedder", "none", "--catalog", path, "--queries", path];
            let args = Cli::try_parse_from(cli).unwrap().args;
            let fault = run(&args, None, &mut Vec::new()).await.unwrap_err().to_string();
            assert!(fault.starts_with(&format!("cannot read {path}: ")), "{fault}");
            assert!(cfg!(windows) || fault.contains(why), "{fault}");
        }
    }

    #[tokio::test]
    async fn a_file_without_questions_measures_nothing() {
        let empty = fault("", "http://127.0.0.1:1/mcp", None).await;
        assert!(matches!(empty, EvalError::NoQuestions(_)), "{empty}");
    }
}
