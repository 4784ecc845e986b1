//! The facts about a new worktree: one list for the terminal, the receipt and the answer to an agent.

use std::path::Path;

use calve_core::internal::ShownPath;
use calve_env::{OwnParts, Services};
use calve_git::worktree::Dependency;
use calve_receipt::{FactSubject, WorktreeFact};

use crate::commands::worktree::{env, services};
use crate::output;

pub(crate) const UNTRUSTED: &str = "this worktree is from a pull request and not trusted: it gets no secrets, and its hooks do not run; \
    `calve hook approve --trust PATH` trusts it later";

/// Users do not read more than fits on a screen beside their next step.
const MOST_LINES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Facts(pub(crate) Vec<WorktreeFact>);

impl Facts {
    pub(crate) fn add(&mut self, about: FactSubject, text: impl Into<String>) {
        let at = self.0.partition_point(|fact| fact.about <= about);
        self.0.insert(at, WorktreeFact { about, text: text.into() });
    }

    pub(crate) fn add_all(&mut self, about: FactSubject, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(about, text));
    }

    /// Adds the parts besides the `donor`'s files, such as ports and services.
    pub(crate) fn own_parts(&mut self, root: &Path, donor: &Path, own: &OwnParts<'_>) {
        if let Some(error) = &own.config_error {
            let text = format!("warning: no ports were leased and no data was cloned: {error}");
            self.add(FactSubject::Configuration, text);
        }
        let has_config = |root: &Path| root.join(calve_git::SHARED_CONFIG).symlink_metadata().is_ok();
        // An untrusted commit has the donor's.
        let has_parts = !own.ports.is_empty() || own.services.as_ref().is_some_and(|services| !services.is_empty());
        if !has_parts && !has_config(root) && has_config(donor) {
            let text = "this commit has no `.calve.toml`, so there are no ports and no services here; commit the file, or copy it";
            self.add(FactSubject::Configuration, text);
        }
        self.add_all(FactSubject::Ports, env::ports_line(&own.ports));
        if let Some(services) = &own.services {
            self.services(services);
        }
        self.add_all(FactSubject::EnvFiles, own.env_files.iter().map(env::file_line));
        self.add_all(FactSubject::OtherValues, env::other_values_lines(&own.other_values, &own.env_files));
    }

    fn services(&mut self, services: &Services<'_>) {
        self.add_all(FactSubject::Services, services::origins_line(services));
        self.add_all(FactSubject::Services, services::lacking_lines(services));
        let variables = services.variables().unwrap_or_default();
        let urls: Vec<String> = variables.into_iter().map(|(variable, url)| format!("{variable}={url}")).collect();
        let (plural, them) = if urls.len() == 1 { ("", "it") } else { ("s", "them") };
        if !urls.is_empty() {
            let text = format!("service{plural}: {} (`calve up` starts {them})", urls.join(", "));
            self.add(FactSubject::Services, text);
        }
    }

    /// Prints the lines; with `--quiet` only the warnings.
    pub(crate) fn say(&self) {
        match output::is_quiet() {
            // One by one: `--quiet` would suppress a joined line with a warning inside.
            true => self.0.iter().for_each(|fact| output::note(&fact.text)),
            false => self.lines().iter().for_each(|line| output::note(line)),
        }
    }

    /// Returns one line per fact, or if there are many, per subject. The least important share the last line.
    fn lines(&self) -> Vec<String> {
        if self.0.len() <= MOST_LINES {
            return self.0.iter().map(|fact| fact.text.clone()).collect();
        }
        let about_one = self.0.chunk_by(|one, next| one.about == next.about);
        let mut lines: Vec<String> =
            about_one.map(|facts| facts.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>().join("; ")).collect();
        if lines.len() > MOST_LINES {
            let last = lines.split_off(MOST_LINES - 1).join("; ");
            lines.push(last);
        }
        lines
    }
}

/// Lists dependencies that come from another worktree than the donor or do not fit their lockfile, one per lockfile.
pub(crate) fn dependency_lines(dependencies: &[Dependency], donor: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, Dependency { path, from, lockfile, command, .. }) in dependencies.iter().enumerate() {
        if dependencies[..at].iter().any(|other| other.lockfile == *lockfile) {
            continue;
        }
        if let Some(command) = command {
            let (path, lockfile) = (ShownPath(path), ShownPath(lockfile));
            lines.push(format!("warning: `{path}` does not fit `{lockfile}`: run `{command}`"));
        }
        if from != donor {
            lines.push(format!("`{}` comes from `{}`", ShownPath(path), ShownPath(from)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_there_is_takes_eight_lines_and_loses_nothing() {
        const ALL: [FactSubject; 14] = [
            FactSubject::Cloning,
            FactSubject::Left,
            FactSubject::Files,
            FactSubject::EnvFiles,
            FactSubject::Uncommitted,
            FactSubject::References,
            FactSubject::Warning,
            FactSubject::Branch,
            FactSubject::Configuration,
            FactSubject::OtherValues,
            FactSubject::Ports,
            FactSubject::Services,
            FactSubject::Dependencies,
            FactSubject::Trust,
        ];
        for number in 0..=ALL.len() {
            for times in 1..4 {
                let mut facts = Facts::default();
                let each = ALL[..number].iter().flat_map(|about| (0..times).map(move |at| (*about, at)));
                each.clone().for_each(|(about, at)| facts.add(about, format!("<{about:?} {at}>")));
                let lines = facts.lines();
                assert!(lines.len() <= MOST_LINES && (lines.len() == number * times || number * times > MOST_LINES));
                let said = lines.join("\n");
                assert!(each.clone().all(|(about, at)| said.contains(&format!("<{about:?} {at}>"))), "{said}");
                assert!(number < 3 || said.starts_with("<Files 0>"), "{said}");
            }
        }
    }
}
