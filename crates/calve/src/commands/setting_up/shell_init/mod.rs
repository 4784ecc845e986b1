use super::completions;
use crate::failure::Failure;
use crate::output;

/// For bash and zsh.
const POSIX: &str = include_str!("calve.sh");
const FISH: &str = include_str!("calve.fish");

pub(crate) fn run(shell: &str) -> Result<(), Failure> {
    let wrapper = if shell == "fish" { FISH } else { POSIX };
    let registration = completions::registration(shell)?.unwrap_or_default();
    let registration = String::from_utf8_lossy(&registration);
    // Before `compinit`, zsh cannot register completions.
    let registration = match shell {
        "zsh" => format!("if (( $+functions[compdef] )); then\n{}\nfi\n", registration.trim()),
        _ => registration.into_owned(),
    };
    output::result(&format!("{wrapper}\n{registration}"))
}
