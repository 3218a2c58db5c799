//! What is wrong with arguments, in words that help a model to mend them.
//!
//! A message says which rule was broken and what would fit. It holds what the schema says and names of properties, and
//! never a value of the arguments: they are private, and messages may be shown and counted where arguments may not.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::suggest;
use super::wording::{cap, cut_pointer, list, named_type, quote, type_of};

/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;
/// Values or names that a message lists.
const LISTED_MAX: usize = 20;
/// Alternatives inside alternatives that a message goes into.
const BRANCH_DEPTH_MAX: usize = 3;
/// Rules of the nearest alternative that a message names.
const BRANCH_RULES_MAX: usize = 3;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where in the arguments, as a JSON Pointer (RFC 6901); empty for the whole. Very long ones end early.
    pub pointer: String,
    /// What is wrong there and what would fit; at most 2 KiB.
    pub message: String,
}

impl Violation {
    fn new(pointer: &str, message: &str) -> Self {
        Self { pointer: cut_pointer(pointer).to_owned(), message: cap(message, MESSAGE_BYTES_MAX) }
    }
}

/// The arguments are not an object at all.
pub(super) fn not_an_object(arguments: &RawValue) -> Violation {
    let message = match arguments.get().as_bytes().first() {
        Some(b'"') => {
            "the arguments must be an object, not a string: give the JSON itself, not a string that holds it"
        }
        Some(b'[') => "the arguments must be an object, not an array",
        Some(b'n') => "the arguments must be an object, not null",
        Some(b't' | b'f') => "the arguments must be an object, not a boolean",
        _ => "the arguments must be an object, not a number",
    };
    Violation::new("", message)
}

/// The arguments do not fit, and telling where would take too long.
pub(super) fn untold() -> Violation {
    Violation::new("", "the arguments do not fit the input schema")
}

/// Puts errors of the validator into words, the first `limit` of them. With `exact` unset, rules that depend on the
/// exact value of a number are left out.
pub(super) fn tell(
    errors: &[ValidationError<'_>],
    schema: &Value,
    exact: bool,
    limit: usize,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for error in errors {
        if violations.len() >= limit {
            break;
        }
        let about_names = matches!(
            error.kind(),
            Kind::Required { .. }
                | Kind::AdditionalProperties { .. }
                | Kind::UnevaluatedProperties { .. }
                | Kind::Type { .. }
        );
        if exact || about_names {
            let pointer = error.instance_path().as_str();
            let messages = messages(error, schema, BRANCH_DEPTH_MAX);
            violations.extend(messages.iter().map(|message| Violation::new(pointer, message)));
        }
    }
    violations.truncate(limit);
    violations
}

/// The messages of one error: one for each unknown property, one for anything else.
fn messages(error: &ValidationError<'_>, schema: &Value, depth: usize) -> Vec<String> {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let place = Place::of(error, schema);
            let mut is_listed = false;
            unexpected
                .iter()
                .take(LISTED_MAX)
                .map(|name| place.unknown_property(name, &mut is_listed))
                .collect()
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Place::of(error, schema).missing_property(name)]
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            vec![no_branch(error, context, schema, depth)]
        }
        Kind::PropertyNames { error: inner } => {
            let name = inner.instance().as_str().unwrap_or_default();
            let rules = messages(inner, schema, depth).join("; ");
            vec![format!("the property name {} is not allowed: {rules}", quote(name))]
        }
        Kind::Type { kind } => vec![wrong_type(&types_of(kind), error.instance())],
        Kind::Enum { options } => vec![not_an_option(options, error.instance())],
        // The engine gave up, which says nothing about the arguments.
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => Vec::new(),
        kind => vec![simple_rule(kind)],
    }
}

/// The rules that need nothing but their own limits.
fn simple_rule(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::Constant { expected_value } => format!("must be {}", cap(&expected_value.to_string(), 200)),
        Kind::Contains => "must contain an item of the kind that the schema asks for".to_owned(),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::FalseSchema => "must be left out: no value is allowed here".to_owned(),
        Kind::Format { format } => format!("must have the format {}", quote(format)),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Not { .. } => "must not be of the kind that the schema excludes with `not`".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one of the alternatives, and must fit only one".to_owned()
        }
        Kind::Pattern { pattern } => format!("must match the pattern {}", cap(pattern, 300)),
        Kind::UnevaluatedItems { .. } => "has items that the schema does not allow".to_owned(),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        other => format!("breaks the rule `{}` of the schema", cap(other.keyword(), 100)),
    }
}

fn types_of(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(only) => vec![*only],
        TypeKind::Multiple(several) => several.iter().collect(),
    }
}

fn wrong_type(types: &[JsonType], instance: &Value) -> String {
    let wanted: Vec<&str> = types.iter().map(|&wanted| named_type(wanted)).collect();
    let hint = match instance {
        Value::String(text) => {
            let container = text.trim_start().starts_with(['{', '[']);
            let wants = |some: &[JsonType]| types.iter().any(|wanted| some.contains(wanted));
            if container && wants(&[JsonType::Array, JsonType::Object]) {
                ": give the JSON itself, not a string that holds it"
            } else if wants(&[JsonType::Integer, JsonType::Number]) && text.trim().parse::<f64>().is_ok() {
                ": give it without quotes"
            } else {
                ""
            }
        }
        _ => "",
    };
    let given = match instance {
        // Told apart only where an integer is asked for.
        Value::Number(_) if types.contains(&JsonType::Integer) => "a number with a fraction",
        other => type_of(other),
    };
    format!("must be {}, not {given}{hint}", wanted.join(" or "))
}

fn not_an_option(options: &Value, instance: &Value) -> String {
    let empty = Vec::new();
    let options = options.as_array().unwrap_or(&empty);
    let listed = list(options.iter().map(|option| cap(&option.to_string(), 80)), LISTED_MAX);
    let near = instance
        .as_str()
        .and_then(|given| suggest::property_like(given, options.iter().filter_map(Value::as_str)));
    match near {
        // In a short list the near one is easily seen.
        Some(near) if options.len() > LISTED_MAX => {
            format!("must be one of {listed}; nearest is {}", quote(near))
        }
        _ => format!("must be one of {listed}"),
    }
}

/// None of several alternatives fits: says what the nearest one asks for.
fn no_branch(
    error: &ValidationError<'_>,
    branches: &[Vec<ValidationError<'static>>],
    schema: &Value,
    depth: usize,
) -> String {
    let here = error.instance_path().as_str();
    if let Some(types) = only_types(branches, here) {
        return wrong_type(&types, error.instance());
    }
    let none = format!("fits none of the {} alternatives", branches.len());
    let nearest = branches.iter().filter(|rules| !rules.is_empty()).min_by_key(|rules| distance(rules, here));
    let Some(nearest) = nearest.filter(|_| depth > 0) else { return none };
    let rules: Vec<String> = nearest
        .iter()
        .flat_map(|rule| {
            let at = rule.instance_path().as_str();
            let place = if at == here { String::new() } else { format!("{} ", quote(cut_pointer(at))) };
            messages(rule, schema, depth - 1).into_iter().map(move |message| format!("{place}{message}"))
        })
        .take(BRANCH_RULES_MAX)
        .collect();
    format!("{none}; the nearest asks: {}", rules.join("; "))
}

/// The types asked for, when every alternative only asks for a type.
fn only_types(branches: &[Vec<ValidationError<'static>>], here: &str) -> Option<Vec<JsonType>> {
    let mut types = Vec::new();
    for branch in branches {
        let [only] = branch.as_slice() else { return None };
        let Kind::Type { kind } = only.kind() else { return None };
        if only.instance_path().as_str() != here {
            return None;
        }
        types.extend(types_of(kind));
    }
    types.sort_unstable();
    types.dedup();
    Some(types)
}

/// How far an alternative is from what was given: another type is farther than another constant, which is what tells
/// alternatives of one type apart; then the fewer rules broken the nearer.
fn distance(rules: &[ValidationError<'_>], here: &str) -> (bool, bool, usize) {
    let any = |test: &dyn Fn(&ValidationError<'_>) -> bool| rules.iter().any(test);
    let other_type =
        any(&|rule| matches!(rule.kind(), Kind::Type { .. }) && rule.instance_path().as_str() == here);
    let other_constant = any(&|rule| matches!(rule.kind(), Kind::Constant { .. } | Kind::Enum { .. }));
    (other_type, other_constant, rules.len())
}

/// The schema that a rule stands in and the object that breaks it.
struct Place<'a> {
    schema: Option<&'a Map<String, Value>>,
    given: Vec<String>,
}

impl<'a> Place<'a> {
    fn of(error: &ValidationError<'_>, root: &'a Value) -> Self {
        let path = error.schema_path().as_str();
        let keyword = format!("/{}", error.kind().keyword());
        let parent = path.rfind(&keyword).map_or("", |end| &path[..end]);
        let given = error.instance().as_object().map(|object| object.keys().cloned().collect());
        Self { schema: root.pointer(parent).and_then(Value::as_object), given: given.unwrap_or_default() }
    }

    /// The properties that the schema declares, those of its direct alternatives included.
    fn declared(&self) -> Vec<&'a str> {
        let branches = ["allOf", "anyOf", "oneOf"].into_iter();
        let branches = branches.filter_map(|keyword| self.schema?.get(keyword)?.as_array()).flatten();
        let schemas = self.schema.into_iter().chain(branches.filter_map(Value::as_object));
        let properties = schemas.filter_map(|schema| schema.get("properties")?.as_object());
        properties.flat_map(Map::keys).map(String::as_str).collect()
    }

    fn missing(&self) -> Vec<&'a str> {
        let required = self.schema.and_then(|schema| schema.get("required")?.as_array());
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| !self.given.iter().any(|given| given == name)).collect()
    }

    fn undeclared(&self) -> Vec<&str> {
        let declared = self.declared();
        self.given.iter().map(String::as_str).filter(|name| !declared.contains(name)).collect()
    }

    /// Says which properties there are where nothing is near, but only once.
    fn unknown_property(&self, name: &str, is_listed: &mut bool) -> String {
        let unknown = format!("unknown property {}", quote(name));
        let free =
            self.declared().into_iter().filter(|declared| !self.given.iter().any(|given| given == declared));
        let missing = self.missing();
        let only = match missing.as_slice() {
            [only] if self.undeclared().len() == 1 => Some(*only),
            _ => None,
        };
        // One that is required and missing is likelier meant than one that is not.
        let meant = suggest::property_like(name, missing.iter().copied());
        if let Some(meant) = meant.or_else(|| suggest::property_like(name, free)).or(only) {
            return format!("{unknown}; did you mean {}?", quote(meant));
        }
        let declared = self.declared();
        if declared.is_empty() || std::mem::replace(is_listed, true) {
            return unknown;
        }
        format!("{unknown}; known are {}", list(declared.into_iter().map(quote), LISTED_MAX))
    }

    fn missing_property(&self, name: &str) -> String {
        let property = self.schema.and_then(|schema| schema.get("properties")?.get(name));
        let kind = property.and_then(expected).map(|kind| format!(" ({kind})")).unwrap_or_default();
        let message = format!("missing required property {}{kind}", quote(name));
        let closed =
            self.schema.and_then(|schema| schema.get("additionalProperties")) == Some(&Value::Bool(false));
        if closed {
            // The unknown property has a message of its own.
            return message;
        }
        let undeclared = self.undeclared();
        let similar =
            undeclared.iter().find(|given| suggest::property_like(given, [name].into_iter()).is_some());
        let only = undeclared.first().filter(|_| undeclared.len() == 1 && self.missing().len() == 1);
        match similar.or(only) {
            Some(given) => {
                format!("{message}; {} is not a declared property and may be meant for it", quote(given))
            }
            None => message,
        }
    }
}

/// What a property's schema asks for, in a few words.
fn expected(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return Some(format!(
            "one of {}",
            list(options.iter().map(|option| cap(&option.to_string(), 40)), 8)
        ));
    }
    match schema.get("type")? {
        Value::String(name) => name.parse::<JsonType>().ok().map(|name| named_type(name).to_owned()),
        Value::Array(names) => {
            let names = names.iter().filter_map(|name| name.as_str()?.parse::<JsonType>().ok());
            Some(names.map(named_type).collect::<Vec<_>>().join(" or "))
        }
        _ => None,
    }
}
