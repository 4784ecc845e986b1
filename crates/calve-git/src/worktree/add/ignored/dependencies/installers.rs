//! Each installer's directories, lockfile, proof of completion, command. docs/worktree-reference.md has the same table.

use super::fit::{Fit, Judge};
use super::python::lockfiles;
use super::{bun, npm, pnpm, python, vendored, yarn};
use crate::directory::Directory;

type Read = for<'t> fn(&[&'t str]) -> Judge<'t>;

pub(super) struct Installer {
    /// The first stands for the kind: one directory of a kind belongs to one lockfile.
    pub(super) directories: &'static [&'static str],
    pub(super) lockfile: &'static str,
    /// Files or directories, one of which it leaves in each directory that it fills. Empty: nothing shows that it ran.
    pub(super) witnesses: &'static [&'static str],
    pub(super) read: Read,
    /// The command to run beside the lockfile, whose name replaces `FILE`.
    pub(super) command: &'static str,
}

const MODULES: &[&str] = &["node_modules"];
const VENV: &[&str] = &[".venv", "venv"];
const PYVENV: &[&str] = &["pyvenv.cfg"];
const VENDOR: &[&str] = &["vendor"];

/// Every installer. In one directory, the first whose witness is there counts.
pub(super) static INSTALLERS: [Installer; 17] = [
    installer(MODULES, "npm-shrinkwrap.json", &[npm::WITNESS], npm::read, "npm ci"),
    installer(MODULES, "package-lock.json", &[npm::WITNESS], npm::read, "npm ci"),
    installer(MODULES, "pnpm-lock.yaml", &[pnpm::WITNESS], pnpm::read, "pnpm install --frozen-lockfile"),
    installer(MODULES, "yarn.lock", &[yarn::CLASSIC, yarn::BERRY], yarn::read, "yarn install --frozen-lockfile"),
    installer(MODULES, "bun.lock", &[], bun::read, "bun install --frozen-lockfile"),
    installer(MODULES, "bun.lockb", &[], |_| Box::new(|_| Fit::Unsure), "bun install --frozen-lockfile"),
    installer(VENV, "uv.lock", PYVENV, |files| python::read(files, lockfiles::uv), "uv sync"),
    installer(VENV, "poetry.lock", PYVENV, |files| python::read(files, lockfiles::poetry), "poetry install"),
    installer(VENV, "pdm.lock", PYVENV, |files| python::read(files, lockfiles::pdm), "pdm sync"),
    installer(VENV, "Pipfile.lock", PYVENV, |files| python::read(files, lockfiles::pipenv), "pipenv sync"),
    installer(VENV, "pylock.toml", PYVENV, |files| python::read(files, lockfiles::pylock), "uv pip sync pylock.toml"),
    installer(VENV, "requirements*.txt", PYVENV, python::requirements, "pip install -r FILE"),
    // Cargo checks each file itself, and builds those that differ.
    installer(&["target"], "Cargo.lock", &[], |_| Box::new(|_| Fit::Yes), "cargo build"),
    installer(VENDOR, "go.mod", vendored::GO, vendored::go, "go mod vendor"),
    installer(VENDOR, "composer.lock", vendored::COMPOSER, vendored::composer, "composer install"),
    installer(VENDOR, "Gemfile.lock", vendored::BUNDLER, vendored::bundler, "bundle install"),
    installer(VENDOR, "gems.locked", vendored::BUNDLER, vendored::bundler, "bundle install"),
];

const fn installer(
    directories: &'static [&'static str],
    lockfile: &'static str,
    witnesses: &'static [&'static str],
    read: Read,
    command: &'static str,
) -> Installer {
    Installer { directories, lockfile, witnesses, read, command }
}

impl Installer {
    pub(super) fn of_lockfile(name: &[u8]) -> Option<&'static Installer> {
        // Asked for every tracked file. The first letter rules out most.
        let mut likely = INSTALLERS.iter().filter(|installer| installer.lockfile.as_bytes().first() == name.first());
        likely.find(|installer| match installer.lockfile.split_once('*') {
            None => installer.lockfile.as_bytes() == name,
            Some((start, end)) => {
                let middle = name.strip_prefix(start.as_bytes()).and_then(|rest| rest.strip_suffix(end.as_bytes()));
                // The name is part of a command that people copy.
                middle.is_some_and(|text| text.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c)))
            }
        })
    }

    pub(super) fn kind_of(directory: &str) -> Option<&'static str> {
        INSTALLERS.iter().find(|installer| installer.directories.contains(&directory)).map(Installer::kind)
    }

    pub(super) fn kind(&self) -> &'static str {
        self.directories[0]
    }

    pub(super) fn directories(kind: &str) -> impl Iterator<Item = &'static str> {
        let of_kind = INSTALLERS.iter().find(|installer| installer.kind() == kind);
        of_kind.into_iter().flat_map(|installer| installer.directories.iter().copied())
    }

    pub(super) fn order(&self) -> Option<usize> {
        INSTALLERS.iter().position(|other| std::ptr::eq(other, self))
    }

    pub(super) fn has_finished(&self, directory: &Directory) -> bool {
        self.witnesses.is_empty() || self.witnesses.iter().any(|witness| directory.has(witness))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_same_table() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/worktree-reference.md");
        let Ok(text) = fs_err::read_to_string(page) else { return };
        for installer in &INSTALLERS {
            let lockfile = format!("`{}`", installer.lockfile);
            let row = text.lines().find(|line| line.starts_with('|') && line.contains(&lockfile));
            let row = row.unwrap_or_else(|| panic!("docs/worktree-reference.md has no row with {lockfile}"));
            let of_directories = installer.directories.iter().chain(installer.witnesses);
            for word in of_directories.chain(Some(&installer.command).filter(|_| installer.kind() != "target")) {
                assert!(row.contains(word), "docs/worktree-reference.md: the row of {lockfile} has no `{word}`");
            }
        }
    }

    #[test]
    fn lockfiles_are_known_by_their_names() {
        for (name, lockfile) in [
            ("package-lock.json", Some("package-lock.json")),
            ("requirements.txt", Some("requirements*.txt")),
            ("requirements-dev.txt", Some("requirements*.txt")),
            ("requirements", None),
            ("requirements;x.txt", None),
            ("go.mod", Some("go.mod")),
            ("package.json", None),
            ("", None),
        ] {
            assert_eq!(Installer::of_lockfile(name.as_bytes()).map(|one| one.lockfile), lockfile, "{name}");
        }
    }
}
