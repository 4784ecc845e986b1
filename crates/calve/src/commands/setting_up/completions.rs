use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::cli::Arguments;
use crate::failure::{Failure, USAGE};
use crate::output;

/// Set by a dynamic script to query the program.
const VARIABLE: &str = "CALVE_COMPLETE";

pub(crate) fn run(shell: Shell, dynamic: bool) -> Result<(), Failure> {
    // Generate in memory: clap panics on write errors, and the reader may go away.
    let mut script = Vec::new();
    if dynamic {
        script = registration(&shell.to_string())?.ok_or_else(|| {
            let text = format!("there is no dynamic script for `{shell}`");
            Failure::stated(USAGE, text, "take the script without `--dynamic`")
        })?;
    } else {
        clap_complete::generate(shell, &mut shown(), "calve", &mut script);
    }
    output::result(&String::from_utf8_lossy(&script))
}

/// Returns the script with which `shell` queries the program, or `None` if clap has none.
pub(crate) fn registration(shell: &str) -> Result<Option<Vec<u8>>, Failure> {
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else { return Ok(None) };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "calve", "calve", "calve", &mut script)?;
    Ok(Some(script))
}

/// Answers a shell's completion query, and returns the exit code. `None` if there is no query.
pub(crate) fn answer() -> Option<ExitCode> {
    let words = std::env::var_os(VARIABLE).map(|_| std::env::args_os())?;
    let here = std::env::current_dir().ok();
    match CompleteEnv::with_factory(shown).var(VARIABLE).bin("calve").try_complete(words, here.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        // The user is typing a line: print nothing rather than a message.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Returns the command line without hidden commands, which clap would complete too.
fn shown() -> Command {
    let whole = Arguments::command();
    Command::new("calve")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(whole.get_arguments().cloned())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
