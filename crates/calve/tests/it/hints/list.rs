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
    ("calve-db", "Engine", "it is one of the engine's, in the words for it"),
    ("calve-db", "Sweep", RACE),
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

/// Returns the file below `crates` that has the remedies of a crate.
fn remedies(crate_name: &str) -> String {
    let folder = match crate_name {
        "calve-core" => "vocabulary/",
        "calve-db" => "error/",
        _ => "",
    };
    format!("{crate_name}/src/{folder}remedy.rs")
}

/// The words of each variant beside it, in the source of a library.
fn library_words(file: &str) -> BTreeMap<String, String> {
    let text = fs_err::read_to_string(crates().join(file)).unwrap();
    let worded = text.split("#[error(").skip(1).filter_map(|rest| {
        let (literal, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        let (_, variant) = rest.split_once(")]\n")?;
        let variant = variant.trim_start().chars().take_while(|c| c.is_alphanumeric()).collect();
        Some((variant, literal.to_owned()))
    });
    worded.collect()
}

/// Puts the program's words in place of the library's, where it has its own.
fn with_program_words(words: &mut BTreeMap<String, String>, file: &str) {
    let path = crates().join("calve/src/wording").join(file);
    let text = if path.exists() { fs_err::read_to_string(path).unwrap() } else { String::new() };
    let text = joined(text.split("#[cfg(test)]").next().unwrap());
    let (mut strings, mut is_reworded) = (Vec::new(), false);
    for arm in text.split("Remedy::").skip(1).collect::<Vec<_>>().into_iter().rev() {
        let remedy: String = arm.chars().take_while(|c| c.is_alphanumeric()).collect();
        if !arm.trim_end().ends_with('|') {
            (strings, is_reworded) = (arm.split('"').skip(1).step_by(2).collect(), arm.contains("reworded(remedy"));
        }
        let neutral = words.get(&remedy).cloned().unwrap_or_default();
        match strings[..] {
            [part, own, ..] if is_reworded => words.insert(remedy, neutral.replacen(part, own, 1)),
            [own, ..] => words.insert(remedy, own.replace("{remedy}", &neutral)),
            [] => None,
        };
    }
}

/// The longest piece without a value in it.
fn longest_piece(literal: &str) -> &str {
    let pieces = literal.split('{').flat_map(|piece| piece.split('}'));
    pieces.max_by_key(|piece| piece.len()).unwrap_or_default().trim()
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
    let piece = words.get(remedy).map(|words| longest_piece(words));
    let is_worded = piece.is_some_and(|piece| piece.len() > 8 && tests.contains(piece));
    is_named || is_worded || in_json.contains('_') && tests.contains(&format!("\"{in_json}\""))
}

/// The libraries that are parts of the program: no other library or package builds on them, and their errors name its commands.
const PARTS: &[&str] = &["calve-agent", "calve-bench", "calve-env"];

/// What looks like a command or an option of the program in the other libraries, and is none.
const NOT_THE_PROGRAMS: &[&str] = &[
    "calve ports 1",
    "calve hook 2",
    "calve portable ",
    "calve template manifest 1",
    "schemars(description",
    "what its `--version` tells",
    "(`--{mark}`)",
];

/// Other programs, whose options a library may name.
const PROGRAMS: &[&str] = &["`fetch", "`git", "git ", "losetup", "mariadb", "usermod"];

/// Returns the lines of a source whose strings name a command or an option of the program.
fn named_of_program(source: &str) -> Vec<&str> {
    let code = source.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    let code = code.filter(|line| !NOT_THE_PROGRAMS.iter().any(|not| line.contains(not)));
    code.filter(|line| {
        let begins = |at: usize, what: fn(char) -> bool| line[at..].starts_with(what);
        let is_command = |(at, calve): (usize, &str)| {
            let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-/.".contains(c));
            is_word && begins(at + calve.len(), |c| c.is_lowercase() || c == '{')
        };
        let is_option = |(at, _): (usize, &str)| begins(at + 2, |c| c == '-' || c.is_alphabetic());
        let is_prose = line.contains("#[error(") || line.trim_start().starts_with('"');
        let is_bare = |(at, _): (usize, &str)| is_prose && !PROGRAMS.iter().any(|program| line[..at].contains(program));
        line.match_indices("calve ").any(is_command)
            || line.match_indices("`-").any(is_option)
            || line.match_indices(" --").any(is_bare)
    })
    .collect()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let below = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    below.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Other programs and the packages use them too.
#[test]
fn no_library_names_a_command_or_an_option_of_the_program() {
    for names in
        ["\"remove it: calve rm {0}\"", "\"`calve up` in it\"", "\"or pass `-f`\"", "#[error(\"pass --force\")]"]
    {
        assert_eq!(named_of_program(names), [names]);
    }
    assert!(named_of_program("\"fetch it: git fetch --tags, or `git gc --auto`\"\n// `calve rm`").is_empty());
    let libraries = fs_err::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let others = ["calve", "calve-testkit"].iter().chain(PARTS).map(|name| crates().join(name)).collect::<Vec<_>>();
    let neutral: Vec<_> = libraries.filter(|library| !others.contains(library)).collect();
    let mut wrong = Vec::new();
    for path in neutral.iter().flat_map(|library| sources(&library.join("src"))) {
        let text = fs_err::read_to_string(&path).unwrap();
        wrong.extend(named_of_program(&text).into_iter().map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let packages = ["../node/native", "../python"].map(|package| crates().join(package));
    for builder in neutral.into_iter().chain(packages) {
        let manifest = fs_err::read_to_string(builder.join("Cargo.toml")).unwrap();
        let part = PARTS.iter().find(|part| manifest.contains(**part));
        assert!(part.is_none(), "{} uses {part:?}, which names commands of the program", builder.display());
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
        ("calve-env", &[]),
        ("calve-oci", &[]),
        ("calve-volume", &[]),
    ] {
        let mut all = variants(&remedies(crate_name), "pub enum Remedy {");
        let mut words = library_words(&remedies(crate_name));
        if crate_name == "calve-git" {
            all.extend(variants("calve-git/src/transfer_failure.rs", "pub enum TransferFailure {"));
            words.extend(library_words("calve-git/src/transfer_failure.rs"));
        }
        with_program_words(&mut words, &format!("{}.rs", crate_name.trim_start_matches("calve-")));
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
