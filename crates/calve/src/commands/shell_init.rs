//! `calve shell-init`.

use clap::CommandFactory as _;
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};

use crate::cli::Arguments;
use crate::cli::shell_init::{ShellInitArguments, WithFunctions};
use crate::failure::Failure;
use crate::output;

/// The variable by which the completions ask calve for what can come next.
const COMPLETE: &str = "CALVE_COMPLETE";

/// Answers the completions of a shell, and ends there, when one asks.
pub(crate) fn complete() {
    CompleteEnv::with_factory(Arguments::command).var(COMPLETE).completer("calve").complete();
}

/// bash and zsh read the same one.
const POSIX: &str = include_str!("shell_init/calve.sh");
const FISH: &str = include_str!("shell_init/calve.fish");

pub(crate) fn run(arguments: &ShellInitArguments) -> Result<(), Failure> {
    let (wrapper, completer): (&str, &dyn EnvCompleter) = match arguments.shell {
        WithFunctions::Bash => (POSIX, &Bash),
        WithFunctions::Zsh => (POSIX, &Zsh),
        WithFunctions::Fish => (FISH, &Fish),
    };
    let mut registration = Vec::new();
    completer.write_registration(COMPLETE, "calve", "calve", "calve", &mut registration)?;
    let registration = String::from_utf8_lossy(&registration);
    // Before `compinit`, zsh has nothing to register with.
    let registration = match arguments.shell {
        WithFunctions::Zsh => format!("if (( $+functions[compdef] )); then\n{}\nfi\n", registration.trim()),
        _ => registration.into_owned(),
    };
    output::result(&format!("{wrapper}\n{registration}"))
}
