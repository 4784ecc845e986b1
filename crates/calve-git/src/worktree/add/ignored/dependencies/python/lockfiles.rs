//! Packages in Python lockfiles: those of uv, poetry, pdm and pipenv, and the common format (PEP 751).

use std::collections::HashMap;

use serde_json::Value;

use super::super::fit::listed;

/// The group of the project's own needs. Others are for development, documentation and the like, or extras.
pub(super) const MAIN: &str = "";
/// The interpreter among the packages: no package has this name.
pub(super) const PYTHON: &str = "(python)";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Locked {
    /// Normalised.
    pub(super) name: String,
    /// A version or specifiers (PEP 440). `None`: any.
    pub(super) version: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) marker: Option<String>,
    /// Groups that need it. Empty: unknown, and it may be missing.
    pub(super) groups: Vec<String>,
}

impl Locked {
    /// Reads the common fields. The version of an index's package is the lockfile's, but that of a local one changes.
    fn from_package(package: &Value, is_local: bool) -> Option<Locked> {
        let version = text_of(package, "version").filter(|_| !is_local);
        Some(Locked { name: normalised(package["name"].as_str()?), version, ..Locked::default() })
    }
}

/// Returns the interpreters that a lockfile, or a part of it, is for, as a package.
fn python(table: &Value, key: &str) -> Option<Locked> {
    Some(Locked { name: PYTHON.to_owned(), version: Some(text_of(table, key)?), ..Locked::default() })
}

/// Parses TOML without the packages' files, which are most of a lockfile.
fn document(text: &str) -> Option<Value> {
    let is_file = |line: &str| {
        let mut starts = ["    { url = ", "    {url = ", "    {file = ", "sdist = {"].iter();
        starts.any(|start| line.starts_with(start)) && line.trim_end_matches(',').ends_with('}')
    };
    toml::from_str(&text.lines().filter(|line| !is_file(line)).collect::<Vec<_>>().join("\n")).ok()
}

/// Returns the common form of all spellings of a name (PEP 503).
pub(super) fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn text_of(table: &Value, key: &str) -> Option<String> {
    table[key].as_str().map(str::to_owned)
}

/// uv resolves for all platforms, and lists each package's needs: groups are followed from the project's own packages.
pub(crate) fn uv(text: &str) -> Option<Vec<Locked>> {
    let document = document(text).filter(|document| document["version"] == 1)?;
    let packages: Vec<&Value> = listed(&document, "package").collect();
    let mut locked: Vec<Locked> = packages.iter().map(|package| uv_package(package)).collect();
    for own in packages.iter().filter(|package| is_projects_own(package)) {
        for kind in ["dev-dependencies", "optional-dependencies"] {
            for group in own[kind].as_object().into_iter().flat_map(|groups| groups.keys()) {
                follow(&packages, &mut locked, group, listed(&own[kind], group).collect());
            }
        }
        follow(&packages, &mut locked, MAIN, listed(own, "dependencies").collect());
    }
    locked.extend(python(&document, "requires-python"));
    Some(locked)
}

fn is_projects_own(package: &Value) -> bool {
    ["editable", "virtual"].iter().any(|kind| !package["source"][*kind].is_null())
}

fn uv_package(package: &Value) -> Locked {
    let source = &package["source"];
    let is_local = source.is_object() && ["registry", "git", "url"].iter().all(|kind| source[*kind].is_null());
    let revision = source["git"].as_str().and_then(|address| address.rsplit_once('#'));
    let markers: Vec<&str> = listed(package, "resolution-markers").filter_map(Value::as_str).collect();
    Locked {
        revision: revision.map(|(_, commit)| commit.to_owned()),
        marker: (!markers.is_empty()).then(|| markers.join(" or ")),
        ..Locked::from_package(package, is_local).unwrap_or_default()
    }
}

/// Adds the group to everything needed unconditionally. Conditional needs may be missing.
fn follow(packages: &[&Value], locked: &mut [Locked], group: &str, needed: Vec<&Value>) {
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, one) in locked.iter().enumerate() {
        by_name.entry(one.name.clone()).or_default().push(at);
    }
    let mut open = needed;
    while let Some(next) = open.pop() {
        if !next["marker"].is_null() {
            continue;
        }
        let name = normalised(next["name"].as_str().unwrap_or_default());
        for &at in by_name.get(&name).into_iter().flatten() {
            let is_meant = next["version"].as_str().is_none_or(|version| packages[at]["version"] == version);
            if is_meant && !locked[at].groups.iter().any(|known| known == group) && !is_projects_own(packages[at]) {
                locked[at].groups.push(group.to_owned());
                open.extend(listed(packages[at], "dependencies"));
            }
        }
    }
}

/// poetry notes since version 2.1 of its lockfile which groups need a package, and where.
pub(crate) fn poetry(text: &str) -> Option<Vec<Locked>> {
    let document = document(text)?;
    document["metadata"]["lock-version"].as_str().filter(|version| version.starts_with(['1', '2']))?;
    let one = |package: &Value| {
        let (source, markers) = (&package["source"], &package["markers"]);
        let is_needed = matches!(package["optional"], Value::Null | Value::Bool(false));
        Some(Locked {
            revision: text_of(source, "resolved_reference"),
            // There may be one for each group.
            marker: (!markers.is_null()).then(|| markers.as_str().unwrap_or_default().to_owned()),
            groups: groups(package, "main").filter(|_| is_needed).collect(),
            ..Locked::from_package(package, source["type"] == "directory")?
        })
    };
    Some(listed(&document, "package").filter_map(one).collect())
}

fn groups<'v>(package: &'v Value, main: &'v str) -> impl Iterator<Item = String> {
    let named = listed(package, "groups").filter_map(Value::as_str);
    named.map(move |group| if group == main { MAIN } else { group }.to_owned())
}

/// pdm notes the groups, unless its strategy leaves them out.
pub(crate) fn pdm(text: &str) -> Option<Vec<Locked>> {
    let document = document(text)?;
    let metadata = &document["metadata"];
    metadata["lock_version"].as_str().filter(|version| version.starts_with("4."))?;
    let pythons = listed(metadata, "targets").filter_map(|target| python(target, "requires_python"));
    let inherits_metadata = listed(metadata, "strategy").any(|word| word == "inherit_metadata");
    let one = |package: &Value| {
        Some(Locked {
            revision: text_of(package, "revision"),
            marker: text_of(package, "marker"),
            groups: groups(package, "default").filter(|_| inherits_metadata).collect(),
            ..Locked::from_package(package, !package["path"].is_null())?
        })
    };
    Some(listed(&document, "package").filter_map(one).chain(pythons).collect())
}

pub(crate) fn pylock(text: &str) -> Option<Vec<Locked>> {
    let document = document(text)?;
    document["lock-version"].as_str().filter(|version| version.starts_with("1."))?;
    let one = |package: &Value| {
        Some(Locked {
            revision: text_of(&package["vcs"], "commit-id"),
            marker: text_of(package, "marker"),
            groups: vec![MAIN.to_owned()],
            ..Locked::from_package(package, !package["directory"].is_null())?
        })
    };
    Some(listed(&document, "packages").filter_map(one).chain(python(&document, "requires-python")).collect())
}

pub(crate) fn pipenv(text: &str) -> Option<Vec<Locked>> {
    let document: Value = serde_json::from_str(text).ok()?;
    document.get("default")?;
    let groups = document.as_object()?.iter().filter(|(group, _)| *group != "_meta");
    let all = groups.flat_map(|(group, packages)| {
        packages.as_object().into_iter().flatten().map(move |(name, package)| Locked {
            name: normalised(name),
            version: package["version"].as_str().and_then(|version| version.strip_prefix("==")).map(str::to_owned),
            revision: text_of(package, "ref"),
            marker: text_of(package, "markers"),
            groups: vec![if group == "default" { MAIN.to_owned() } else { group.clone() }],
        })
    });
    Some(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package in a few words: `name version groups marker`.
    fn shown(locked: Option<Vec<Locked>>) -> Vec<String> {
        let one = |one: Locked| {
            let version = one.version.unwrap_or_else(|| "any".into())
                + &one.revision.map(|revision| format!("@{revision}")).unwrap_or_default();
            let groups: Vec<_> = one.groups.iter().map(|group| if group == MAIN { "main" } else { group }).collect();
            format!(
                "{} {version} {}",
                one.name,
                [&groups[..], &Vec::from_iter(one.marker.as_deref())].concat().join(" ")
            )
        };
        locked.unwrap().into_iter().map(one).map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn the_lockfile_of_each_tool_is_read() {
        let text = r#"version = 1
[[package]]
name = "click"
version = "8.1.8"
source = { registry = "https://h" }
resolution-markers = ["python_full_version < '3.10'", "os_name == 'nt'"]
dependencies = [{ name = "colorama", marker = "sys_platform == 'win32'" }]
[[package]]
name = "Click"
version = "8.5.1"
source = { registry = "https://h" }
dependencies = [{ name = "deep" }]
[[package]]
name = "colorama"
version = "0.4.6"
source = { registry = "https://h" }
[[package]]
name = "deep"
version = "1"
source = { git = "https://h/deep?rev=main#abc" }
dependencies = [{ name = "click", version = "8.5.1" }]
sdist = { url = "https://h/deep-1.tar.gz", hash = "sha256:1" }
wheels = [
    { url = "https://h/deep-1.whl", hash = "sha256:2" },
]
[[package]]
name = "mine"
version = "1.0"
source = { editable = "." }
dependencies = [{ name = "click", version = "8.5.1" }, { name = "local" }]
[package.dev-dependencies]
dev = [{ name = "pytest" }, { name = "deep" }]
[package.optional-dependencies]
files = [
    { name = "pytest" },
]
[[package]]
name = "local"
version = "3"
source = { directory = "local" }
[[package]]
name = "pytest"
version = "8"
source = { registry = "https://h" }
"#;
        let expected = [
            "click 8.1.8 python_full_version < '3.10' or os_name == 'nt'",
            "click 8.5.1 dev main",
            "colorama 0.4.6",
            "deep 1@abc dev main",
            "mine any",
            "local any main",
            "pytest 8 dev files",
        ];
        assert_eq!(shown(uv(text)), expected);
        assert_eq!(uv(&text.replace("version = 1\n", "version = 2\n")), None);

        let text = "[[package]]\nname = \"A_b\"\nversion = \"1\"\noptional = false\ngroups = [\"main\", \"dev\"]\nmarkers = \"os_name == 'nt'\"\nfiles = [\n    {file = \"a.whl\", hash = \"sha256:1\"},\n]\n\
            [[package]]\nname = \"c\"\nversion = \"2\"\noptional = true\ngroups = [\"main\"]\n[package.source]\ntype = \"git\"\nresolved_reference = \"abc\"\n\
            [[package]]\nname = \"d\"\nversion = \"3\"\noptional = false\nmarkers = {main = \"x\"}\n[metadata]\nlock-version = \"2.1\"\n";
        assert_eq!(shown(poetry(text)), ["a-b 1 main dev os_name == 'nt'", "c 2@abc", "d 3 "].map(str::trim_end));
        assert_eq!(poetry(&text.replace("2.1", "3.0")), None);
        let text = "[metadata]\nstrategy = [\"inherit_metadata\"]\nlock_version = \"4.5.0\"\n[[package]]\nname = \"a\"\nversion = \"1\"\ngroups = [\"default\", \"dev\"]\n\
            [[package]]\nname = \"b\"\nversion = \"2\"\ngroups = [\"dev\"]\nmarker = \"os_name == 'nt'\"\nrevision = \"abc\"\n";
        assert_eq!(shown(pdm(text)), ["a 1 main dev", "b 2@abc dev os_name == 'nt'"]);
        assert_eq!(shown(pdm(&text.replace("inherit_metadata", "cross_platform")))[0], "a 1");

        let text = "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n[[packages]]\nname = \"b\"\nmarker = \"'x' in extras\"\nvcs = { commit-id = \"abc\" }\n";
        assert_eq!(shown(pylock(text)), ["a 1 main", "b any@abc main 'x' in extras"]);

        let text = r#"{"_meta": {"x": {}}, "default": {"A.b": {"version": "==1", "markers": "os_name == 'nt'"}, "c": {"ref": "abc"}}, "develop": {"d": {"version": "==2"}}}"#;
        assert_eq!(shown(pipenv(text)), ["a-b 1 main os_name == 'nt'", "c any@abc main", "d 2 develop"]);
        for read in [uv, poetry, pdm, pylock, pipenv] {
            for nonsense in ["", "x", "{}", "[]", "version = 1\npackage = 7", "\u{0}"] {
                assert!(read(nonsense).is_none_or(|all| all.is_empty()), "{nonsense}");
            }
        }
    }
}
