//! `docs/configuration.md`, made from the flags themselves.

use super::{Cli, Switch};
use clap::{Arg, CommandFactory};
use std::fmt::Write as _;

/// The page as Markdown. A test compares it with the file.
pub fn configuration_page() -> String {
    let words = |pairs: &[[&str; 2]]| -> Vec<String> {
        pairs.iter().flatten().map(|word| format!("`{word}`")).collect()
    };
    let (usual, other) = Switch::WORDS.split_at(1);
    let (usual, other) = (words(usual).join(" or "), words(other).join(", "));
    let mut page = format!(
        "# Configuration\n\n<!-- Made from the flags: run `mise run docs:config` after a change. -->\n\n\
         `toolsearch-proxy serve` takes each setting as a flag, as an environment variable or as a key of a TOML file\n\
         (`--config FILE`): the flag wins over the variable, the variable over the file, the file over the default. Times\n\
         are written as `90s`, `10m` or seconds, sizes as `4KiB`, `16MiB` or bytes. Settings that can't be used are told\n\
         all at once, before a port is bound, and the exit code is then 2. A variable that starts with `TOOLSEARCH_` and\n\
         belongs to no setting is such a mistake too, and so is a key that no setting has; an empty variable counts as\n\
         not set. Switches take {usual}, also {other}, in a variable or behind a `=`.\n\n\
         A key of the file is the flag without its dashes in front. Lists are lists, switches are `true` or `false`:\n\n\
         ```toml\n\
         upstream = \"https://gateway.example/mcp/all\"\n\
         listen = \"0.0.0.0:8080\"\n\
         catalog-ttl = \"5m\"\n\
         write-tools = [\"git__push*\", \"*delete*\"]\n\
         ```\n\n\
         `toolsearch-proxy config check` takes the flags of `serve`, checks all settings as `serve` would, and prints\n\
         each with where it came from. What it prints is itself such a file.\n",
    );
    let command = Cli::command();
    let serve = command.find_subcommand("serve").expect("serve is a subcommand");
    let mut heading = "";
    for arg in serve.get_arguments().filter(|arg| arg.get_id() != "help") {
        let own_heading = arg.get_help_heading().unwrap_or("Other");
        if own_heading != heading {
            heading = own_heading;
            write!(page, "\n## {heading}\n").expect("a string takes any text");
        }
        add(&mut page, arg);
    }
    page
}

fn add(page: &mut String, arg: &Arg) {
    let flag = arg.get_long().expect("every setting is a long flag");
    let is_switch = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    let value = arg.get_value_names().filter(|_| !is_switch);
    let value = value.map_or(String::new(), |names| format!(" {}", names[0]));
    let env = arg.get_env().and_then(|env| env.to_str()).unwrap_or_default();
    let defaults: Vec<_> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('*', "\\*");
    write!(page, "\n### `--{flag}{value}`\n\n{help}.\n\nVariable `{env}`").expect("a string takes any text");
    if !defaults.is_empty() {
        write!(page, ", default `{}`", defaults.join(",")).expect("a string takes any text");
    }
    page.push_str(".\n");
}
