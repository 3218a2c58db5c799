//! A bound on the work of one validation, whatever the schema and the arguments are.
//!
//! The validator can't be told to stop, and a recursive schema with alternatives can cost time exponential in the depth
//! of the arguments. So a step counter is planted in every schema where work can multiply: a keyword of our own inside
//! an extra `allOf` branch. When the steps are used up it unwinds to [`within`], past the validator, which holds no
//! locks. `resume_unwind` starts that without the panic hook, so nothing is printed.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Map, Value, json};

/// No published keyword has this name.
const STEP: &str = "x-toolsearch-step";

/// Bytes of a string that cost a pattern as much as one schema costs a value.
const PATTERN_BYTES_PER_STEP: usize = 4;

/// What it costs to put together why one alternative does not fit, besides the copy of the value.
const BRANCH_ERROR_STEPS: u64 = 40;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Why [`within`] has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The steps were used up.
    Exhausted,
    /// The work panicked.
    Panicked,
}

/// The payload of the unwinding that ends a validation.
struct Exhausted;

/// Runs `work` with at most `steps` steps.
pub(super) fn within<T>(steps: u64, work: impl FnOnce() -> T) -> Result<T, Stopped> {
    STEPS_LEFT.set(steps);
    panic::catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| if payload.is::<Exhausted>() { Stopped::Exhausted } else { Stopped::Panicked })
}

/// Plants a counter in `schema` if evaluating it can cost more than the schemas it stands among.
///
/// The branch goes to the end of `allOf`, so the places of the other branches stay what they were.
pub(super) fn plant(schema: &mut Map<String, Value>) {
    let listed = |keyword: &str| schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
    let branches = listed("anyOf") + listed("oneOf") + listed("allOf");
    let options = listed("enum");
    let costly =
        ["not", "if", "contains", "dependentSchemas", "dependencies", "pattern", "patternProperties"];
    let counted = ["items", "additionalProperties", "uniqueItems", "propertyNames", "unevaluatedProperties"];
    let worth = branches > 0
        || options > 16
        || costly.iter().chain(&counted).any(|&keyword| schema.contains_key(keyword));
    if !worth || schema.get("allOf").is_some_and(|branches| !branches.is_array()) {
        return;
    }
    let pattern = schema.get("pattern").is_some() || schema.get("patternProperties").is_some();
    let step = json!({STEP: {"cost": 1 + branches + options, "branches": listed("anyOf") + listed("oneOf"), "pattern": pattern}});
    match schema.get_mut("allOf") {
        Some(Value::Array(branches)) => branches.push(step),
        _ => drop(schema.insert("allOf".to_owned(), Value::Array(vec![step]))),
    }
}

/// Teaches the validator the keyword that [`plant`] uses.
pub(super) fn with_steps(options: ValidationOptions<'_>) -> ValidationOptions<'_> {
    options.with_keyword(STEP, |_, settings, _| {
        let number = |name: &str| settings.get(name).and_then(Value::as_u64);
        let (cost, branches) = (number("cost").unwrap_or(1), number("branches").unwrap_or(0));
        let pattern = settings.get("pattern").and_then(Value::as_bool).unwrap_or(false);
        Ok(Box::new(Step { cost, branches, pattern }))
    })
}

struct Step {
    cost: u64,
    /// Alternatives, each of which may keep copies of the value when errors are collected.
    branches: u64,
    pattern: bool,
}

impl Step {
    fn take(&self, instance: &Value, extra: u64) {
        let elements = match instance {
            Value::Array(items) => items.len(),
            Value::Object(properties) => properties.len(),
            Value::String(text) if self.pattern => text.len() / PATTERN_BYTES_PER_STEP,
            _ => 0,
        };
        let cost = self.cost.saturating_add(elements as u64).saturating_add(extra);
        match STEPS_LEFT.get().checked_sub(cost) {
            Some(left) => STEPS_LEFT.set(left),
            None => panic::resume_unwind(Box::new(Exhausted)),
        }
    }
}

impl<'i> Keyword<'i> for Step {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        let copied = if self.branches == 0 {
            0
        } else {
            self.branches.saturating_mul(BRANCH_ERROR_STEPS + size(instance))
        };
        self.take(instance, copied);
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.take(instance, 0);
        true
    }
}

/// The steps that a copy of the value costs: about the number of values in it. The recursion is as deep as the value, which was limited before.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(properties) => 1 + properties.values().map(|value| 1 + size(value)).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 256,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
