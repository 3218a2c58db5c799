//! Where each setting came from.

use super::file::SettingsFile;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::path::PathBuf;

/// What gave a setting its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Variable(String),
    File(PathBuf),
    Default,
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting as it is in force.
#[derive(Clone, Debug)]
pub(super) struct Effective {
    /// Without dashes in front.
    flag: String,
    kind: Kind,
    /// As given; empty when the setting is not set.
    values: Vec<String>,
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Count,
    Switch,
    List,
}

impl Effective {
    /// `None` for what is no setting.
    pub(super) fn of(arg: &Arg, matches: &ArgMatches, file: Option<&SettingsFile>) -> Option<Self> {
        let flag = arg.get_long().filter(|flag| *flag != "help")?.to_owned();
        let id = arg.get_id().as_str();
        let origin = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => Origin::Flag,
            Some(ValueSource::EnvVariable) => {
                Origin::Variable(arg.get_env().unwrap_or_default().to_string_lossy().into_owned())
            }
            _ => match file.filter(|file| file.sets(&flag)) {
                Some(file) => Origin::File(file.path.clone()),
                None => Origin::Default,
            },
        };
        let value_name =
            arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        let kind = match value_name {
            _ if arg.get_value_delimiter().is_some() => Kind::List,
            "COUNT" => Kind::Count,
            "BOOLEAN" | "BOOL" => Kind::Switch,
            _ => Kind::Text,
        };
        let raw = matches.get_raw(id).into_iter().flatten();
        let values = raw.map(|value| value.to_string_lossy().into_owned()).collect();
        Some(Self { flag, kind, values, origin })
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let line = match (self.kind, self.values.as_slice()) {
            (_, []) => format!("# {} is not set", self.flag),
            (Kind::List, items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item.trim())).collect();
                format!("{} = [{}]", self.flag, items.join(", "))
            }
            (Kind::Count, [value, ..]) => format!("{} = {}", self.flag, value.trim()),
            (Kind::Switch, [value, ..]) => {
                let is_on = value.parse::<super::Switch>().is_ok_and(|switch| switch.0);
                format!("{} = {is_on}", self.flag)
            }
            (Kind::Text, [value, ..]) => format!("{} = {}", self.flag, quoted(value.trim())),
        };
        if self.values.is_empty() {
            writeln!(out, "{line}")
        } else {
            writeln!(out, "{line:<48} # {}", self.origin)
        }
    }
}

/// How the settings of a command came about.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) effective: Vec<Effective>,
    /// Flags that were given more than once.
    pub(super) repeated: Vec<String>,
    /// What is wrong with the settings file.
    pub(super) problems: Vec<String>,
    /// Whether nothing of the settings file is known.
    pub(super) is_file_unread: bool,
}

impl Settings {
    /// By flag with its dashes: what to add to a problem, so that it is looked for in the right place.
    pub(super) fn places(&self) -> BTreeMap<String, String> {
        let elsewhere = self.effective.iter().filter_map(|setting| match &setting.origin {
            Origin::Variable(name) => Some((setting, format!("from the variable {name}"))),
            Origin::File(path) => Some((setting, format!("from {}", path.display()))),
            Origin::Flag | Origin::Default => None,
        });
        elsewhere.map(|(setting, place)| (format!("--{}", setting.flag), place)).collect()
    }

    /// All settings with where each came from, as a settings file that sets the same.
    pub(super) fn as_file(&self) -> String {
        let mut out = String::new();
        for setting in self.effective.iter().filter(|setting| setting.flag != "config") {
            setting.write(&mut out).expect("a string takes any text");
        }
        out
    }
}
