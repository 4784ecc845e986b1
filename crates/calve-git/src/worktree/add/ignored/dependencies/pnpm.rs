//! pnpm: `node_modules/.pnpm/lock.yaml`, its copy of the lockfile that it has installed, against `pnpm-lock.yaml`.

use std::collections::HashSet;

use super::fit::{Fit, Judge};
use super::npm::is_installed_at;
use crate::directory::{Directory, Time};

pub(super) const WITNESS: &str = ".modules.yaml";

/// Written after every package is in its place.
const COPY: &str = ".pnpm/lock.yaml";

/// pnpm renames its copy into place, which modifies the directory a little later than the copy.
const RENAMES_WITHIN: Time = 1_000_000_000;

pub(super) fn read<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().copied().unwrap_or_default();
    let direct = direct(wanted);
    Box::new(move |directory| judge(directory, wanted, &direct))
}

fn judge(directory: &Directory, wanted: &str, direct: &[(String, bool)]) -> Fit {
    let Some(modules) = directory.read(WITNESS) else { return Fit::No };
    // A virtual store may be elsewhere.
    let (Some(end), Some(store)) = (directory.changed(COPY), directory.changed(".pnpm")) else { return Fit::Unsure };
    let (Some(copy), Some(workspace)) = (directory.read(COPY), directory.above()) else { return Fit::Unsure };
    let is_same = copy.lines().eq(wanted.lines());
    // Without links, `hoistedLocations` has what is not at the root.
    let is_linked = !modules.contains("hoistedLocations");
    // pnpm's copy also has projects without a directory. `dedupe-direct-deps` leaves out what the root has, too.
    let is_needed = |(place, is_shared): &&(String, bool)| match place.split_once("/node_modules/") {
        None => true,
        Some((project, _)) => is_linked && workspace.has(project) && (!is_shared || workspace.has(place)),
    };
    let direct = direct.iter().filter(is_needed).map(|(place, _)| &**place);
    // A killed pnpm has added a version to the store, or has linked another one that was there already.
    let is_whole = store <= end + RENAMES_WITHIN && workspace.is_settled(direct.chain(hoisted(&modules)), end);
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

/// Returns the places of all projects' direct dependencies, each with whether the root has the same one.
fn direct(lockfile: &str) -> Vec<(String, bool)> {
    const IMPORTERS: &str = "importers:";
    let outer = if lockfile.lines().any(|line| line == IMPORTERS) { 4 } else { 0 };
    let lines = lockfile.lines().skip_while(|line| outer > 0 && *line != IMPORTERS).skip(1);
    let (mut project, mut group, mut all) = (".", "", Vec::new());
    for line in lines.take_while(|line| outer == 0 || line.is_empty() || line.starts_with(' ')) {
        let text = line.trim_start();
        let Some((key, value)) = text.split_once(':') else { continue };
        let key = key.trim_matches('\'');
        // Each project writes the same link in its own way.
        let version = if value.starts_with(" link:") { "" } else { value };
        match line.len() - text.len() + 4 - outer {
            2 => project = key,
            4 => group = key,
            // Optional dependencies may be for other platforms.
            _ if !["dependencies", "devDependencies"].contains(&group) => {}
            6 => all.push((project, key, version)),
            8 if key == "version" => all.last_mut().into_iter().for_each(|last| last.2 = version),
            _ => {}
        }
    }
    let of_root: HashSet<_> = all.iter().filter(|one| one.0 == ".").map(|one| (one.1, one.2)).collect();
    let place = |project, name| format!("{project}/node_modules/{name}").trim_start_matches("./").to_owned();
    let within = all.iter().filter(|one| !one.0.starts_with("../"));
    within.map(|(project, name, version)| (place(project, name), of_root.contains(&(name, version)))).collect()
}

/// Returns the packages' places, unless they are links into the store. The file is YAML, since version 10 also JSON.
fn hoisted(modules: &str) -> impl Iterator<Item = &str> {
    let words = modules.lines().map(|line| line.trim().trim_start_matches("- ").trim_matches(['"', '\'', ',']));
    words.filter(|word| is_installed_at(word) && !word.contains(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direct_packages_are_read() {
        let places = |text: &str| {
            let all = direct(text).into_iter().map(|(place, is_shared)| place + if is_shared { "" } else { "!" });
            all.collect::<Vec<_>>()
        };
        let group = |version: u32| {
            format!(
                "dependencies:\n      a:\n        specifier: 1\n        version: {version}.0.0\n    devDependencies:\n      '@s/b':\n        \
                version: 1.0.0\n    optionalDependencies:\n      c:\n        version: 3.0.0\n"
            )
        };
        let (one, two) = (group(1), group(2));
        let several = format!(
            "lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    {one}\n  ../y:\n    {two}\n  packages/w: {{}}\n\n  packages/x:\n    {two}\n\
            packages:\n\n  a@1.0.0:\n    dependencies:\n      d: 1.0.0\n"
        );
        let of_root = ["node_modules/a", "node_modules/@s/b"];
        let expected = [&of_root[..], &["packages/x/node_modules/a!", "packages/x/node_modules/@s/b"]].concat();
        assert_eq!(places(&several), expected);
        assert_eq!(package("@s+a@1.0.0_b@1.0.0").unwrap(), "@s+a@1.0.0_b@1.0.0/node_modules/@s/a");
        assert_eq!(package("node_modules"), None);
        let old = "lockfileVersion: 5.4\n\nspecifiers:\n  a: ^1\n\ndependencies:\n  a: 1.0.0\n\ndevDependencies:\n  '@s/b': 1.0.0\n\npackages:\n\n  /a/1.0.0:\n    dev: false\n";
        assert_eq!(places(old), of_root);
        let yaml = "hoistedLocations:\n  a@1.0.0:\n    - node_modules/a\n    - packages/x/node_modules/a\n    - ../y/node_modules/a\n\
            storeDir: /x/node_modules/y\n";
        assert_eq!(hoisted(yaml).collect::<Vec<_>>(), ["node_modules/a", "packages/x/node_modules/a"]);
        let json = "{\n  \"hoistedLocations\": {\n    \"@s/a@1.0.0\": [\n      \"node_modules/@s/a\",\n      \"node_modules/b/node_modules/@s/a\"\n    ]";
        assert_eq!(hoisted(json).collect::<Vec<_>>(), ["node_modules/@s/a", "node_modules/b/node_modules/@s/a"]);
    }
}
