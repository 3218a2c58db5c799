//! The settings file: TOML whose keys are the names of the flags, without their dashes in front.
//!
//! A file never stops the reading of the other settings: what is wrong with it is told with everything else.

use super::nearest::nearest;
use clap::{Arg, Command};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The key that would name another file.
const CONFIG: &str = "config";
const SECTION: &str = "it is a section: settings stand in none, and their names have no dots";
/// No file of settings is larger.
const BYTES_MAX: u64 = 1 << 20;

/// What a file sets, as the text that a flag would have.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    /// By flag, without dashes in front.
    values: BTreeMap<String, Vec<String>>,
    pub(super) problems: Vec<String>,
    /// Nothing of it is known.
    pub(super) is_unread: bool,
}

impl SettingsFile {
    /// Reads a file for the flags of a command.
    pub(super) fn read(path: &Path, command: &Command) -> Self {
        let mut file =
            Self { path: path.to_owned(), values: BTreeMap::new(), problems: Vec::new(), is_unread: false };
        match table(path) {
            Ok(table) => table.iter().for_each(|(key, value)| file.add(command, key, value)),
            Err(problem) => {
                file.problems.push(format!("--config: {}: {problem}", path.display()));
                file.is_unread = true;
            }
        }
        file
    }

    pub(super) fn sets(&self, flag: &str) -> bool {
        self.values.contains_key(flag)
    }

    /// The command with the file's values in the place of its defaults.
    pub(super) fn apply(&self, command: Command) -> Command {
        command.mut_args(|arg| match arg.get_long().and_then(|flag| self.values.get(flag)) {
            Some(values) => arg.default_values(values.clone()),
            None => arg,
        })
    }

    fn add(&mut self, command: &Command, key: &str, value: &Value) {
        let known = |arg: &&Arg| arg.get_long() == Some(key) && !matches!(key, "help" | CONFIG);
        let Some(arg) = command.get_arguments().find(known) else {
            if value.is_table() {
                return self.problem(key, SECTION);
            }
            let names = command.get_arguments().filter_map(Arg::get_long);
            let hint = nearest(key, names.filter(|name| !matches!(*name, "help" | CONFIG)));
            let hint = hint.map(|nearest| format!("did you mean {nearest}?"));
            let hint = hint.unwrap_or_else(|| "keys are the flags of serve without --".to_owned());
            return self.problem(key, &format!("no setting has this name; {hint}"));
        };
        match texts(arg, value) {
            Ok(texts) if texts.is_empty() => {}
            Ok(texts) => {
                self.values.insert(key.to_owned(), texts);
            }
            Err(problem) => self.problem(key, problem),
        }
    }

    fn problem(&mut self, key: &str, problem: &str) {
        // A key is anybody's text; quotes keep it on one line.
        self.problems.push(format!("{}: {}: {problem}", self.path.display(), key.escape_debug()));
    }
}

fn table(path: &Path) -> Result<Table, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > BYTES_MAX {
        return Err("it is larger than 1 MiB, so it is no file of settings".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().lines().next().unwrap_or("it can't be read").to_owned();
        format!("line {line}: {what}; settings are written as in TOML: name = \"value\"")
    })
}

/// A value as the flag would have it.
fn texts(arg: &Arg, value: &Value) -> Result<Vec<String>, &'static str> {
    let is_list = arg.get_value_delimiter().is_some();
    match value {
        Value::Array(items) if is_list => items.iter().map(item).collect(),
        Value::Array(_) => Err("it takes one value, not a list"),
        Value::String(text) if text.is_empty() => Err("it is empty: leave it out"),
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Integer(number) => Ok(vec![number.to_string()]),
        Value::Boolean(switch) => Ok(vec![switch.to_string()]),
        Value::Table(_) => Err(SECTION),
        Value::Float(_) | Value::Datetime(_) => Err("write a text in quotes, a whole number, true or false"),
    }
}

fn item(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) if !text.contains(',') => Ok(text.clone()),
        _ => Err("each item of the list is a text in quotes, without a comma"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cli;
    use clap::CommandFactory;

    fn read(text: &str) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
        let path = std::env::temp_dir().join(format!("{:x}.toml", crate_free_hash(text)));
        std::fs::write(&path, text).unwrap();
        let command = Cli::command();
        let file = SettingsFile::read(&path, command.find_subcommand("serve").unwrap());
        std::fs::remove_file(&path).unwrap();
        let start = format!("{}: ", path.display());
        let problems = file.problems.iter().map(|problem| problem.replace(&start, "")).collect();
        (file.values, problems)
    }

    fn crate_free_hash(text: &str) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = std::hash::DefaultHasher::new();
        (text, std::process::id()).hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn texts_numbers_switches_and_lists_are_what_a_flag_would_have() {
        let (values, problems) = read(
            "upstream = \"https://a.example\"\nmax-tools = 7\nmodel-unpinned = true\n\
             write-tools = [\"git__*\", \"*delete*\"]\nallowed-hosts = \"a,b\"\nallowed-origins = []\n",
        );
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(values["max-tools"], ["7"]);
        assert_eq!(values["model-unpinned"], ["true"]);
        assert_eq!(values["write-tools"], ["git__*", "*delete*"]);
        assert_eq!(values["allowed-hosts"], ["a,b"]);
        assert!(!values.contains_key("allowed-origins") && values.len() == 5);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_all_at_once_with_the_nearest_name() {
        let (values, problems) = read(
            "catalog_ttl = \"1m\"\nconfig = \"b.toml\"\nhelp = true\nupstream = \"\"\nlisten = [\"a\"]\n\
             max-tools = 1.5\nwrite-tools = [\"a,b\"]\n[limits]\nmax-pages = 1\n",
        );
        assert!(values.is_empty(), "{values:?}");
        insta::assert_snapshot!(problems.join("\n"), @r"
catalog_ttl: no setting has this name; did you mean catalog-ttl?
config: no setting has this name; keys are the flags of serve without --
help: no setting has this name; keys are the flags of serve without --
limits: it is a section: settings stand in none, and their names have no dots
listen: it takes one value, not a list
max-tools: write a text in quotes, a whole number, true or false
upstream: it is empty: leave it out
write-tools: each item of the list is a text in quotes, without a comma
");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        let (_, problems) = read("upstream = \"https://a.example\"\nlisten: nowhere\n");
        assert!(problems.len() == 1 && problems[0].contains("line 2"), "{problems:?}");
        let (_, problems) = read("max-tools = 1\nmax-tools = 2\n");
        assert!(problems.len() == 1 && problems[0].contains("line 2: duplicate"), "{problems:?}");
    }
}
