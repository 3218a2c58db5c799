//! Reads the command line.

use super::{Cli, Command};
use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

impl Cli {
    /// Reads the command line, so that as much as can be is left to be told with everything else: negative numbers,
    /// flags that are given twice, and variables that are empty, which count as not set.
    ///
    /// # Errors
    /// What no setting can be made of, such as an unknown flag.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let command = Self::command().mut_subcommand("serve", |serve| {
            serve.args_override_self(true).mut_args(|arg| {
                let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
                let arg = if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg };
                if arg.get_id() != "help" { arg.allow_negative_numbers(true) } else { arg }
            })
        });
        let mut cli = Self::from_arg_matches(&command.try_get_matches_from(&args)?)?;
        if let Command::Serve(serve) = &mut cli.command {
            serve.repeated = repeated(&args);
        }
        Ok(cli)
    }
}

/// The flags that are given more than once.
fn repeated(args: &[OsString]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let flags = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix("--")?.split('=').next());
    let again: BTreeSet<&str> = flags.filter(|flag| !flag.is_empty() && !seen.insert(*flag)).collect();
    again.into_iter().map(|flag| format!("--{flag}")).collect()
}
