//! pnpm: `node_modules/.pnpm/lock.yaml`, its copy of the lockfile that it has installed, against `pnpm-lock.yaml`.

use super::fit::{Fit, Judge};
use crate::directory::{Directory, Time};

pub(super) const WITNESS: &str = ".modules.yaml";

/// Written after every package is in its place.
const COPY: &str = ".pnpm/lock.yaml";

/// pnpm renames its copy into place, which modifies the directory a little later than the copy.
const RENAMES_WITHIN: Time = 1_000_000_000;

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().copied().unwrap_or_default();
    Box::new(|directory| judge(directory, wanted))
}

fn judge(directory: &Directory, wanted: &str) -> Fit {
    let Some(modules) = directory.read(WITNESS) else { return Fit::No };
    // A virtual store may be elsewhere.
    let (Some(end), Some(store)) = (directory.changed(COPY), directory.changed(".pnpm")) else { return Fit::Unsure };
    let Some(copy) = directory.read(COPY) else { return Fit::Unsure };
    let is_same = copy.lines().eq(wanted.lines());
    // A killed pnpm has added a version to the store, or has linked another one that was there already.
    let is_whole = store <= end + RENAMES_WITHIN && directory.is_settled(direct(wanted).chain(hoisted(&modules)), end);
    if !is_same || !is_whole {
        return Fit::No;
    }
    // It may also have begun deleting from the store, a package's files before those below. Programs write there, too.
    let is_settled = directory.directory(".pnpm").is_some_and(|store| {
        let names = store.names();
        let packages: Vec<String> = names.iter().filter_map(|name| package(name)).collect();
        store.is_settled(packages.iter().map(String::as_str), end)
    });
    if is_settled { Fit::Yes } else { Fit::Unsure }
}

/// Returns the directory of a package in the store: `@s/a` in `@s+a@1.0.0`.
fn package(version: &str) -> Option<String> {
    let end = 1 + version.get(1..)?.find('@')?;
    Some(format!("{version}/node_modules/{}", version[..end].replace('+', "/")))
}

/// Returns the names of the project's direct dependencies.
fn direct(lockfile: &str) -> impl Iterator<Item = &str> {
    let (start, indentation) = if lockfile.contains("\nimporters:") { ("  .:", "    ") } else { ("", "") };
    let lines = lockfile.lines().skip_while(move |line| *line != start).skip(1);
    let mut group = "";
    let lines = lines.map_while(move |line| line.strip_prefix(indentation).or_else(|| line.is_empty().then_some("")));
    lines.filter_map(move |line| match line.strip_prefix("  ") {
        None => {
            group = line;
            None
        }
        // Optional dependencies may be for other platforms.
        Some(name) if ["dependencies:", "devDependencies:"].contains(&group) && !name.starts_with(' ') => {
            Some(name.split_once(':')?.0.trim_matches('\''))
        }
        Some(_) => None,
    })
}

/// Returns the packages' places, unless they are links into the store. The file is YAML, since version 10 also JSON.
fn hoisted(modules: &str) -> impl Iterator<Item = &str> {
    let words = modules.lines().map(|line| line.trim().trim_start_matches("- ").trim_matches(['"', '\'', ',']));
    words.filter_map(|word| word.strip_prefix("node_modules/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_at_the_top_are_read() {
        let names = |text: &'static str| direct(text).collect::<Vec<_>>();
        let group = "dependencies:\n      a:\n        specifier: 1\n        version: 1.0.0\n    devDependencies:\n      '@s/b':\n        version: 1.0.0\n    \
            optionalDependencies:\n      c:\n        version: 1.0.0\n";
        let of_one = format!(
            "lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    {group}\n  packages/x:\n    {group}\npackages:\n\n  a@1.0.0:\n"
        );
        assert_eq!(names(of_one.leak()), ["a", "@s/b"]);
        assert_eq!(package("@s+a@1.0.0_b@1.0.0").unwrap(), "@s+a@1.0.0_b@1.0.0/node_modules/@s/a");
        assert_eq!(package("node_modules"), None);
        let old = "lockfileVersion: 5.4\n\nspecifiers:\n  a: ^1\n\ndependencies:\n  a: 1.0.0\n\ndevDependencies:\n  '@s/b': 1.0.0\n\npackages:\n\n  /a/1.0.0:\n    dev: false\n";
        assert_eq!(names(old), ["a", "@s/b"]);
        let yaml =
            "hoistedLocations:\n  a@1.0.0:\n    - node_modules/a\n    - packages/x/node_modules/a\nstoreDir: /x\n";
        assert_eq!(hoisted(yaml).collect::<Vec<_>>(), ["a"]);
        let json = "{\n  \"hoistedLocations\": {\n    \"@s/a@1.0.0\": [\n      \"node_modules/@s/a\",\n      \"node_modules/b/node_modules/@s/a\"\n    ]";
        assert_eq!(hoisted(json).collect::<Vec<_>>(), ["@s/a", "b/node_modules/@s/a"]);
    }
}
