use std::ffi::OsString;
use std::process::Command;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_db::Address;
use calve_env::{Environment, RewrittenFiles, StartedServices, ports_of_worktrees};
use calve_git::configured_variables;
use calve_git::environment::{EnvFile, EnvFileOutcome, LeasedPort, OtherValues, env_file_text};
use calve_git::worktree::{Worktree, WorktreeInfo};
use calve_receipt::{EnvironmentReceipt, path};

use crate::cli::env::{EnvArguments, EnvFormat};
use crate::commands::worktree::services;
use crate::failure::Failure;
use crate::host::Program;
use crate::{output, real_path, sys};

pub(crate) fn run(arguments: &EnvArguments) -> Result<(), Failure> {
    let environment = Environment::find(&Program, &real_path::here()?)?;
    let root = &environment.root;
    // Files that get new ports keep the services' variables.
    let services = if arguments.renew { environment.services()? } else { environment.readable_services()? };
    let ports = if arguments.renew { renewed(&environment)? } else { environment.ports()? };
    services::say_without_data(&services)?;
    if arguments.renew && !ports.is_empty() {
        say_rewritten(&environment.rewrite_files(&Environment::variables(&ports, &services)?)?);
    }
    if arguments.json {
        return output::json(&EnvironmentReceipt { path: path(root), ports, services: services.receipts()? });
    }
    let variables = Environment::variables(&ports, &services)?;
    let [set, to, unset] = match arguments.format {
        EnvFormat::Shell(words) => words,
        EnvFormat::File(_) if variables.is_empty() => return Ok(()),
        EnvFormat::File(name) => return output::result(&env_file_text(name.as_ref(), &variables)),
    };
    // sh and fish need no quotes around a number. URLs contain none.
    let line = |(name, value): &(String, String)| match value.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{set}{name}{to}{value}\n"),
        false => format!("{set}{name}{to}'{value}'\n"),
    };
    // The shell may hold another worktree's values.
    let without = |name: String| format!("{unset}{name}\n");
    let has = |name: &String| variables.iter().any(|(variable, _)| variable == name);
    let missing = configured_variables([&**root]).into_iter().filter(|name| !has(name));
    output::result(&variables.iter().map(line).chain(missing.map(without)).collect::<String>())
}

pub(crate) fn exec(line: &[OsString], cancel: &CancelToken) -> Result<(), Failure> {
    let environment = Environment::find(&Program, &real_path::here()?)?;
    let StartedServices { ports, mut services, started, env_files } = environment.up(&[], cancel)?;
    if !started.is_empty() {
        let names: Vec<String> = started.iter().map(|name| format!("`{name}`")).collect();
        output::note(&format!("started {}", listed(&names)));
    }
    say_rewritten(&env_files);
    services::complete(&mut services)?;
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    for name in configured_variables([&*environment.root]) {
        command.env_remove(name);
    }
    let environment = Environment::of_command(&ports, &services)?;
    Address::set_environment(&environment, &mut command);
    Err(Failure::not_started(&line[0], sys::become_command(&mut command)))
}

fn renewed(environment: &Environment<'_>) -> Result<Vec<LeasedPort>, Failure> {
    if environment.config.ports.is_empty() {
        output::note("this worktree has no ports: `[ports]` in .calve.toml names them");
        return Ok(Vec::new());
    }
    let (former, ports) = environment.renew_ports()?;
    for port in &ports {
        let was = former.iter().find(|former| former.name == port.name);
        output::note(&match was {
            Some(was) => format!("{} changes from {} to {}", port.variable, was.number, port.number),
            None => format!("{} is {}", port.variable, port.number),
        });
    }
    output::note("restart the programs of this worktree that use them");
    Ok(ports)
}

/// Reports the rewritten files, and warns of files that Calve did not make, or that were edited.
pub(crate) fn say_rewritten(rewritten: &RewrittenFiles) {
    rewritten.files.iter().for_each(|file| output::note(&file_line(file)));
    for OtherValues { file, variables, .. } in &rewritten.other_values {
        let file = ShownPath(file);
        output::warn(&format!(
            "`{file}` still has a different {}: Calve did not make it, or it was edited, so it was left alone",
            listed(variables)
        ));
    }
    if let Some(error) = &rewritten.failure {
        output::warn(&error.to_string());
    }
}

/// Joins names, as in "A, B and C".
fn listed(variables: &[String]) -> String {
    match variables.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => variables.concat(),
    }
}

pub(crate) fn ports_line(ports: &[LeasedPort]) -> Option<String> {
    let words: Vec<String> = ports.iter().map(|port| format!("{}={}", port.variable, port.number)).collect();
    (!words.is_empty()).then(|| format!("ports: {} (`calve env` prints them)", words.join(", ")))
}

pub(crate) fn file_line(EnvFile { path, outcome, ignored }: &EnvFile) -> String {
    let file = ShownPath(path);
    match outcome {
        EnvFileOutcome::Written if *ignored == Some(false) => {
            format!("warning: wrote the variables to `{file}`, which git does not ignore: add it to .gitignore")
        }
        EnvFileOutcome::Written => format!("wrote the variables to `{file}`"),
        EnvFileOutcome::Tracked => format!("warning: git tracks `{file}`, so it was left alone"),
        EnvFileOutcome::Foreign => format!(
            "warning: Calve did not make `{file}`, or it was edited, so it was left alone; `calve env --format dotenv` prints the variables"
        ),
        EnvFileOutcome::NotIgnored => format!("warning: left out `{file}`: git does not ignore it here"),
        EnvFileOutcome::NoDirectory => format!("warning: left out `{file}`: there is no directory for it"),
    }
}

/// Warns of files with another worktree's values. `written` includes the file with this worktree's.
pub(crate) fn other_values_lines(found: &[OtherValues], written: &[EnvFile]) -> Vec<String> {
    let written = written.iter().find(|file| file.outcome == EnvFileOutcome::Written).map(|file| &file.path);
    let line = |OtherValues { file, variables, .. }: &OtherValues| {
        let file = ShownPath(file);
        let variables = listed(variables);
        match written {
            Some(written) => format!(
                "warning: `{file}` sets {variables} too: start programs that do not read `{}` with `calve exec`",
                ShownPath(written)
            ),
            None => format!(
                "warning: `{file}` sets {variables}: programs that read it do not use this worktree's; write `.env.local`, or start them with `calve exec`"
            ),
        }
    };
    found.iter().map(line).collect()
}

/// Returns the ports of each worktree. An error is only a warning, because the callers show more than ports.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<LeasedPort>> {
    ports_of_worktrees(&Program, all.iter().map(|listed| &listed.worktree)).unwrap_or_else(|error| {
        output::warn(&format!("no ports are shown: {error}"));
        vec![Vec::new(); all.len()]
    })
}

/// Returns the ports of a worktree being removed. An error must not prevent the removal.
pub(crate) fn of_worktree(worktree: &Worktree) -> Vec<LeasedPort> {
    ports_of_worktrees(&Program, [worktree]).ok().and_then(|mut all| all.pop()).unwrap_or_default()
}
