//! What an evaluation found, as a table.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::catalogue::Catalogue;
use super::measures::{CUTS, Measures, interval};
use super::questions::Question;
use crate::search::Hit;

/// The measures of a group of questions.
#[derive(Debug, Clone, Default)]
pub struct Group {
    answerable: Vec<Measures>,
    /// Answerable questions whose answer was empty.
    refused_wrongly: usize,
    unanswerable: usize,
    /// Unanswerable questions whose answer was empty.
    refused_rightly: usize,
}

/// All questions, and each language's.
#[derive(Debug)]
pub struct Report {
    tools: usize,
    resamples: usize,
    all: Group,
    languages: BTreeMap<String, Group>,
    /// Tools that questions name and the catalogue does not have.
    missing: Vec<String>,
}

impl Group {
    fn add(&mut self, question: &Question, ranked: &[&str]) {
        if question.is_unanswerable() {
            self.unanswerable += 1;
            self.refused_rightly += usize::from(ranked.is_empty());
        } else {
            self.answerable.push(Measures::new(question, ranked));
            self.refused_wrongly += usize::from(ranked.is_empty());
        }
    }

    /// How many questions have an answer.
    pub fn answerable(&self) -> usize {
        self.answerable.len()
    }

    /// How many of those were answered with nothing.
    pub fn refused_wrongly(&self) -> usize {
        self.refused_wrongly
    }

    /// How many questions have no answer.
    pub fn unanswerable(&self) -> usize {
        self.unanswerable
    }

    /// How many of those were answered with nothing.
    pub fn refused_rightly(&self) -> usize {
        self.refused_rightly
    }

    /// The mean measures of the questions that have an answer.
    pub fn mean(&self) -> Measures {
        Measures::mean(&self.answerable)
    }
}

impl Report {
    /// Measures `answers`, one for each question.
    pub fn new(
        catalogue: &Catalogue,
        questions: &[Question],
        answers: &[Vec<Hit>],
        resamples: usize,
    ) -> Self {
        let mut report = Self {
            tools: catalogue.len(),
            resamples,
            all: Group::default(),
            languages: BTreeMap::new(),
            missing: Vec::new(),
        };
        for (question, hits) in questions.iter().zip(answers) {
            let ranked: Vec<&str> = hits.iter().map(|hit| catalogue.name(hit.index)).collect();
            report.all.add(question, &ranked);
            report.languages.entry(question.lang.clone()).or_default().add(question, &ranked);
            let missing = question.relevant.iter().filter(|name| catalogue.position(name).is_none());
            report.missing.extend(missing.cloned());
        }
        report
    }

    pub fn all(&self) -> &Group {
        &self.all
    }

    /// By language tag, in order.
    pub fn languages(&self) -> &BTreeMap<String, Group> {
        &self.languages
    }

    /// Writes the table.
    ///
    /// # Errors
    ///
    /// When `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let questions = self.all.answerable.len() + self.all.unanswerable;
        writeln!(
            out,
            "{} tools, {questions} questions, {} of them without an answer\n",
            self.tools, self.all.unanswerable
        )?;
        write!(out, "{:<10} {:>5}", "", "n")?;
        for cut in CUTS {
            write!(out, " {:>6}", format!("R@{cut}"))?;
        }
        writeln!(out, " {:>6} {:>7}   95% of R@5     refused: rightly, wrongly", "MRR", "nDCG@10")?;
        self.write_group(out, "all", &self.all)?;
        if self.languages.len() > 1 {
            for (language, group) in &self.languages {
                self.write_group(out, language, group)?;
            }
        }
        if let Some(first) = self.missing.first() {
            writeln!(
                out,
                "\n{} names of relevant tools are not in the catalogue, {first:?} first",
                self.missing.len()
            )?;
        }
        Ok(())
    }

    fn write_group(&self, out: &mut dyn Write, name: &str, group: &Group) -> io::Result<()> {
        let mean = group.mean();
        write!(out, "{name:<10} {:>5}", group.answerable.len())?;
        for recall in mean.recall {
            write!(out, " {recall:>6.3}")?;
        }
        write!(out, " {:>6.3} {:>7.3}", mean.reciprocal_rank, mean.ndcg)?;
        let recalls: Vec<f64> = group.answerable.iter().map(|measures| measures.recall[2]).collect();
        match interval(&recalls, self.resamples) {
            Some((low, high)) => write!(out, "   {low:.3} to {high:.3}")?,
            None => write!(out, "   {:14}", "")?,
        }
        let rightly = format!("{} of {}", group.refused_rightly, group.unanswerable);
        writeln!(out, "   {rightly}, {} of {}", group.refused_wrongly, group.answerable.len())
    }
}
