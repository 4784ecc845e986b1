//! `calve env` and `calve exec`: a worktree's environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_core::{CancelToken, ShownPath};
use calve_git::Config;
use calve_git::environment::{
    EnvFile, Holder, Leases, OtherValues, Port, env_file_text, is_own_env_file, other_values, root_of, untracked_files,
    write_env_file,
};
use calve_git::worktree::{Worktree, WorktreeInfo};
use calve_receipt::{EnvironmentReceipt, OtherValuesReceipt, PortReceipt, path};

use crate::cli::env::{EnvArguments, EnvFormat, ExecArguments};
use crate::commands::services::Services;
use crate::failure::{FAILED, Failure};
use crate::{home, output, sys};

pub(crate) fn run(arguments: &EnvArguments) -> Result<(), Failure> {
    let root = root_of(&std::env::current_dir()?)?;
    let config = Config::of_worktree(&root)?;
    let ports = if arguments.renew { renewed(&root, &config)? } else { leased(&root, &config)? };
    let services = Services::of(&root, config.services)?;
    services.say_without_data(&root)?;
    if arguments.renew && !ports.is_empty() {
        rewrite_files(&root, config.env_file, &variables(&ports, &services)?)?;
    }
    if arguments.json {
        let (ports, services) = (receipts(&ports), services.receipts()?);
        return output::json(&EnvironmentReceipt { path: path(&root), ports, services });
    }
    let variables = variables(&ports, &services)?;
    let file = match arguments.format {
        EnvFormat::Dotenv => Some(".env"),
        EnvFormat::Mise => Some("mise.toml"),
        EnvFormat::Sh | EnvFormat::Fish => None,
    };
    if let Some(file) = file {
        let text = if variables.is_empty() { String::new() } else { env_file_text(file.as_ref(), &variables) };
        return output::result(&text);
    }
    let line = |(name, value): &(String, String)| match arguments.format {
        EnvFormat::Fish => format!("set -gx {name} {}\n", quoted(value)),
        _ => format!("export {name}={}\n", quoted(value)),
    };
    output::result(&variables.iter().map(line).collect::<String>())
}

/// Quotes a value for sh and fish. A number stays as it is; a URL has no quotes in it.
fn quoted(value: &str) -> String {
    if value.bytes().all(|byte| byte.is_ascii_digit()) { value.to_owned() } else { format!("'{value}'") }
}

pub(crate) fn exec(arguments: &ExecArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let root = root_of(&std::env::current_dir()?)?;
    let config = Config::of_worktree(&root)?;
    let ports = leased(&root, &config)?;
    let mut services = Services::of(&root, config.services)?;
    services.start(&root, cancel)?;
    services.say_lacking();
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).envs(variables(&ports, &services)?);
    Err(Failure::not_started(&arguments.command[0], sys::become_command(&mut command)))
}

/// Leases the ports that the configuration wants for the worktree with this root.
pub(crate) fn leased(root: &Path, config: &Config) -> Result<Vec<Port>, Failure> {
    if config.ports.is_empty() {
        return Ok(Vec::new());
    }
    Ok(leases()?.lease(&Holder::of(root)?, &config.ports)?)
}

/// Leases the ports of a worktree that was just made.
pub(crate) fn leased_anew(root: &Path, config: &Config) -> Result<Vec<Port>, Failure> {
    if config.ports.is_empty() {
        return Ok(Vec::new());
    }
    Ok(leases()?.lease_anew(&Holder::of(root)?, &config.ports)?)
}

/// Gives the worktree other ports, and says which, and what to restart.
fn renewed(root: &Path, config: &Config) -> Result<Vec<Port>, Failure> {
    if config.ports.is_empty() {
        output::say("this worktree has no ports: `[ports]` in .calve.toml names them");
        return Ok(Vec::new());
    }
    let (former, ports) = leases()?.renew(&Holder::of(root)?, &config.ports)?;
    for port in &ports {
        let was = former.iter().find(|former| former.name == port.name);
        output::say(&match was {
            Some(was) => format!("{} changes from {} to {}", port.variable(), was.number, port.number),
            None => format!("{} is {}", port.variable(), port.number),
        });
    }
    output::say("restart the programs of this worktree that use them");
    Ok(ports)
}

/// Writes the variables to the files of the worktree that have former ones. Those that Calve did not make, or that were edited, are only
/// named.
fn rewrite_files(root: &Path, configured: Option<PathBuf>, variables: &[(String, String)]) -> Result<(), Failure> {
    let files = untracked_files(root, configured)?;
    for file in files.iter().filter(|file| is_own_env_file(root, file)) {
        say_file(file, write_env_file(root, file, variables)?);
    }
    for OtherValues { file, variables, .. } in other_values(root, &files, variables) {
        let file = ShownPath(&file);
        output::say(&format!(
            "warning: `{file}` still has another {}: Calve did not make it, or it was edited, so it was left alone",
            listed(&variables)
        ));
    }
    Ok(())
}

/// Lists the names of variables, as in "A, B and C".
fn listed(variables: &[String]) -> String {
    match variables.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => variables.concat(),
    }
}

/// Returns those of the wanted ports that the worktree has already.
pub(crate) fn held(root: &Path, config: &Config) -> Result<Vec<Port>, Failure> {
    if config.ports.is_empty() {
        return Ok(Vec::new());
    }
    Ok(leases()?.held(&Holder::of(root)?, &config.ports)?)
}

/// Returns all variables of a worktree: those of its ports and those of its services.
pub(crate) fn variables(ports: &[Port], services: &Services) -> Result<Vec<(String, String)>, Failure> {
    let mut all: Vec<_> = ports.iter().map(|port| (port.variable(), port.number.to_string())).collect();
    all.extend(services.variables()?);
    Ok(all)
}

pub(crate) fn say_ports(ports: &[Port]) {
    let words: Vec<String> = ports.iter().map(|port| format!("{}={}", port.variable(), port.number)).collect();
    if !words.is_empty() {
        output::say(&format!("ports: {} (`calve env` prints them)", words.join(", ")));
    }
}

/// Says what happened to an env file.
pub(crate) fn say_file(file: &Path, outcome: EnvFile) {
    let file = ShownPath(file);
    output::say(&match outcome {
        EnvFile::Written => format!("wrote the variables to `{file}`"),
        EnvFile::WrittenUnignored => {
            format!("wrote the variables to `{file}`, which git does not ignore: add it to .gitignore")
        }
        EnvFile::Tracked => format!("warning: git tracks `{file}`, so it was left alone"),
        EnvFile::Foreign => format!(
            "warning: Calve did not make `{file}`, or it was edited, so it was left alone; `calve env --format dotenv` prints the variables"
        ),
        EnvFile::NotIgnored => format!("left out `{file}`: git does not ignore it here"),
        EnvFile::NoDirectory => format!("left out `{file}`: there is no directory for it"),
    });
}

/// Lists the files that get the variables without being asked for: those of the donor that Calve made, and the one that the configuration names.
pub(crate) fn followed(of_donor: &[PathBuf], configured: Option<PathBuf>) -> Vec<PathBuf> {
    let configured = configured.filter(|path| !of_donor.contains(path));
    of_donor.iter().cloned().chain(configured).collect()
}

/// Says which files have the values of another worktree. `written` are those that have this one's.
pub(crate) fn say_other_values(found: &[OtherValues], written: &[(PathBuf, EnvFile)]) {
    let is_written = |outcome| matches!(outcome, EnvFile::Written | EnvFile::WrittenUnignored);
    let written = written.iter().find(|(_, outcome)| is_written(*outcome)).map(|(file, _)| file);
    for OtherValues { file, variables, .. } in found {
        let file = ShownPath(file);
        let variables = listed(variables);
        output::say(&match written {
            Some(written) => format!(
                "`{file}` sets {variables} too: start programs that do not read `{}` with `calve exec`",
                ShownPath(written)
            ),
            None => format!(
                "`{file}` sets {variables}: programs that read it do not use this worktree's; write `.env.local`, or start them with `calve exec`"
            ),
        });
    }
}

pub(crate) fn other_values_receipts(found: &[OtherValues]) -> Vec<OtherValuesReceipt> {
    let one = |one: &OtherValues| OtherValuesReceipt { path: path(&one.file), variables: one.variables.clone() };
    found.iter().map(one).collect()
}

/// Returns the ports of each of these worktrees. An error is only a warning, because the callers show more than ports.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<Port>> {
    let Ok(leases) = leases() else { return vec![Vec::new(); all.len()] };
    leases.of_worktrees(all.iter().map(|listed| &listed.worktree)).unwrap_or_else(|error| {
        output::say(&format!("warning: no ports are shown: {error}"));
        vec![Vec::new(); all.len()]
    })
}

/// Returns the ports of a worktree that goes. Faults of theirs must not keep it.
pub(crate) fn of_worktree(worktree: &Worktree) -> Vec<Port> {
    let found = leases().ok().and_then(|leases| leases.of_worktrees([worktree]).ok()?.pop());
    found.unwrap_or_default()
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
