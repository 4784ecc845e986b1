//! Checks that a test asserts every remedy of the libraries, or that a reason says why none does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{bench, core, db, git};

const RACE: &str = "another process has to act between two calls, which nothing can hold apart";

/// The remedies that no test shows: the crate, the remedy, and the reason.
const NOWHERE: &[(&str, &str, &str)] = &[
    ("calve-git", "AllowReading", "a directory that cannot be searched hides the worktree from git as well"),
    ("calve-git", "AskGitStatus", "git is asked first, and no index is known that git reads and Calve does not"),
    ("calve-git", "CheckPath", "each failure of the system that could be made has a remedy of its own"),
    ("calve-git", "CheckWorktree", RACE),
    ("calve-git", "ChooseTransportOrDropRequirement", "where a server has no shallow clones, git fails by itself"),
    ("calve-git", "GiveNewPath", "a path without a name exists, which is found out first"),
    ("calve-git", "RunAgain", RACE),
    ("calve-git", "StopWriters", RACE),
    ("calve-git", "Transfer", "it is one of a transfer's, in the words for it"),
    ("calve-git", "WaitOrChooseAnotherBranch", RACE),
    ("calve-core", "NameEntriesOfRoot", "it takes a second name of the machine's root, which no test may make"),
    ("calve-core", "WaitForLease", "the kernel ends a lease after 45 seconds, which is as long as Calve waits"),
    ("calve-db", "TryAgain", "a process of a server that was killed has to live on for a minute"),
    ("calve-db", "Engine", "it is one of the engine's, in the words for it"),
    ("calve-db", "Sweep", RACE),
    ("calve-bench", "Engine", "it is one of the engine's, in the words for it"),
    ("calve-volume", "CheckSystem", "a failure of the system that has no remedy of its own"),
    ("calve-volume", "InstallProgram", "the program would have to be taken away from everybody on the machine"),
    ("calve-volume", "ReadKernelLog", "each failure of mount that could be made is found out before"),
    ("calve-oci", "Core", "the remedies of the engine are listed there"),
];

/// Returns the variants of an enum in a file below `crates`, by its source.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = fs_err::read_to_string(crates().join(file)).unwrap();
    let (_, body) = text.split_once(name).unwrap_or_else(|| panic!("{file} has no `{name}`"));
    let body = body.split_once("\n}").unwrap().0;
    let lines = body.lines().map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    let word = |line: &str| line.chars().take_while(|c| c.is_alphanumeric()).collect();
    lines.map(word).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The words of each remedy, as they stand in the source of the program: the longest piece without a value in it.
fn words(files: &[&str], name: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for file in files {
        let text = fs_err::read_to_string(crates().join("calve/src/wording").join(file)).unwrap();
        for arm in joined(&text).split(name).skip(1) {
            let remedy: String = arm.chars().take_while(|c| c.is_alphanumeric()).collect();
            let literal = arm.split('"').nth(1).unwrap_or_default().replace("{}", "{").replace('}', "{");
            if let Some(longest) = literal.split('{').max_by_key(|piece| piece.len()) {
                words.entry(remedy).or_insert(longest.trim().to_owned());
            }
        }
    }
    words
}

/// The source with each string in one line.
fn joined(source: &str) -> String {
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start()).replace("\\\"", "'")
}

fn in_json(remedy: &str) -> String {
    remedy.chars().enumerate().fold(String::new(), |mut name, (at, c)| {
        if c.is_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
        name
    })
}

/// Returns the source of all tests of the workspace, except this list.
fn tests() -> String {
    let (mut text, mut ahead) = (String::new(), vec![crates()]);
    while let Some(path) = ahead.pop() {
        if path.is_dir() {
            ahead.extend(fs_err::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("hints/list.rs") {
            let source = fs_err::read_to_string(&path).unwrap();
            let is_test = path.iter().any(|part| part == "tests");
            text.push_str(if is_test {
                &source
            } else {
                source.split_once("mod tests {").map_or("", |(_, tests)| tests)
            });
        }
    }
    joined(&text)
}

/// Returns whether a test asserts the remedy: by its words, its name, or its name in JSON.
fn asserts(tests: &str, remedy: &str, words: &BTreeMap<String, String>) -> bool {
    let in_json = in_json(remedy);
    let is_named =
        tests.split(&format!("Remedy::{remedy}")).skip(1).any(|rest| !rest.starts_with(char::is_alphanumeric));
    let is_worded = words.get(remedy).is_some_and(|words| words.len() > 8 && tests.contains(words.as_str()));
    is_named || is_worded || in_json.contains('_') && tests.contains(&format!("\"{in_json}\""))
}

/// The remedies of databases for which the packages leave the program's hint as it is.
#[rustfmt::skip]
const PROGRAMS_WORDS: [&str; 21] = [
    // A command with its arguments, which no function of the packages stands for.
    "CreateTemplate", "RebuildTemplate", "RemoveVolumes", "ReadLog", "CheckRuntime", "PullImage",
    // Errors of commands that the packages do not run: those that make templates,
    "ReplaceTemplate", "NameEngine", "NameOneSource", "CorrectCommand", "ConnectToServer", "DropStrategy",
    "ShutDownSource", "NameCompleteDirectory", "CopyToOnePlace", "ReadAsOwner",
    // those that run a command beside a server,
    "MoveOption",
    // and those of services of worktrees.
    "ForceStop", "ForceRemoval", "ChooseProgramTemplate", "StartThrowaway",
];

/// The packages word the remedies of databases themselves, by their names, and those of the engine that are about options of clones.
#[test]
fn the_packages_word_the_remedies_of_databases() {
    let mut all = variants("calve-db/src/remedy.rs", "pub enum Remedy {");
    assert!(all.remove("Engine") && PROGRAMS_WORDS.iter().all(|name| all.remove(*name)));
    all.extend(["RaiseOpenFiles", "FreeMemory", "RaiseProcesses"].map(String::from));
    let all: BTreeSet<String> = all.iter().map(|name| in_json(name)).collect();
    for (file, quote) in [("node/src/remedies.ts", ""), ("python/calve/_remedies.py", "\"")] {
        let text = fs_err::read_to_string(crates().join("..").join(file)).unwrap();
        let (_, table) = text.split_once("DATABASE_REMEDIES").unwrap();
        let keys = table.lines().filter_map(|line| {
            let (key, words) = line.trim_start().split_once(&format!("{quote}: "))?;
            words.ends_with(',').then(|| key.trim_start_matches('"').to_owned())
        });
        let keys: BTreeSet<String> = keys.collect();
        assert_eq!(keys, all, "{file}");
    }
}

#[test]
fn every_remedy_is_asserted_by_a_test() {
    let tests = tests();
    let mut nowhere: BTreeSet<_> = NOWHERE.iter().map(|(crate_name, remedy, _)| (*crate_name, *remedy)).collect();
    let mut missing = Vec::new();
    for (crate_name, cases) in [
        ("calve-core", core::CASES),
        ("calve-git", git::CASES),
        ("calve-db", db::CASES),
        ("calve-bench", bench::CASES),
        ("calve-oci", &[]),
        ("calve-volume", &[]),
    ] {
        let mut all = variants(&format!("{crate_name}/src/remedy.rs"), "pub enum Remedy {");
        let wording = format!("{}.rs", crate_name.trim_start_matches("calve-"));
        let mut words = words(&[&wording], "Remedy::");
        if crate_name == "calve-git" {
            all.extend(variants("calve-git/src/transfer_failure.rs", "pub enum TransferFailure {"));
            words.extend(self::words(&[&wording], "TransferFailure::"));
        }
        for remedy in &all {
            let is_case = cases.iter().any(|case| case.remedy == remedy);
            let before = nowhere.len();
            nowhere.retain(|entry| *entry != (crate_name, remedy.as_str()));
            let is_nowhere = nowhere.len() < before;
            if !is_case && !is_nowhere && !asserts(&tests, remedy, &words) {
                missing.push(format!("{crate_name} {remedy} {:?}", words.get(remedy)));
            }
        }
    }
    assert!(missing.is_empty(), "no test asserts these remedies: {missing:#?}");
    assert!(nowhere.is_empty(), "these are no remedies: {nowhere:?}");
}
