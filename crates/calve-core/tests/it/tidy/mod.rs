//! The rules that hold for the sources themselves (ARCHITECTURE.md says why).

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use self::imports::{Imports, in_circles};

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The lines before the unit tests, with their numbers. A module of tests in a file of its own is declared among the others.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let next = self.text.lines().skip(1).chain([""]);
        let is_tests = |&(_, (line, next)): &(usize, (&str, &str))| {
            line.starts_with("#[cfg(test)]") && !(next.starts_with("mod ") && next.ends_with(';'))
        };
        let lines = self.text.lines().zip(next).enumerate().take_while(move |line| !is_tests(line));
        lines.map(|(index, (line, _))| (index + 1, line))
    }

    fn is_in(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }
}

fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap()
}

/// Every Rust file of the workspace, with its path from the workspace's root.
fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    let mut waiting = vec![workspace().join("crates")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push(Source { path: path.strip_prefix(workspace()).unwrap().to_path_buf(), text });
            }
        }
    }
    assert!(sources.len() > 50);
    sources
}

const CORE: &str = "crates/calve-core/src";

#[track_caller]
fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

/// Lines of code of the selected files that `is_wrong`.
fn lines(select: impl Fn(&Source) -> bool, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| select(source)) {
        for (number, line) in source.code().filter(|(_, line)| !line.trim_start().starts_with("//") && is_wrong(line)) {
            found.push(format!("{}:{number}: {}", source.path.display(), line.trim()));
        }
    }
    found
}

#[test]
fn platforms_are_told_apart_in_sys_only() {
    let elsewhere = |source: &Source| source.is_in(CORE) && !source.is_in("crates/calve-core/src/sys");
    assert_none(&lines(elsewhere, |line| line.contains("target_os")), "platform code belongs into src/sys");
    // The stand-in for macOS's kernel is with the tests.
    let is_elsewhere = |line: &str| line.trim_start().starts_with("#[path") && !line.contains("tests/like_macos/");
    let found = lines(|_| true, is_elsewhere);
    assert_none(&found, "a file is where its module is");
    let in_program = |source: &Source| {
        source.is_in("crates/calve/src")
            && !["crates/calve/src/sys", "crates/calve-bench/src"].iter().any(|folder| source.is_in(folder))
    };
    let found = lines(in_program, |line| ["os::unix", "os::fd", "rustix"].iter().any(|word| line.contains(word)));
    assert_none(&found, "calls of one system belong into the program's src/sys");
}

#[test]
fn unsafe_code_is_in_sys_only_and_says_why_it_is_sound() {
    let elsewhere = |source: &Source| {
        source.path.components().any(|part| part.as_os_str() == "src")
            && !["calve-core", "calve-db", "calve-testkit"]
                .iter()
                .any(|name| source.is_in(&format!("crates/{name}/src/sys")))
    };
    let is_unsafe =
        |line: &str| line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl");
    assert_none(&lines(elsewhere, is_unsafe), "unsafe code belongs into src/sys");
    let mut unexplained = Vec::new();
    let in_sys = |source: &&Source| source.path.components().any(|part| part.as_os_str() == "sys");
    for source in sources().iter().filter(in_sys) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {")) {
            let above = lines[..index].iter().rev().take(8);
            if !above.take_while(|line| !line.trim().is_empty()).any(|line| line.contains("// SAFETY:")) {
                unexplained.push(format!("{}:{}: {}", source.path.display(), index + 1, line.trim()));
            }
        }
    }
    assert_none(&unexplained, "an unsafe block needs a SAFETY comment right above it");
}

#[test]
fn the_library_is_silent_and_alone() {
    let words = [
        "println!",
        "eprintln!",
        "print!(",
        "std::env",
        "process::exit",
        "process::abort",
        "set_current_dir",
        "dbg!(",
        "env::var",
        "::umask(",
        "set_hook(",
    ];
    let is_silent = |source: &Source| [CORE, "crates/calve-env/src"].iter().any(|folder| source.is_in(folder));
    let found = lines(is_silent, |line| words.iter().any(|word| line.contains(word)));
    assert_none(&found, "the library never prints, exits, or reads or changes what belongs to the process");
}

#[test]
fn examples_are_run() {
    let is_example = |line: &str| {
        let text = line.trim_start();
        let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!")).map(str::trim);
        text.and_then(|text| text.strip_prefix("```")).is_some_and(|kind| !kind.starts_with("text"))
    };
    let mut unrun = Vec::new();
    for source in sources().iter().filter(|source| source.code().any(|(_, line)| is_example(line))) {
        let crate_directory: PathBuf = source.path.iter().take(2).collect();
        let manifest = fs::read_to_string(workspace().join(crate_directory).join("Cargo.toml")).unwrap();
        if manifest.contains("doctest = false") {
            unrun.push(source.path.display().to_string());
        }
    }
    assert_none(&unrun, "an example needs a crate whose doc tests are run");
}

#[test]
fn files_stay_readable() {
    let (mut found, mut lengths) = (Vec::new(), Vec::new());
    for source in sources() {
        let length = source.text.lines().count();
        lengths.extend(is_product(&source).then_some(length));
        if length > 600 {
            found.push(format!("{}: {length} lines", source.path.display()));
        }
        if workspace().join(source.path.with_extension("")).is_dir() {
            found.push(format!("{}: it belongs into its folder, as mod.rs", source.path.display()));
        }
        let name = source.path.file_stem().unwrap().to_string_lossy().into_owned();
        if ["utils", "util", "helpers", "helper", "common", "misc"].contains(&name.as_str()) {
            found.push(format!("{}: its name says nothing", source.path.display()));
        }
    }
    assert_none(&found, "files are short and named after their subject");
    let half = lengths.len() / 2;
    let (_, median, _) = lengths.select_nth_unstable(half);
    assert!(*median <= 120, "half of the files have more than {median} lines");
}

#[test]
fn functions_fit_on_two_screens() {
    let mut found = Vec::new();
    let mut count = 0;
    for source in sources() {
        let lines: Vec<&str> = source.text.lines().collect();
        for (first, line) in lines.iter().enumerate().filter(|(_, line)| begins_function(line)) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = format!("{indent}}}");
            // A declaration without a body ends before the next line that is indented as little.
            let after = lines[first..].iter().position(|line| {
                **line == end
                    || line.trim_end().ends_with(';')
                        && line.starts_with(indent)
                        && !line[indent.len()..].starts_with(' ')
            });
            let length = after.map_or(0, |after| after + 1);
            count += 1;
            if length >= 80 {
                found.push(format!("{}:{}: {length} lines", source.path.display(), first + 1));
            }
        }
    }
    assert!(count > 3000, "only {count} functions were found");
    assert_none(&found, "functions are shorter than 80 lines");
}

fn begins_function(line: &str) -> bool {
    let words = line.split_whitespace().take_while(|word| !word.starts_with("fn"));
    let is_qualifier = |word: &str| {
        ["pub", "const", "async", "unsafe", "extern"].iter().any(|known| word.starts_with(known))
            || word.starts_with('"')
    };
    line.contains("fn ") && words.clone().all(is_qualifier) && line.split_whitespace().nth(words.count()) == Some("fn")
}

/// Names of functions that only their type makes plain, where a verb says what they do.
#[test]
fn functions_say_what_they_do() {
    let vague = |line: &str| ["fn of(", "fn one(", "fn settle("].iter().any(|name| line.contains(name));
    assert_none(&lines(is_product, vague), "a function is named after what it does");
}

/// Names that several types would have, unless they are qualified, as in `BenchVariant` and `LeasedPort`.
#[test]
fn types_are_told_apart_by_their_names() {
    let vague = ["Way", "Side", "Row", "State", "Port", "Target", "Contents", "Keeper", "Holder", "Beginning"];
    let is_vague = |line: &str| {
        let words: Vec<&str> = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
        words.windows(2).any(|pair| ["struct", "enum", "trait"].contains(&pair[0]) && vague.contains(&pair[1]))
    };
    assert_none(&lines(is_product, is_vague), "a type has a qualified name");
}

fn is_product(source: &Source) -> bool {
    source.path.iter().nth(2).unwrap() == "src" && !source.is_in("crates/calve-testkit")
}

#[test]
fn names_and_words() {
    let this = Path::new("crates/calve-core/tests/it/tidy/mod.rs");
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.path != this) {
        let path = source.path.display().to_string();
        for (number, line) in [&*path].into_iter().chain(source.text.lines()).enumerate() {
            let wrong = [
                ("fn get_", "a getter has no `get_`"),
                ("TODO", "unfinished"),
                ("FIXME", "unfinished"),
                ("XXX", "unfinished"),
                ("\"/home/", "a path of one machine"),
                ("\"/Users/", "a path of one machine"),
                ("\"/work", "a path of one machine"),
                ("LastLook", "it is called before publishing"),
                ("still_wanted", "it checks whether the caller has cancelled"),
                ("KnownSource", "a watched listing"),
                ("KnownState", "a `RecordedState`"),
                ("KnownEntry", "a `ListedEntry`"),
                ("/known.rs", "it is `watched_listing.rs`"),
                ("/ahead.rs", "it is `pending_stack.rs`, or `early_clones.rs`"),
                ("/choose.rs", "it is `strategy/select.rs`"),
                ("/strategy_run.rs", "it is in `strategy/`"),
                ("/bare.rs", "it is `baseline.rs`"),
                ("/standing.rs", "it is `status.rs`"),
                ("src/spare/", "it is `claim/`, or `spares/`"),
                ("is_ahead", "it is speculative"),
                ("Reuse::of", "constructors say what they make it from"),
                ("Summary::of", "constructors say what they make it from"),
                ("remedies.ts", "remedies have their words in Rust"),
                ("has_no_keeper", "worktrees have ids"),
                ("Doom", "it is a `PendingRemoval`, or emptied"),
                ("BareServer", "a `BaselineServer`"),
                ("RegistryPlace", "a `RegistrySlot`"),
                ("KnownDonor", "a `WatchedDonor`"),
                ("leaves_secrets", "`Secrets` decides"),
                ("StagedWorktree", "`AddReport`, planned or made"),
                ("ntold", "it is unknown"),
                ("Told", "it is reported"),
                ("Holder", "a `WorktreeId`"),
            ];
            // The name that a trait of the protocol's SDK has.
            let line = line.replace("fn get_info(&self) -> ServerConfig", "");
            for (word, why) in wrong.iter().filter(|(word, _)| line.contains(word)) {
                found.push(format!("{path}:{number}: `{word}`: {why}"));
            }
        }
    }
    assert_none(&found, "words");
}

#[test]
fn files_import_each_other_in_no_circle() {
    let sources = sources();
    for name in names_of(&workspace().join("crates")) {
        let imports = Imports::of(&name, &sources).edges();
        let circular = in_circles(&imports);
        assert!(circular.is_empty(), "{name}: {circular:?}");
    }
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let sources = sources();
    let mut found = Vec::new();
    for name in names_of(&workspace().join("crates")) {
        let module = |file: &str| file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, imported) in Imports::of(&name, &sources).edges() {
            let imported = imported.iter().map(|file| module(file)).filter(|other| *other != module(&file));
            modules.entry(module(&file)).or_default().extend(imported);
        }
        assert!(name != "calve-db" || modules["supervise"].contains("server"), "{modules:?}");
        modules.retain(|module, _| !["lib", "main"].contains(&module.as_str()));
        let circular = in_circles(&modules);
        if !circular.is_empty() {
            found.push(format!("{name}: {}", circular.join(", ")));
        }
    }
    assert_none(
        &found,
        "the modules right below a crate's root are in layers: none imports one that imports it, by whatever way",
    );
    let hidden = |line: &str| {
        line.split("crate::").skip(1).any(|path| {
            let path = path.trim_start_matches('{');
            path.starts_with(char::is_uppercase)
        }) && !line.contains("$crate::")
    };
    let in_source = |source: &Source| {
        let is_root = ["lib.rs", "main.rs", "tests.rs"].iter().any(|name| source.path.ends_with(name));
        source.path.iter().nth(2).is_some_and(|folder| folder == "src") && !is_root
    };
    assert_none(&lines(in_source, hidden), "a type is imported from its module: its layer shows");
}

/// The names at the root are the ones that most users need. A further one belongs into a module.
#[test]
fn the_front_door_is_small() {
    let root = fs::read_to_string(workspace().join(CORE).join("lib.rs")).unwrap();
    let lists: Vec<&str> = root.split("\npub use ").skip(1).map(|text| text.split(';').next().unwrap()).collect();
    let names: usize =
        lists.iter().map(|list| list.split(',').filter(|name| !name.trim().trim_matches('}').is_empty()).count()).sum();
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    let own = root.lines().filter_map(|line| line.strip_prefix("pub ")?.split(' ').next());
    let names = names + own.filter(|kind| kinds.contains(kind)).count();
    assert!(lists.len() > 5 && !lists.iter().any(|list| list.ends_with('*')), "{lists:?}");
    assert!(names <= 30, "{names} names are at the root of calve-core: {lists:?}");
}

#[test]
fn the_map_names_what_is_there() {
    let map = workspace().join("ARCHITECTURE.md");
    let Ok(text) = fs::read_to_string(&map) else { return };
    let mut missing = Vec::new();
    for quoted in text.split('`').skip(1).step_by(2) {
        if is_path(quoted) && !exists(quoted) {
            missing.push(quoted.to_owned());
        }
    }
    assert_none(&missing, "ARCHITECTURE.md names what does not exist");
    let crates: Vec<String> =
        names_of(&workspace().join("crates")).into_iter().filter(|name| !text.contains(name)).collect();
    assert_none(&crates, "ARCHITECTURE.md does not mention the crate");
}

/// Clauses such as "whoever" and "what is" stand where the code has a noun: caller, holder, contents.
#[test]
fn comments_name_things() {
    // May only become smaller.
    const BUDGET: usize = 67;
    let words = ["nobody", "somebody", "whoever", "is told", "is none", "as far as", "what is", "what was"];
    let is_end = |text: Option<char>| !text.is_some_and(char::is_alphanumeric);
    let mut found = Vec::new();
    let this = Path::new("crates/calve-core/tests/it/tidy/mod.rs");
    for source in sources().iter().filter(|source| source.path != this) {
        for (index, line) in source.text.lines().enumerate() {
            let trimmed = line.trim_start();
            let comment =
                if trimmed.starts_with("//") { trimmed } else { line.split_once(" // ").map_or("", |it| it.1) };
            let comment = comment.to_lowercase();
            for (at, word) in words.iter().flat_map(|word| comment.match_indices(word)) {
                if is_end(comment[..at].chars().next_back()) && is_end(comment[at + word.len()..].chars().next()) {
                    found.push(format!("{}:{}: {word}", source.path.display(), index + 1));
                }
            }
        }
    }
    if found.len() > BUDGET {
        assert_none(&found, &format!("comments name things: {} clauses, where {BUDGET} are allowed", found.len()));
    }
}

#[test]
fn every_dependency_says_why() {
    let mut found = Vec::new();
    let mut count = 0;
    for manifest in ["Cargo.toml", "node/native/Cargo.toml", "python/Cargo.toml"] {
        let Ok(text) = fs::read_to_string(workspace().join(manifest)) else { continue };
        let mut is_table = false;
        let mut above = "";
        for line in text.lines() {
            if line.starts_with('[') {
                is_table = line.ends_with("dependencies]");
            } else if is_table && line.contains(" = ") && !line.starts_with(['#', ' ']) && !line.starts_with("calve-") {
                count += 1;
                if !above.starts_with("# ") {
                    found.push(format!("{manifest}: {line}"));
                }
            }
            above = line;
        }
    }
    assert!(count > 20, "only {count} dependencies were found");
    assert_none(&found, "a comment above a dependency says why it is there");
    // The crates take theirs from the workspace, whatever features they add.
    let own: Vec<String> = names_of(&workspace().join("crates"))
        .into_iter()
        .flat_map(|name| {
            let text = fs::read_to_string(workspace().join("crates").join(&name).join("Cargo.toml")).unwrap();
            let versions = text.lines().filter(|line| line.contains("version = \"")).map(str::to_owned);
            versions.filter(|line| line.contains('{') && !line.starts_with("fuser")).collect::<Vec<_>>()
        })
        .collect();
    assert_none(&own, "versions of dependencies are in the workspace's Cargo.toml");
}

/// A promise whose test was renamed or removed would be a promise that nothing holds.
#[test]
fn the_threat_model_names_tests_that_are_there() {
    let pages = ["docs/threat-model.md", "docs/threat-model-repositories.md"];
    let texts: Result<String, _> = pages.iter().map(|page| fs::read_to_string(workspace().join(page))).collect();
    let Ok(text) = texts else { return };
    let tests = ["node/tests", "python/tests"].into_iter().flat_map(|folder| texts_below(&workspace().join(folder)));
    let all: String = sources().into_iter().map(|source| source.text).chain(tests).collect();
    let mut named = 0;
    let mut missing = Vec::new();
    // The last column of each table that has one of that name.
    let mut has_tests = false;
    for line in text.lines() {
        let Some(row) = line.strip_suffix(" |").filter(|row| row.starts_with("| ")) else {
            has_tests = has_tests && line.starts_with('|');
            continue;
        };
        if row.ends_with(" | Tests") || !has_tests {
            has_tests = row.ends_with(" | Tests");
            continue;
        }
        let tests: Vec<&str> = row.rsplit(" | ").next().unwrap_or_default().split('`').skip(1).step_by(2).collect();
        named += tests.len();
        let is_there = |test: &str| match test.contains('/') {
            true => workspace().join(test).exists(),
            false => {
                let name = test.rsplit("::").next().unwrap_or(test);
                all.contains(&format!("fn {name}(")) || all.contains(&format!("def {name}("))
            }
        };
        missing.extend(tests.iter().filter(|test| !is_there(test)).map(|test| (*test).to_owned()));
        if tests.is_empty() {
            missing.push(row.to_owned());
        }
    }
    assert!(named > 40, "only {named} tests are named");
    assert_none(&missing, "the threat model in docs makes promises without a test");
}

#[test]
fn the_documentation_stays_short() {
    let docs = names_of(&workspace().join("docs")).into_iter().map(|name| format!("docs/{name}.md"));
    let text = |page: &str| fs::read_to_string(workspace().join(page)).unwrap();
    let words = |page: &str| text(page).split_whitespace().count();
    let pages: Vec<String> = docs.filter(|page| workspace().join(page).exists()).collect();
    let mut long: Vec<String> = pages.iter().filter(|page| words(page) > 1800).cloned().collect();
    let total: usize = pages.iter().map(|page| words(page)).sum();
    long.extend((total > 32_000).then(|| format!("docs: {total} words")));
    long.extend((pages.len() > 26).then(|| format!("docs: {} pages", pages.len())));
    long.extend((text("README.md").lines().count() > 110).then(|| "README.md".to_owned()));
    long.extend((words("CHANGELOG.md") > 700).then(|| "CHANGELOG.md".to_owned()));
    assert_none(
        &long,
        "a page has 1,800 words, docs 25 pages (and SUMMARY.md) of 32,000, README.md 110 lines, CHANGELOG.md 700 words",
    );
}

fn texts_below(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn names_of(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// Words in backticks that can only be meant as a file or folder of this repository.
fn is_path(quoted: &str) -> bool {
    let plain = quoted.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let file = [".rs", ".toml", ".md"].iter().any(|ending| quoted.ends_with(ending));
    plain && !quoted.starts_with(['.', '/']) && (file || quoted.starts_with("crates/") || quoted.ends_with('/'))
}

/// From the root, or as the end of a path, as in `strategy/copy.rs`.
fn exists(quoted: &str) -> bool {
    let wanted = Path::new(quoted.trim_end_matches('/'));
    if workspace().join(wanted).exists() {
        return true;
    }
    sources().iter().any(|source| source.path.ancestors().any(|path| path.ends_with(wanted)))
}
