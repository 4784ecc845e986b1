//! Which files of a crate import which, as far as their text says it.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// The names of modules from the root of a crate, and perhaps of something in the last one.
type Path = Vec<String>;

/// The files of one crate.
pub(super) struct Imports {
    /// By the module that each of them is.
    files: BTreeMap<Path, File>,
}

struct File {
    name: String,
    imports: Vec<Path>,
    /// The names that it hands on, and their origins.
    reexports: Vec<(String, Path)>,
    defines: BTreeSet<String>,
}

impl Imports {
    /// Reads the files below the `src` of the crate `name`, without unit tests.
    pub(super) fn of(name: &str, sources: &[Source]) -> Self {
        let root = format!("crates/{name}/src");
        let in_crate = sources.iter().filter(|source| source.is_in(&root) && !source.path.ends_with("tests.rs"));
        let files = in_crate.map(|source| {
            let name = source.path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let mut module: Path = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            (module, File::read(name, source))
        });
        Self { files: files.collect() }
    }

    /// Returns the imports of each file. A name that a file only hands on is imported from where it is defined.
    pub(super) fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let targets = |module: &Path, file: &File| {
            let found = file.imports.iter().filter_map(|path| self.origin(module, path, 0));
            let names = found.filter_map(|module| self.files.get(&module)).map(|file| file.name.clone());
            names.filter(|name| *name != file.name).collect()
        };
        self.files.iter().map(|(module, file)| (file.name.clone(), targets(module, file))).collect()
    }

    /// Finds the module that a path, as it is written in `module`, leads to.
    fn origin(&self, module: &Path, path: &[String], depth: usize) -> Option<Path> {
        let (mut base, mut rest) = match path.first()?.as_str() {
            "crate" => (Path::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.clone(), path),
            first => {
                let child = [module.as_slice(), &[first.to_owned()]].concat();
                self.files.contains_key(&child).then(|| (module.clone(), path))?
            }
        };
        while let Some(name) = rest.first() {
            let child = [base.as_slice(), std::slice::from_ref(name)].concat();
            match name.as_str() {
                "super" => drop(base.pop()?),
                _ if self.files.contains_key(&child) => base = child,
                _ => break,
            }
            rest = &rest[1..];
        }
        let (Some(name), true) = (rest.first(), depth < 8) else { return Some(base) };
        for (alias, origin) in &self.files.get(&base)?.reexports {
            if alias == name {
                return self.origin(&base, origin, depth + 1);
            }
            let inside = [&origin[..origin.len() - 1], std::slice::from_ref(name)].concat();
            let found = (alias == "*").then(|| self.origin(&base, &inside, depth + 1)).flatten();
            if found.as_ref().is_some_and(|module| self.files[module].defines.contains(name)) {
                return found;
            }
        }
        Some(base)
    }
}

impl File {
    fn read(name: String, source: &Source) -> Self {
        let code: Vec<&str> = source.code().map(|(_, line)| line.split("//").next().unwrap()).collect();
        let code = code.join("\n");
        let mut file = Self { name, imports: Vec::new(), reexports: Vec::new(), defines: definitions(&code) };
        for statement in code.split_inclusive(';') {
            let Some((before, tree)) = use_statement(statement) else {
                file.imports.extend(paths(statement));
                continue;
            };
            file.imports.extend(paths(before));
            let mut names = Vec::new();
            expand(&[], tree, &mut names);
            let visibility = before.rsplit('\n').next().unwrap_or_default().trim();
            let is_handed_on = visibility.starts_with("pub");
            // A system's `mod.rs` only re-exports.
            if !(is_handed_on && file.name.starts_with("sys/")) {
                file.imports.extend(names.iter().map(|(_, path)| path.clone()));
            }
            if is_handed_on {
                file.reexports.extend(names);
            }
        }
        file
    }
}

/// Splits off what is imported.
fn use_statement(statement: &str) -> Option<(&str, &str)> {
    let at =
        statement.rfind("use ").filter(|&at| statement[..at].is_empty() || statement[..at].ends_with([' ', '\n']))?;
    Some((&statement[..at], statement[at + 4..].strip_suffix(';')?))
}

/// Lists the paths of a tree of imports, each with the name that it gets.
fn expand(above: &[String], tree: &str, found: &mut Vec<(String, Path)>) {
    let (names, list) = tree.split_once('{').map_or((tree, None), |(names, list)| (names, list.rsplit_once('}')));
    let (path, alias) = names.split_once(" as ").map_or((names, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = [above, &parts(path)].concat();
    let Some((list, _)) = list else {
        path.pop_if(|last| last == "self");
        let alias = alias.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
        return found.push((alias, path));
    };
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[start..at].trim().is_empty() {
                    expand(&path, &list[start..at], found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn parts(path: &str) -> Path {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Finds the paths in code.
fn paths(code: &str) -> impl Iterator<Item = Path> {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    words.filter(|word| word.contains("::") && !word.starts_with(':')).map(parts)
}

fn definitions(code: &str) -> BTreeSet<String> {
    let words: Vec<&str> = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static"];
    words.windows(2).filter(|pair| kinds.contains(&pair[0])).map(|pair| pair[1].to_owned()).collect()
}

/// Returns those that import themselves by way of others.
pub(super) fn in_circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<&str> {
    let is_in_one = |name: &&String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![*name]);
        while let Some(at) = next.pop() {
            next.extend(imports.get(at).into_iter().flatten().filter(|other| reached.insert(*other)));
        }
        reached.contains(*name)
    };
    imports.keys().filter(is_in_one).map(String::as_str).collect()
}

#[test]
fn imports_lead_to_what_is_defined() {
    let file = |path: &str, text: &str| Source { path: format!("crates/x/src/{path}").into(), text: text.to_owned() };
    let sources = [
        file("lib.rs", "mod a;\nmod b;\npub use a::Name;"),
        file("a/mod.rs", "mod c;\npub use self::c::{Name, other as Another};\npub(crate) use c::*;"),
        file("a/c.rs", "use crate::b::{self, d::{E}};\nuse std::fs;\npub struct Name;\nfn third() {}"),
        file("b/mod.rs", "mod d;\nfn f() { d::g() }\n// crate::a\n#[cfg(test)]\nmod tests { use crate::a; }"),
        file("b/d.rs", "fn g() { crate::a::third(super::f) }\nstruct E;"),
    ];
    let edges = Imports::of("x", &sources).edges();
    let of = |name: &str| edges[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("lib.rs"), ["a/c.rs"]);
    assert_eq!(of("a/mod.rs"), ["a/c.rs"]);
    assert_eq!(of("a/c.rs"), ["b/d.rs", "b/mod.rs"]);
    assert_eq!(of("b/mod.rs"), ["b/d.rs"]);
    assert_eq!(of("b/d.rs"), ["a/c.rs", "b/mod.rs"]);
    assert_eq!(in_circles(&edges), ["a/c.rs", "b/d.rs", "b/mod.rs"]);
}
