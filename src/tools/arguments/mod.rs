//! Checks the arguments of a tool call against the tool's input schema, to tell the model what to mend.
//!
//! [`ArgumentSchema::compile`] takes a schema as the upstream wrote it; [`ArgumentSchema::check`] takes the arguments as
//! the model wrote them. The check helps the model and guards nothing: the upstream checks for itself. So whatever
//! can't be checked safely is forwarded unchecked, with a reason ([`Unchecked`]) that can be shown.
//!
//! Invariants: no schema and no arguments make this panic, overflow a stack of 2 MiB or work for much longer than 0.1 s
//! (0.2 s where `uniqueItems` meets a full MiB); nothing is fetched; no message holds a value of the arguments, only
//! names of properties and what the schema says. Where numbers or expressions can't be judged exactly, the arguments
//! pass.
//!
//! The dialect is the schema's own `$schema`, or [JSON Schema 2020-12](https://json-schema.org/draft/2020-12). `format`,
//! `contentEncoding` and `contentMediaType` never refuse.

mod budget;
mod keywords;
mod numbers;
mod prepare;
mod survey;
mod violation;
mod wording;

use std::fmt;

use jsonschema::{Draft, PatternCache, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use budget::Stopped;
pub use violation::Violation;

/// Bytes of arguments that are checked.
const ARGUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Nesting of arguments that are checked.
const ARGUMENT_NESTING_MAX: usize = 64;
/// Frames of the validator on top of each other, estimated as schemas on one value times the arguments' nesting.
const FRAMES_MAX: usize = 1_024;
/// Steps to tell whether arguments fit; some 50 ms.
const STEPS_MAX: u64 = 400_000;
/// Steps to list all that does not fit, which costs memory as well.
const LISTING_STEPS_MAX: u64 = 400_000;
/// Steps to find the first thing that does not fit, when listing all takes too many.
const FIRST_STEPS_MAX: u64 = 600_000;
/// Values in arguments of which every error is listed: each may be one.
const LISTED_VALUES_MAX: u64 = 20_000;
/// Violations in an answer.
const VIOLATIONS_MAX: usize = 10;

/// Why arguments are forwarded without a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unchecked {
    /// The tool has no input schema, or `null` in its place.
    Missing,
    /// The schema's text is over 64 KiB.
    TooLarge,
    /// The schema nests too deeply.
    TooDeep,
    /// The schema holds over 2,000 schemas.
    TooManySubschemas,
    /// The schema holds over 256 references.
    TooManyReferences,
    /// Alternatives and references multiply to over 100,000 ways through the schema.
    TooManyPaths,
    /// A reference leads back to itself without going into the value.
    ReferenceLoop,
    /// A reference names something outside the schema.
    ExternalReference,
    /// A reference names something that the schema does not hold.
    UnresolvedReference,
    /// A schema inside the schema has an `$id` of its own.
    EmbeddedResource,
    /// `$schema` names a dialect other than drafts 4, 6, 7, 2019-09 and 2020-12.
    UnknownDialect,
    /// It is not a valid schema of its dialect.
    Invalid,
    /// The validator failed on it.
    Failed,
    /// The arguments are over 1 MiB.
    ArgumentsTooLarge,
    /// The arguments nest too deeply for the schema.
    ArgumentsTooDeep,
    /// Checking these arguments takes too long.
    TooCostly,
    /// The arguments hold numbers, or halves of characters, that have no exact form here.
    Inexact,
}

impl fmt::Display for Unchecked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "the tool has no input schema",
            Self::TooLarge => "the input schema is larger than 64 KiB",
            Self::TooDeep => "the input schema is nested too deeply",
            Self::TooManySubschemas => "the input schema has more than 2,000 subschemas",
            Self::TooManyReferences => "the input schema has more than 256 references",
            Self::TooManyPaths => "the alternatives and references of the input schema multiply too far",
            Self::ReferenceLoop => "a `$ref` of the input schema leads back to itself",
            Self::ExternalReference => "a `$ref` leads out of the input schema",
            Self::UnresolvedReference => "a `$ref` of the input schema leads nowhere",
            Self::EmbeddedResource => "a part of the input schema has its own `$id`",
            Self::UnknownDialect => "`$schema` of the input schema names an unknown dialect",
            Self::Invalid => "the input schema is not a valid JSON Schema",
            Self::Failed => "the input schema could not be processed",
            Self::ArgumentsTooLarge => "the arguments are larger than 1 MiB",
            Self::ArgumentsTooDeep => "the arguments are nested too deeply",
            Self::TooCostly => "checking these arguments against the input schema takes too long",
            Self::Inexact => "the arguments hold numbers or characters that cannot be told apart here",
        })
    }
}

/// What is known of arguments that are not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// They fit the whole schema.
    Whole,
    /// They fit the schema without the expressions that were left out.
    WithoutSomePatterns,
    /// They were not checked.
    Not(Unchecked),
}

/// A tool's input schema, ready to check arguments; or the reason why it can't. Shared freely between threads.
#[derive(Debug)]
pub struct ArgumentSchema(Result<Compiled, Unchecked>);

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    /// As the upstream wrote it, for the messages.
    schema: Box<RawValue>,
    height: usize,
    draft: Draft,
    skipped_patterns: usize,
}

impl ArgumentSchema {
    /// Compiles a schema as it stands in a tool's definition.
    ///
    /// # Cost
    ///
    /// 12 µs and 4 KB of memory for the median of 4,600 published tools, 0.2 ms and 37 KB for the 99th percentile; at
    /// most some 50 ms for a hostile one, and memory of up to 50 times its text.
    #[must_use]
    pub fn compile(schema: &RawValue) -> Self {
        // No step is taken while compiling; this only catches what the validator's own code may do.
        Self(budget::within(u64::MAX, || compile(schema)).unwrap_or(Err(Unchecked::Failed)))
    }

    /// The schema of a tool that lists none.
    #[must_use]
    pub fn missing() -> Self {
        Self(Err(Unchecked::Missing))
    }

    /// Why no arguments are checked, if they are not.
    #[must_use]
    pub fn unchecked(&self) -> Option<Unchecked> {
        self.0.as_ref().err().copied()
    }

    /// How many of the schema's regular expressions are left out of the check.
    #[must_use]
    pub fn skipped_patterns(&self) -> usize {
        self.0.as_ref().map_or(0, |compiled| compiled.skipped_patterns)
    }

    /// Checks arguments as the model wrote them. Anything but an object is refused, whatever the schema: a tool call
    /// has no other arguments.
    ///
    /// # Errors
    ///
    /// What is wrong, at most ten violations of at most 2 KiB each, never empty.
    ///
    /// # Cost
    ///
    /// Some 5 µs for usual arguments; bounded to some 0.1 s for hostile ones, so it belongs off the async threads when
    /// the arguments are large. Needs 2 MiB of stack.
    pub fn check(&self, arguments: &RawValue) -> Result<Checked, Vec<Violation>> {
        if !arguments.get().starts_with('{') {
            return Err(vec![violation::not_an_object(arguments)]);
        }
        let compiled = match &self.0 {
            Ok(compiled) => compiled,
            Err(reason) => return Ok(Checked::Not(*reason)),
        };
        match compiled.check(arguments) {
            Ok(violations) if violations.is_empty() && compiled.skipped_patterns > 0 => {
                Ok(Checked::WithoutSomePatterns)
            }
            Ok(violations) if violations.is_empty() => Ok(Checked::Whole),
            Ok(violations) => Err(violations),
            Err(reason) => Ok(Checked::Not(reason)),
        }
    }
}

impl ArgumentSchema {
    /// Whether arguments pass [`Self::check`], without telling what is wrong with them.
    pub(super) fn fits(&self, arguments: &RawValue) -> bool {
        self.0.as_ref().map_or(true, |compiled| compiled.fits(arguments).is_ok_and(|fits| fits))
    }
}

fn compile(raw: &RawValue) -> Result<Compiled, Unchecked> {
    let mut schema = survey::parse(raw.get())?;
    let draft = match &schema {
        Value::Null => return Err(Unchecked::Missing),
        Value::Bool(true) => Draft::Draft202012,
        // Arguments are always an object, so a root that no object meets can't be meant.
        Value::Object(keywords) if !takes_objects(keywords.get("type")) => return Err(Unchecked::Invalid),
        Value::Object(keywords) => match keywords.get("$schema") {
            None => Draft::Draft202012,
            Some(Value::String(uri)) => keywords::draft_of(uri).ok_or(Unchecked::UnknownDialect)?,
            Some(_) => return Err(Unchecked::UnknownDialect),
        },
        // `false` would refuse every call there can be, which no tool means.
        _ => return Err(Unchecked::Invalid),
    };
    let survey = survey::survey(&schema, draft)?;
    let cache = PatternCache::new();
    let options = prepare::options(draft, &cache);
    let unsupported = prepare::unsupported(&survey.patterns, &options);
    prepare::prepare(&mut schema, &unsupported);
    let validator = options.build(&schema).map_err(|_| Unchecked::Invalid)?;
    let skipped_patterns = survey.patterns.iter().filter(|pattern| unsupported.contains(*pattern)).count();
    Ok(Compiled {
        validator,
        schema: raw.to_owned(),
        height: survey.height as usize,
        draft,
        skipped_patterns,
    })
}

/// Whether the root's `type` has room for an object. What is no `type` at all is for the dialect to refuse.
fn takes_objects(types: Option<&Value>) -> bool {
    match types {
        Some(Value::String(only)) => only == "object",
        Some(Value::Array(several)) => several.is_empty() || several.iter().any(|one| one == "object"),
        _ => true,
    }
}

impl Compiled {
    /// The violations, none if the arguments fit.
    fn check(&self, arguments: &RawValue) -> Result<Vec<Violation>, Unchecked> {
        let (instance, exact) = self.instance(arguments)?;
        if self.fits_instance(&instance)? { Ok(Vec::new()) } else { self.explain(&instance, exact) }
    }

    fn fits(&self, arguments: &RawValue) -> Result<bool, Unchecked> {
        self.fits_instance(&self.instance(arguments)?.0)
    }

    fn fits_instance(&self, instance: &Value) -> Result<bool, Unchecked> {
        budget::within(STEPS_MAX, || self.validator.is_valid(instance)).map_err(Unchecked::from)
    }

    /// The arguments as the validator reads them, and whether all their numbers are exact.
    fn instance(&self, arguments: &RawValue) -> Result<(Value, bool), Unchecked> {
        let text = arguments.get();
        if text.len() > ARGUMENT_BYTES_MAX {
            return Err(Unchecked::ArgumentsTooLarge);
        }
        let nesting = survey::nesting(text);
        if nesting > ARGUMENT_NESTING_MAX || nesting * self.height > FRAMES_MAX {
            return Err(Unchecked::ArgumentsTooDeep);
        }
        // Text that serde_json can carry but not parse has numbers beyond any float, or lone surrogates.
        let mut instance: Value = serde_json::from_str(text).map_err(|_| Unchecked::Inexact)?;
        let exact = numbers::settle(&mut instance, self.draft == Draft::Draft4);
        Ok((instance, exact))
    }

    fn explain(&self, instance: &Value, exact: bool) -> Result<Vec<Violation>, Unchecked> {
        let schema: Value = serde_json::from_str(self.schema.get()).map_err(|_| Unchecked::Failed)?;
        let tell = |errors: &[ValidationError<'_>]| violation::tell(errors, &schema, exact, VIOLATIONS_MAX);
        let listed = if budget::size(instance) > LISTED_VALUES_MAX {
            Err(Stopped::Exhausted)
        } else {
            budget::within(LISTING_STEPS_MAX, || {
                tell(&self.validator.iter_errors(instance).collect::<Vec<_>>())
            })
        };
        let violations = match listed {
            Ok(violations) => violations,
            Err(Stopped::Panicked) => return Err(Unchecked::Failed),
            Err(Stopped::Exhausted) => {
                let first = || self.validator.validate(instance).err().map(|error| tell(&[error]));
                budget::within(FIRST_STEPS_MAX, first)
                    .unwrap_or(None)
                    .unwrap_or_else(|| vec![violation::untold()])
            }
        };
        // Only rules that can't be judged exactly were broken.
        if violations.is_empty() { Err(Unchecked::Inexact) } else { Ok(violations) }
    }
}

impl From<Stopped> for Unchecked {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Exhausted => Self::TooCostly,
            Stopped::Panicked => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
