//! Writes the man pages and the shell completions that packages hold, from the flags themselves:
//! `cargo run --example man_and_completions -- FOLDER`.
//!
//! They are files beside the program and not a subcommand of it, so that the program carries none of what makes them.

use clap::{Command, CommandFactory};
use clap_complete::{Generator, Shell};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolsearch_proxy::config::Cli;

const NAME: &str = "toolsearch-proxy";

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("man_and_completions: give the folder to write to");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("man_and_completions: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut without_environment(Cli::command()), NAME, &mut script);
        let mut script = String::from_utf8(script).map_err(io::Error::other)?;
        if shell == Shell::Bash {
            // The generator joins the two halves of our name in two ways, so that no subcommand would be found.
            script = script.replace("toolsearch__subcmd__proxy", "toolsearch__proxy");
        }
        std::fs::write(folder.join(shell.file_name(NAME)), script)?;
    }
    let mut command = without_environment(Cli::command()).disable_help_subcommand(true);
    command.build();
    pages(&command, folder)
}

/// A page for the command and one for each below it: toolsearch-proxy-serve(1).
fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.clone()).render(&mut page)?;
    std::fs::write(folder.join(format!("{name}.1")), page)?;
    command.get_subcommands().try_for_each(|subcommand| pages(subcommand, folder))
}

/// What is set where this runs is no default of anybody else.
fn without_environment(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_environment)
}
