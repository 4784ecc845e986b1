use super::completions;
use crate::cli::setting_up::WithFunctions;
use crate::failure::Failure;
use crate::output;

/// For bash and zsh.
const POSIX: &str = include_str!("calve.sh");
const FISH: &str = include_str!("calve.fish");

pub(crate) fn run(shell: WithFunctions) -> Result<(), Failure> {
    let (wrapper, name) = match shell {
        WithFunctions::Bash => (POSIX, "bash"),
        WithFunctions::Zsh => (POSIX, "zsh"),
        WithFunctions::Fish => (FISH, "fish"),
    };
    let registration = completions::registration(name)?.unwrap_or_default();
    let registration = String::from_utf8_lossy(&registration);
    // Before `compinit`, zsh cannot register completions.
    let registration = match shell {
        WithFunctions::Zsh => format!("if (( $+functions[compdef] )); then\n{}\nfi\n", registration.trim()),
        _ => registration.into_owned(),
    };
    output::result(&format!("{wrapper}\n{registration}"))
}
