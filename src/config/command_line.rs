//! Reads the command line, and with it the variables and the settings file: a flag wins over a variable, a variable
//! over the file, the file over the default.

use super::file::SettingsFile;
use super::origin::{Effective, Settings};
use super::{Cli, Command, ConfigCommand};
use clap::builder::Resettable;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The subcommands that take a settings file, with the names that lead to them.
const WITH_FILE: [&[&str]; 3] = [&["serve"], &["config", "check"], &["healthcheck"]];

impl Cli {
    /// Reads the command line, so that as much as can be is left to be told with everything else: negative numbers,
    /// flags that are given twice, a settings file that can't be used, and variables that are empty, which count as
    /// not set.
    ///
    /// # Errors
    /// What no setting can be made of, such as an unknown flag.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let mut command = Self::command();
        for path in WITH_FILE {
            command = change(command, path, lenient);
        }
        let mut matches = command.clone().try_get_matches_from(&args)?;
        let Some((path, chosen)) = chosen(&matches) else { return Self::from_arg_matches(&matches) };
        let file = chosen.get_one::<PathBuf>("config").map(|path| {
            let serve = command.find_subcommand("serve").expect("serve is a subcommand");
            SettingsFile::read(path, serve)
        });
        if let Some(file) = &file {
            command = change(command, path, |subcommand| file.apply(subcommand));
            matches = command.clone().try_get_matches_from(&args)?;
        }
        let (_, chosen) = self::chosen(&matches).expect("the arguments are the same as before");
        let subcommand = path.iter().try_fold(&command, |command, name| command.find_subcommand(name));
        let arguments = subcommand.expect("the path is one of ours").get_arguments();
        let effective = arguments.filter_map(|arg| Effective::of(arg, chosen, file.as_ref())).collect();
        let settings = Settings {
            effective,
            repeated: repeated(&args),
            is_file_unread: file.as_ref().is_some_and(|file| file.is_unread),
            problems: file.map(|file| file.problems).unwrap_or_default(),
        };
        let mut cli = Self::from_arg_matches(&matches)?;
        match &mut cli.command {
            Command::Serve(serve) | Command::Config { command: ConfigCommand::Check(serve) } => {
                serve.settings = settings;
            }
            Command::Healthcheck(healthcheck) => healthcheck.settings = settings,
            _ => {}
        }
        Ok(cli)
    }
}

/// The chosen subcommand, where it is one that takes a settings file.
fn chosen(matches: &ArgMatches) -> Option<(&'static [&'static str], &ArgMatches)> {
    WITH_FILE.into_iter().find_map(|path| {
        let chosen = path.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name));
        Some((path, chosen?))
    })
}

/// The command with one of its subcommands changed.
fn change(
    command: clap::Command,
    path: &[&'static str],
    how: impl FnOnce(clap::Command) -> clap::Command,
) -> clap::Command {
    match path {
        [] => how(command),
        [first, rest @ ..] => command.mut_subcommand(first, |subcommand| change(subcommand, rest, how)),
    }
}

fn lenient(subcommand: clap::Command) -> clap::Command {
    subcommand.args_override_self(true).mut_args(|arg| {
        let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
        let arg = if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg };
        if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg }
    })
}

/// The flags that are given more than once.
fn repeated(args: &[OsString]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let flags = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("--")?.split('=').next());
    let again: BTreeSet<&str> = flags.filter(|flag| !flag.is_empty() && !seen.insert(*flag)).collect();
    again.into_iter().map(|flag| format!("--{flag}")).collect()
}
