//! The contents of `vendor`: go's modules, composer's packages, bundler's gems.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fit::{Fit, Judge, listed};
use crate::directory::{Directory, Time};
use crate::paths::plain;

pub(super) const GO: &[&str] = &["modules.txt"];
pub(super) const COMPOSER: &[&str] = &["composer/installed.json"];
pub(super) const BUNDLER: &[&str] = &["bundle"];

/// Compares both as the go command does, which builds nothing while they differ (<https://go.dev/ref/mod#vendoring>).
pub(super) fn go<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let text = lockfiles.first().copied().unwrap_or_default();
    let (required, replaced) = (required(text), replaced(text));
    Box::new(move |directory| {
        let (Some(modules), Some(end)) = (directory.read(GO[0]), directory.changed(GO[0])) else { return Fit::No };
        // The go command deletes everything first, and writes the list of packages last.
        let packages = modules.lines().filter(|line| !line.starts_with('#'));
        let is_settled = || {
            directory.is_settled(packages, end)
                && directory.is_undeleted(directory.names().iter().map(String::as_str), end)
        };
        let fits = |explicit| required == explicit && is_replaced(&modules, &replaced) && is_settled();
        explicit(&modules).map_or(Fit::Unsure, |explicit| fits(explicit).into())
    })
}

/// Returns the words of each line of a directive, which may be a block.
fn lines_of<'t>(text: &'t str, directive: &str) -> Vec<Vec<&'t str>> {
    let (mut is_inside, mut found) = (false, Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split("//").next().unwrap_or_default().split_whitespace().collect();
        match &words[..] {
            [word, "("] => is_inside = *word == directive,
            [")"] => is_inside = false,
            [word, rest @ ..] if *word == directive => found.push(rest.to_vec()),
            [_, ..] if is_inside => found.push(words),
            _ => {}
        }
    }
    found
}

fn required(text: &str) -> BTreeSet<(&str, &str)> {
    let all = lines_of(text, "require").into_iter();
    all.filter_map(|words| Some((*words.first()?, *words.get(1)?))).collect()
}

/// Returns the replacements as `modules.txt` spells them: `MODULE [VERSION] => MODULE-OR-PATH [VERSION]`.
fn replaced(text: &str) -> BTreeSet<String> {
    lines_of(text, "replace").into_iter().map(|words| words.join(" ")).collect()
}

/// Returns whether `modules.txt` has these replacements and no others. A module that is replaced in every version
/// is there with its own version, too.
fn is_replaced(modules: &str, replaced: &BTreeSet<String>) -> bool {
    let lines = modules.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" => "));
    let vendored: BTreeSet<&str> = lines.collect();
    let of_all_versions = |line: &str| {
        let (old, new) = line.split_once(" => ")?;
        Some(format!("{} => {new}", old.split(' ').next()?))
    };
    replaced.iter().all(|one| vendored.contains(one.as_str()))
        && vendored.iter().all(|&line| {
            replaced.contains(line) || of_all_versions(line).is_some_and(|of_all| replaced.contains(&of_all))
        })
}

/// Returns the modules that `go.mod` required when vendored. `None` before go 1.14, which did not note them.
fn explicit(text: &str) -> Option<BTreeSet<(&str, &str)>> {
    let next = text.lines().skip(1);
    let mut modules = text.lines().zip(next).filter(|(_, next)| next.starts_with("## explicit")).peekable();
    modules.peek()?;
    let words = modules.map(|(line, _)| line.split_whitespace().collect::<Vec<_>>());
    Some(words.filter_map(|words| Some((*words.get(1)?, *words.get(2)?))).collect())
}

pub(super) fn composer<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let wanted = lockfiles.first().and_then(|text| document(text));
    Box::new(move |directory| wanted.as_ref().map_or(Fit::Unsure, |wanted| judge_composer(directory, wanted)))
}

fn document(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|document: &Value| document["packages"].is_array())
}

fn identity(package: &Value) -> [Option<&str>; 4] {
    let parts = ["/name", "/version", "/dist/reference", "/source/reference"];
    parts.map(|part| package.pointer(part).and_then(Value::as_str))
}

fn judge_composer(directory: &Directory, wanted: &Value) -> Fit {
    let Some(installed) = directory.read(COMPOSER[0]).and_then(|text| document(&text)) else { return Fit::No };
    let found: HashSet<_> = listed(&installed, "packages").map(identity).collect();
    let dev = listed(wanted, "packages-dev").filter(|_| installed["dev"] == true);
    // Relative to the list. Packages that only group others have none, and some are outside `vendor`.
    let paths = listed(&installed, "packages").filter_map(|one| one["install-path"].as_str());
    let paths = paths.filter(|path| !path.starts_with("../..") && !path.starts_with('/'));
    let directories: Vec<PathBuf> = paths.map(|path| plain(&Path::new("composer").join(path))).collect();
    let directories = || directories.iter().filter_map(|path| path.to_str());
    let is_complete = directory.has("autoload.php") && directory.is_settled(directories(), Time::MAX);
    if !is_complete || !listed(wanted, "packages").chain(dev).all(|package| found.contains(&identity(package))) {
        return Fit::No;
    }
    // It deletes a package before it writes the list. Plugins write later, and a reinstall does not renew the list.
    let is_settled = directory.changed(COMPOSER[0]).is_some_and(|end| directory.is_undeleted(directories(), end));
    if is_settled { Fit::Yes } else { Fit::Unsure }
}

pub(super) fn bundler<'t>(lockfiles: &[&'t str]) -> Judge<'t> {
    let text = lockfiles.first().copied().unwrap_or_default();
    // Gems from a repository or a directory have no version to compare.
    let most = if text.lines().any(|line| ["GIT", "PATH"].contains(&line)) { Fit::Unsure } else { Fit::Yes };
    let gems = gems(text);
    Box::new(move |directory| {
        let Some(rubies) = directory.directory("bundle/ruby") else { return Fit::No };
        let rubies = rubies.names().into_iter().filter_map(|version| rubies.directory(version));
        let installed = rubies.flat_map(|ruby| specifications(&ruby)).collect();
        Fit::from(has_gems(&gems, &installed)).min(most)
    })
}

/// Returns the specifications of complete gems: each is written after the gem's files, and deleted after them.
fn specifications(ruby: &Directory) -> Vec<String> {
    let mut names = ruby.directory("specifications").map(|found| found.names()).unwrap_or_default();
    names.retain(|name| {
        let gem = format!("gems/{}", name.strip_suffix(".gemspec").unwrap_or_default());
        let end = ruby.changed(format!("specifications/{name}"));
        end.is_some_and(|end| ruby.is_undeleted(std::iter::once(&*gem), end))
    });
    names
}

/// Each gem's versions: a lockfile has one for each platform.
type Gems<'t> = HashMap<&'t str, Vec<&'t str>>;

fn gems(lockfile: &str) -> Gems<'_> {
    let mut gems = Gems::new();
    let mut is_gem = false;
    for line in lockfile.lines() {
        if !line.starts_with(' ') {
            is_gem = line == "GEM";
        }
        // Gems are indented by four spaces, their needs by six.
        let gem = line.strip_prefix("    ").filter(|gem| is_gem && !gem.starts_with(' '));
        if let Some((name, version)) = gem.and_then(|gem| gem.strip_suffix(')')?.split_once(" (")) {
            gems.entry(name).or_default().push(version);
        }
    }
    gems
}

fn has_gems(gems: &Gems<'_>, specifications: &HashSet<String>) -> bool {
    let is_there = |name: &str, version: &str| specifications.contains(&format!("{name}-{version}.gemspec"));
    gems.iter().all(|(name, versions)| versions.iter().any(|version| is_there(name, version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_modules_are_compared_as_go_compares_them() {
        let wanted = required(
            "module m\n\ngo 1.21\n\nrequire example.com/a v1.0.0 // indirect\nrequire (\n\texample.com/b v2.0.0\n)\nreplace (\n\tx y\n)\n",
        );
        let vendored = "# example.com/a v1.0.0\n## explicit; go 1.17\nexample.com/a\n# example.com/b v2.0.0 => ./b\n## explicit\n# c v1\nc\n";
        assert_eq!(Some(wanted), explicit(vendored));
        assert_ne!(explicit(&vendored.replace("v2", "v3")), explicit(vendored));
        assert_eq!(explicit("# example.com/a v1.0.0\nexample.com/a\n"), None);
        let vendored = "# b v2.0.0 => ../b\n## explicit\nb\n# c v1 => d v2\nc\n# b => ../b\n";
        let is_vendored = |text: &str| is_replaced(vendored, &replaced(text));
        assert!(is_vendored("require b v2.0.0\nreplace (\n\tb => ../b // here\n\tc v1 => d v2\n)\n"));
        for other in
            ["", "replace b => ../b", "replace (\nb => ../e\nc v1 => d v2\n)", "replace (\nb => ../b\nc v1 => d v3\n)"]
        {
            assert!(!is_vendored(other), "{other}");
        }
        assert!(!is_vendored("replace (\nb => ../b\nc v1 => d v2\ne => ../e\n)"));
    }

    #[test]
    fn a_package_of_composer_is_there_with_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let lockfile = r#"{ "packages": [{ "name": "a/b", "version": "1.0.0" }] }"#;
        let installed = r#"{ "packages": [{ "name": "a/b", "version": "1.0.0", "install-path": "../a/b" },
            { "name": "composer/c", "version": "1.0.0", "install-path": "./c" }] }"#;
        fs_err::create_dir_all(folder.path().join("composer")).unwrap();
        fs_err::write(folder.path().join(COMPOSER[0]), installed).unwrap();
        let directory = Directory::open(folder.path(), Path::new("")).unwrap();
        fs_err::write(folder.path().join("autoload.php"), "").unwrap();
        for package in ["a/b", "composer/c"] {
            assert_eq!(composer(&[lockfile])(&directory), Fit::No, "without {package}");
            fs_err::create_dir_all(folder.path().join(package)).unwrap();
        }
        fs_err::write(folder.path().join(COMPOSER[0]), installed).unwrap();
        assert_eq!(composer(&[lockfile])(&directory), Fit::Yes);
        assert_eq!(composer(&[&lockfile.replace("1.0.0", "1.0.1")])(&directory), Fit::No);
    }

    #[test]
    fn each_gem_is_there_for_some_platform() {
        let lockfile = "GIT\n  specs:\n    own (1)\n\nGEM\n  remote: https://rubygems.org/\n  specs:\n    nokogiri (1.15.0)\n    \
            nokogiri (1.15.0-x86_64-linux)\n      racc (~> 1.4)\n    racc (1.7.1)\n\nDEPENDENCIES\n  nokogiri\n";
        let has =
            |names: &[&str]| has_gems(&gems(lockfile), &names.iter().map(|name| format!("{name}.gemspec")).collect());
        assert!(has(&["nokogiri-1.15.0-x86_64-linux", "racc-1.7.1", "racc-1.7.0"]));
        assert!(!has(&["nokogiri-1.15.0-x86_64-linux", "racc-1.7.0"]));
        assert!(!has(&["nokogiri-1.14.0", "racc-1.7.1"]));
    }
}
