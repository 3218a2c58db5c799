//! [`Refusal`]: what a model did wrong, and how to do it right.

use super::ToolReply;
use super::arguments::Violation;
use super::text::ObjectText;
use crate::mcp::minified;
use crate::telemetry::RefusalReason;
use serde_json::value::RawValue;

/// An answer that the model can act on. **It always carries the fix.**
#[derive(Debug, Default)]
pub struct Refusal {
    error: String,
    problems: Vec<Violation>,
    nearest: Vec<String>,
    input_schema: Option<String>,
    reason: RefusalReason,
}

impl Refusal {
    /// A refusal in one sentence or two.
    pub fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), ..Self::default() }
    }

    /// Says for the metrics what was wrong, where it is not the form of the request itself.
    pub(super) fn because(mut self, reason: RefusalReason) -> Self {
        self.reason = reason;
        self
    }

    /// What was wrong.
    pub(super) fn reason(&self) -> RefusalReason {
        self.reason
    }

    /// Adds what is wrong at which place of the arguments.
    pub(super) fn with_problems(mut self, problems: Vec<Violation>) -> Self {
        self.problems = problems;
        self
    }

    /// Adds names that were probably meant.
    pub(super) fn with_nearest(mut self, nearest: Vec<String>) -> Self {
        self.nearest = nearest;
        self
    }

    /// Adds the schema that the arguments must fit.
    pub(super) fn with_schema(mut self, schema: Option<&RawValue>) -> Self {
        self.input_schema = schema.map(|schema| minified(schema.get()).into_owned());
        self
    }

    /// The refusal as compact JSON.
    pub(super) fn to_json(&self) -> String {
        let mut object = ObjectText::new();
        object.text("error", &self.error);
        if !self.problems.is_empty() {
            let problems = self.problems.iter().map(|violation| {
                let mut problem = ObjectText::new();
                problem.text("at", &violation.pointer);
                problem.text("problem", &violation.message);
                problem.finish()
            });
            object.list("problems", problems);
        }
        if !self.nearest.is_empty() {
            object.texts("nearest", &self.nearest);
        }
        if let Some(schema) = &self.input_schema {
            object.raw("inputSchema", schema);
        }
        object.finish()
    }

    pub(super) fn into_reply(self) -> ToolReply {
        ToolReply::own(&self.to_json(), true)
    }
}
