//! Questions whose answers are known.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::EvalError;

/// A question.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    pub id: String,
    pub query: String,
    /// A language tag; questions are also measured by it.
    #[serde(default = "unknown_language")]
    pub lang: String,
    /// The names of all tools that would do; empty when nothing fits.
    pub relevant: Vec<String>,
    /// How good each is, where they differ.
    #[serde(default)]
    pub grades: BTreeMap<String, u32>,
}

fn unknown_language() -> String {
    "?".to_owned()
}

impl Question {
    /// From a file with one question a line.
    ///
    /// # Errors
    ///
    /// [`EvalError::Read`] or [`EvalError::Question`].
    pub fn read_all(path: &Path) -> Result<Vec<Self>, EvalError> {
        let text =
            fs::read_to_string(path).map_err(|source| EvalError::Read { path: path.to_owned(), source })?;
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let questions = lines.map(|(line, number)| {
            let wrong = |error: serde_json::Error| EvalError::Question {
                path: path.to_owned(),
                line: number,
                reason: error.to_string(),
            };
            serde_json::from_str(line).map_err(wrong)
        });
        questions.collect()
    }

    /// Whether no tool fits.
    pub fn is_unanswerable(&self) -> bool {
        self.relevant.is_empty()
    }

    /// What a tool is worth as an answer: 0 for none; `2^grade - 1` where there are grades, else 1.
    pub fn gain(&self, name: &str) -> f64 {
        match self.grades.get(name) {
            Some(&grade) => 2_f64.powi(grade.min(30) as i32) - 1.0,
            None if self.grades.is_empty() && self.relevant.iter().any(|relevant| relevant == name) => 1.0,
            None => 0.0,
        }
    }

    /// The gains of a perfect answer, best first.
    pub fn ideal_gains(&self) -> Vec<f64> {
        if self.grades.is_empty() {
            return vec![1.0; self.relevant.len()];
        }
        let mut gains: Vec<f64> = self.grades.keys().map(|name| self.gain(name)).collect();
        gains.sort_by(|a, b| b.total_cmp(a));
        gains
    }
}
