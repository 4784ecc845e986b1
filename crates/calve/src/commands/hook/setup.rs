//! `calve hook worktree-setup`.

use calve_core::{CancelToken, ShownPath};
use calve_git::Config;
use calve_git::environment::{Keeper, follow_env_file, forget_data_source, other_values, remove_own_env_files};
use calve_git::escape::{Action, worktrees_of};
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{self, AddOptions, FillReport, LeftBehindReason};
use calve_receipt::human;

use crate::cli::hook::WorktreeSetupArguments;
use crate::commands::ahead::{DonorRule, EarlyClones};
use crate::commands::env;
use crate::commands::service_template::Consent;
use crate::commands::services::Services;
use crate::commands::worktree::add::lines::{self, UNTRUSTED};
use crate::commands::worktree::dependencies;
use crate::failure::Failure;
use crate::{clone_receipt, consent, home, output};

pub(crate) fn run(arguments: &WorktreeSetupArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = AddOptions::default();
    options.start = std::env::current_dir()?;
    options.from.clone_from(&arguments.from);
    options.clone.spares = home::spares();
    options.clone.cancel = cancel.clone();
    let filled = worktree::fill(&options)?;
    let repaired = filled.audit.findings.iter().filter(|found| found.action != Action::Reported).count();
    let carried = human::entries(filled.carried.len() as u64);
    output::say(&format!(
        "carried {carried} that git ignores from `{}`; {repaired} repaired in them",
        ShownPath(&filled.donor)
    ));
    if filled.provenance.is_untrusted() {
        output::say(UNTRUSTED);
    }
    for left in filled.left.iter().filter(|left| left.reason == LeftBehindReason::BehindLink) {
        output::say(&format!("warning: `{}` was not carried: {}", ShownPath(&left.path), left.reason.text()));
    }
    dependencies::say(&filled.dependencies, &filled.donor);
    clone_receipt::changed(&filled.changed).iter().for_each(|line| output::say(line));
    let variables = environment(&filled, cancel)?;
    hook(&filled, variables, cancel)?;
    worktree::finish_for_agent(&filled.path, &arguments.maker)?;
    output::path(&filled.path)
}

/// Gives the worktree its ports and data, and writes them to the files that had those of the donor.
fn environment(filled: &FillReport, cancel: &CancelToken) -> Result<Vec<(String, String)>, Failure> {
    let root = &filled.path;
    let donors = &filled.env_files;
    remove_own_env_files(root, donors)?;
    let config = Config::of_worktree(root)?;
    let ports = env::leased(root, &config)?;
    let mut services = Services::of(root, config.services)?;
    let donor = if filled.provenance.is_untrusted() { None } else { Keeper::of(&filled.donor)? };
    services.make(root, donor.as_ref(), DonorRule::SameTemplate, EarlyClones::default(), Consent::Approved, cancel)?;
    lines::say_origins(&services);
    lines::say_configuration(root, &filled.donor);
    services.failed().map_or(Ok(()), Err)?;
    forget_data_source(root)?;
    let variables = env::variables(&ports, &services)?;
    for (name, value) in &variables {
        output::say(&format!("{name}={value}"));
    }
    if !variables.is_empty() {
        let mut written = Vec::new();
        for path in env::followed(donors, config.env_file) {
            let outcome = follow_env_file(root, &filled.donor, &path, &variables)?;
            env::say_file(&path, outcome);
            written.push((path, outcome));
        }
        env::say_other_values(&other_values(root, &filled.carried, &variables), &written);
    }
    Ok(variables)
}

/// Runs the project's hook if it was approved. Nobody is there to be asked.
fn hook(filled: &FillReport, variables: Vec<(String, String)>, cancel: &CancelToken) -> Result<(), Failure> {
    let hooks =
        if filled.provenance.is_untrusted() { Default::default() } else { Config::of_worktree(&filled.path)?.hooks };
    let Some(text) = hooks.post_add else { return Ok(()) };
    let repository = repository_of(&filled.path)?;
    if !consent::approvals()?.has(&repository, Hook::PostAdd, &text).map_err(consent::failed)? {
        output::say("warning: the project's post-add hook did not run: it is not approved (`calve hook approve`)");
        return Ok(());
    }
    let mut surroundings = HookEnvironment::of(&filled.path);
    surroundings.main = worktrees_of(&filled.path)?.others.into_iter().next();
    surroundings.source = Some(filled.donor.clone());
    surroundings.variables = variables;
    consent::run(Hook::PostAdd, &text, &surroundings, cancel)
}
