//! The lockfiles of uv, poetry, pdm and pipenv, and the one that all of them can write (PEP 751).

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::locked::{Locked, MAIN, normalised};

fn string<'v>(table: &'v DeTable<'_>, key: &str) -> Option<&'v str> {
    table.get(key)?.get_ref().as_str()
}

fn table<'v, 'd>(table: &'v DeTable<'d>, key: &str) -> Option<&'v DeTable<'d>> {
    table.get(key)?.get_ref().as_table()
}

fn list<'v, 'd>(table: &'v DeTable<'d>, key: &str) -> impl Iterator<Item = &'v Spanned<DeValue<'d>>> {
    table.get(key).and_then(|value| value.get_ref().as_array()).into_iter().flatten()
}

fn strings<'v>(table: &'v DeTable<'_>, key: &str) -> impl Iterator<Item = &'v str> {
    list(table, key).filter_map(|value| value.get_ref().as_str())
}

fn tables<'v, 'd>(table: &'v DeTable<'d>, key: &str) -> impl Iterator<Item = &'v DeTable<'d>> {
    list(table, key).filter_map(|value| value.get_ref().as_table())
}

/// Packages of an index have the version that the lockfile says. The version of a local one changes as the project goes on.
fn version(package: &DeTable<'_>, is_local: bool) -> Option<String> {
    string(package, "version").filter(|_| !is_local).map(str::to_owned)
}

/// uv resolves for all platforms, and names what each package needs. So groups are followed from the project's own packages.
pub(crate) fn uv(text: &str) -> Option<Vec<Locked>> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let is_known = document.get("version")?.get_ref().as_integer()?.as_str() == "1";
    let packages: Vec<&DeTable<'_>> = tables(&document, "package").filter(|_| is_known).collect();
    let mut locked: Vec<Locked> = packages.iter().map(|package| uv_package(package)).collect();
    for at in 0..packages.len() {
        if !is_projects_own(packages[at]) {
            continue;
        }
        let groups = ["dev-dependencies", "optional-dependencies"].map(|key| table(packages[at], key));
        let groups = groups.into_iter().flatten().flat_map(|groups| groups.keys().map(move |group| (groups, group)));
        let groups = groups.map(|(all, group)| (group.get_ref().to_string(), tables(all, group.get_ref()).collect()));
        let own = (MAIN.to_owned(), tables(packages[at], "dependencies").collect());
        for (group, needed) in groups.chain([own]) {
            follow(&packages, &mut locked, &group, needed);
        }
    }
    is_known.then_some(locked)
}

fn is_projects_own(package: &DeTable<'_>) -> bool {
    table(package, "source")
        .is_some_and(|source| ["editable", "virtual"].iter().any(|kind| source.get(*kind).is_some()))
}

fn uv_package(package: &DeTable<'_>) -> Locked {
    let source = table(package, "source");
    let is_local =
        source.is_some_and(|source| !["registry", "git", "url"].iter().any(|kind| source.get(*kind).is_some()));
    let revision = source.and_then(|source| string(source, "git")?.rsplit_once('#'));
    let markers: Vec<&str> = strings(package, "resolution-markers").collect();
    Locked {
        name: normalised(string(package, "name").unwrap_or_default()),
        version: version(package, is_local),
        revision: revision.map(|(_, commit)| commit.to_owned()),
        marker: (!markers.is_empty()).then(|| markers.join(" or ")),
        groups: Vec::new(),
    }
}

/// Adds the group to all that is needed without a condition. What has one may be missing.
fn follow(packages: &[&DeTable<'_>], locked: &mut [Locked], group: &str, needed: Vec<&DeTable<'_>>) {
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, one) in locked.iter().enumerate() {
        by_name.entry(one.name.clone()).or_default().push(at);
    }
    let mut open = needed;
    while let Some(next) = open.pop() {
        if next.get("marker").is_some() {
            continue;
        }
        let name = normalised(string(next, "name").unwrap_or_default());
        let Some(all) = by_name.get(&name) else { continue };
        for &at in all {
            let is_meant =
                string(next, "version").is_none_or(|version| string(packages[at], "version") == Some(version));
            if is_meant && !locked[at].groups.iter().any(|known| known == group) && !is_projects_own(packages[at]) {
                locked[at].groups.push(group.to_owned());
                open.extend(tables(packages[at], "dependencies"));
            }
        }
    }
}

/// Since version 2.1 of its lockfile, poetry says for each package who needs it where.
pub(crate) fn poetry(text: &str) -> Option<Vec<Locked>> {
    let document = DeTable::parse(text).ok()?.into_inner();
    string(table(&document, "metadata")?, "lock-version").filter(|version| version.starts_with(['1', '2']))?;
    let one = |package: &DeTable<'_>| {
        let source = table(package, "source");
        let kind = source.and_then(|source| string(source, "type"));
        let is_optional = package.get("optional").is_some_and(|value| value.get_ref().as_bool() != Some(false));
        Some(Locked {
            name: normalised(string(package, "name")?),
            version: version(package, kind == Some("directory")),
            revision: source.and_then(|source| string(source, "resolved_reference")).map(str::to_owned),
            // There may be one for each group.
            marker: package.get("markers").map(|value| value.get_ref().as_str().unwrap_or_default().to_owned()),
            groups: groups(package, "main").filter(|_| !is_optional).collect(),
        })
    };
    Some(tables(&document, "package").filter_map(one).collect())
}

fn groups<'v>(package: &'v DeTable<'_>, main: &'v str) -> impl Iterator<Item = String> {
    strings(package, "groups").map(move |group| if group == main { MAIN } else { group }.to_owned())
}

/// pdm says so unless its strategy leaves it out.
pub(crate) fn pdm(text: &str) -> Option<Vec<Locked>> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let metadata = table(&document, "metadata")?;
    string(metadata, "lock_version").filter(|version| version.starts_with("4."))?;
    let is_told = strings(metadata, "strategy").any(|word| word == "inherit_metadata");
    let one = |package: &DeTable<'_>| {
        Some(Locked {
            name: normalised(string(package, "name")?),
            version: version(package, package.get("path").is_some()),
            revision: string(package, "revision").map(str::to_owned),
            marker: string(package, "marker").map(str::to_owned),
            groups: groups(package, "default").filter(|_| is_told).collect(),
        })
    };
    Some(tables(&document, "package").filter_map(one).collect())
}

pub(crate) fn pylock(text: &str) -> Option<Vec<Locked>> {
    let document = DeTable::parse(text).ok()?.into_inner();
    string(&document, "lock-version").filter(|version| version.starts_with("1."))?;
    let one = |package: &DeTable<'_>| {
        Some(Locked {
            name: normalised(string(package, "name")?),
            version: version(package, package.get("directory").is_some()),
            revision: table(package, "vcs").and_then(|vcs| string(vcs, "commit-id")).map(str::to_owned),
            marker: string(package, "marker").map(str::to_owned),
            groups: vec![MAIN.to_owned()],
        })
    };
    Some(tables(&document, "packages").filter_map(one).collect())
}

pub(crate) fn pipenv(text: &str) -> Option<Vec<Locked>> {
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    let document = document.as_object().filter(|document| document.contains_key("default"))?;
    let groups = document.iter().filter(|(group, _)| *group != "_meta");
    let all =
        groups.flat_map(|(group, packages)| packages.as_object().into_iter().flatten().map(move |one| (group, one)));
    let one = |(group, (name, package)): (&String, (&String, &serde_json::Value))| {
        let said = |key: &str| package.get(key).and_then(serde_json::Value::as_str);
        Locked {
            name: normalised(name),
            version: said("version").and_then(|version| version.strip_prefix("==")).map(str::to_owned),
            revision: said("ref").map(str::to_owned),
            marker: said("markers").map(str::to_owned),
            groups: vec![if group == "default" { MAIN.to_owned() } else { group.clone() }],
        }
    };
    Some(all.map(one).collect())
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
[[package]]
name = "mine"
version = "1.0"
source = { editable = "." }
dependencies = [{ name = "click", version = "8.5.1" }, { name = "local" }]
[package.dev-dependencies]
dev = [{ name = "pytest" }, { name = "deep" }]
[package.optional-dependencies]
fast = [{ name = "pytest" }]
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
            "pytest 8 dev fast",
        ];
        assert_eq!(shown(uv(text)), expected);
        assert_eq!(uv(&text.replace("version = 1\n", "version = 2\n")), None);

        let text = "[[package]]\nname = \"A_b\"\nversion = \"1\"\noptional = false\ngroups = [\"main\", \"dev\"]\nmarkers = \"os_name == 'nt'\"\n\
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
