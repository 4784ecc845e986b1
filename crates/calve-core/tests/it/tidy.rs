//! The rules that hold for the sources themselves (ARCHITECTURE.md says why).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

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
    let found = lines(|_| true, |line| line.trim_start().starts_with("#[path"));
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
    let found = lines(|source| source.is_in(CORE), |line| words.iter().any(|word| line.contains(word)));
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
    let mut found = Vec::new();
    for source in sources() {
        let length = source.text.lines().count();
        if length > 600 {
            found.push(format!("{}: {length} lines", source.path.display()));
        }
        let name = source.path.file_stem().unwrap().to_string_lossy().into_owned();
        if ["utils", "util", "helpers", "helper", "common", "misc"].contains(&name.as_str()) {
            found.push(format!("{}: its name says nothing", source.path.display()));
        }
    }
    assert_none(&found, "files are short and named after their subject");
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
        ["pub", "const", "unsafe", "extern"].iter().any(|known| word.starts_with(known)) || word.starts_with('"')
    };
    line.contains("fn ") && words.clone().all(is_qualifier) && line.split_whitespace().nth(words.count()) == Some("fn")
}

#[test]
fn names_and_words() {
    let this = Path::new("crates/calve-core/tests/it/tidy.rs");
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.path != this) {
        for (index, line) in source.text.lines().enumerate() {
            let wrong = [
                ("fn get_", "a getter has no `get_`"),
                ("TODO", "unfinished"),
                ("FIXME", "unfinished"),
                ("XXX", "unfinished"),
                ("\"/home/", "a path of one machine"),
                ("\"/Users/", "a path of one machine"),
                ("\"/work", "a path of one machine"),
            ];
            // The name that a trait of the protocol's SDK has.
            let line = line.replace("fn get_info(&self) -> ServerConfig", "");
            for (word, why) in wrong.iter().filter(|(word, _)| line.contains(word)) {
                found.push(format!("{}:{}: `{word}`: {why}", source.path.display(), index + 1));
            }
        }
    }
    assert_none(&found, "words");
}

/// The module right below the root of its crate that a file belongs to. `None` for the root itself and for unit tests.
fn module(source: &Source) -> Option<(String, String)> {
    let mut parts = source.path.components().map(|part| match part {
        Component::Normal(part) => part.to_str().unwrap(),
        _ => unreachable!("paths begin at the workspace"),
    });
    let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next()) else { return None };
    let module = parts.next()?.trim_end_matches(".rs");
    let is_module = !["lib", "main"].contains(&module) && !source.path.ends_with("tests.rs");
    is_module.then(|| (name.to_owned(), module.to_owned()))
}

/// The first names of all paths that begin with `crate::` in `code`, also of those in `crate::{...}`.
fn names_below_the_crate(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in code.split("crate::").skip(1) {
        let is_list = text.starts_with('{');
        let (mut depth, mut is_first, mut name) = (0_u32, true, String::new());
        for letter in text.chars() {
            if letter.is_alphanumeric() || letter == '_' {
                if is_first && depth <= 1 {
                    name.push(letter);
                }
                continue;
            }
            if !name.is_empty() {
                found.insert(std::mem::take(&mut name));
                is_first = false;
            }
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' if depth == 1 => is_first = true,
                _ => {}
            }
            if depth == 0 || !is_list {
                break;
            }
        }
    }
    found
}

#[test]
fn imported_modules_are_found() {
    let code = "use crate::{a, b::{self, c}, d::e};\nuse crate::f;\nfn g() { crate::h::i(crate::j::k, l) }";
    let found: Vec<String> = names_below_the_crate(code).into_iter().collect();
    assert_eq!(found, ["a", "b", "d", "f", "h", "j"]);
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut crates: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for source in sources() {
        let Some((of, module)) = module(&source) else { continue };
        let code: Vec<&str> = source.code().map(|(_, line)| line.split("//").next().unwrap()).collect();
        let imports = crates.entry(of).or_default().entry(module.clone()).or_default();
        let names = names_below_the_crate(&code.join("\n"));
        imports.extend(names.into_iter().filter(|name| *name != module));
    }
    assert!(crates["calve-db"]["supervise"].contains("launch"), "{:?}", crates["calve-db"]);
    let mut found = Vec::new();
    for (name, mut modules) in crates {
        // Removes modules that import none of the others, then those that none of the others imports. The rest are in circles, or between
        // two.
        loop {
            let before = modules.len();
            let left: BTreeSet<String> = modules.keys().cloned().collect();
            modules.retain(|_, imports| !imports.is_disjoint(&left));
            let imported: BTreeSet<String> = modules.values().flatten().cloned().collect();
            modules.retain(|module, _| imported.contains(module));
            if modules.len() == before {
                break;
            }
        }
        if !modules.is_empty() {
            let all: Vec<String> = modules.into_keys().collect();
            found.push(format!("{name}: {}", all.join(", ")));
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
    let in_source = |source: &Source| module(source).is_some();
    assert_none(&lines(in_source, hidden), "a type is imported from its module: its layer shows");
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
    let unnamed: Vec<String> = names_of(&workspace().join(CORE).join("strategy"))
        .into_iter()
        .filter(|name| name != "mod")
        .filter(|name| !text.contains(&format!("`{name}`")) && !text.contains(&format!("{name}.rs")))
        .collect();
    assert_none(&unnamed, "ARCHITECTURE.md does not mention the strategy");
    let crates: Vec<String> =
        names_of(&workspace().join("crates")).into_iter().filter(|name| !text.contains(name)).collect();
    assert_none(&crates, "ARCHITECTURE.md does not mention the crate");
}

/// A promise whose test was renamed or removed would be a promise that nothing holds.
#[test]
fn the_threat_model_names_tests_that_are_there() {
    let Ok(text) = fs::read_to_string(workspace().join("docs/threat-model.md")) else { return };
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
    assert_none(&missing, "docs/threat-model.md makes promises without a test");
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
