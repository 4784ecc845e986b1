//! `calve completions`.

use clap::{Command, CommandFactory};

use crate::cli::{Arguments, CompletionsArguments};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    // Into memory first: clap panics when it cannot write, and a reader may go away.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "calve", &mut script);
    output::result(&String::from_utf8_lossy(&script))
}

/// The command line without its hidden commands, which clap would complete too.
fn shown() -> Command {
    let whole = Arguments::command();
    Command::new("calve")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(whole.get_arguments().cloned())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
