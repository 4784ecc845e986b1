//! `calve env` and `calve exec`: a worktree's environment.

use std::path::Path;
use std::process::Command;

use calve_core::Shown;
use calve_git::environment::{Holder, Leases, Port, env_file_text, root_of};
use calve_git::escape::worktrees_of;
use calve_git::worktree::WorktreeInfo;
use calve_git::{Config, trust};
use calve_receipt::{EnvironmentReceipt, PortReceipt, path};

use crate::cli::env::{EnvArguments, EnvFormat, ExecArguments};
use crate::failure::{FAILED, Failure};
use crate::{home, output, sys};

/// As shells have it: there is no such program, or it cannot be run.
const NOT_FOUND: u8 = 127;

pub(crate) fn run(arguments: &EnvArguments) -> Result<(), Failure> {
    let root = root_of(&std::env::current_dir()?)?;
    let ports = leased(&root)?;
    if arguments.json {
        return output::json(&EnvironmentReceipt { path: path(&root), ports: receipts(&ports) });
    }
    if matches!(arguments.format, EnvFormat::Dotenv) {
        let text = if ports.is_empty() { String::new() } else { env_file_text(&ports) };
        return output::result(&text);
    }
    // A name has only letters, digits and `_`, and a number digits: nothing needs quotes.
    let line = |port: &Port| match arguments.format {
        EnvFormat::Fish => format!("set -gx {} {}\n", port.variable(), port.number),
        _ => format!("export {}={}\n", port.variable(), port.number),
    };
    output::result(&ports.iter().map(line).collect::<String>())
}

pub(crate) fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let ports = leased(&root_of(&std::env::current_dir()?)?)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    command.envs(ports.iter().map(|port| (port.variable(), port.number.to_string())));
    let error = sys::become_command(&mut command);
    Err(Failure::stated(
        NOT_FOUND,
        format!("cannot run `{}`: {error}", Shown(Path::new(&arguments.command[0]))),
        "check the name of the command after `--`",
    ))
}

/// The ports of the worktree with this root, as its configuration wants them; that of the main worktree, if this one is not trusted.
pub(crate) fn leased(root: &Path) -> Result<Vec<Port>, Failure> {
    let main = match trust::is_untrusted(root) {
        true => worktrees_of(root)?.others.into_iter().next(),
        false => None,
    };
    let wanted = Config::load(main.as_deref().unwrap_or(root))?.ports;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    Ok(leases()?.lease(&Holder::of(root)?, &wanted)?)
}

/// The ports that each of these worktrees has. Whoever asks wants to know more, so what goes wrong is only said.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<Port>> {
    let Ok(leases) = leases() else { return vec![Vec::new(); all.len()] };
    leases.of_worktrees(all).unwrap_or_else(|error| {
        output::say(&format!("warning: no ports are shown: {error}"));
        vec![Vec::new(); all.len()]
    })
}

fn leases() -> Result<Leases, Failure> {
    let home = home::directory().map_err(|why| {
        let text = format!("it is not known which worktree has which port: {why}");
        Failure::stated(FAILED, text, "set HOME, or CALVE_HOME to an absolute path")
    })?;
    Ok(Leases::at(home.join("ports")))
}

pub(crate) fn receipts(ports: &[Port]) -> Vec<PortReceipt> {
    let one = |port: &Port| PortReceipt { name: port.name.clone(), variable: port.variable(), port: port.number };
    ports.iter().map(one).collect()
}
