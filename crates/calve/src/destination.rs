//! Finds the targets of `calve cp SRC... DST` like GNU cp, with the differences listed in `--help`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf, is_separator};

use calve_core::internal::ShownPath;

use crate::failure::{Failure, USAGE};
use crate::real_path;

/// Returns the source and target of each clone, in order. With `into` (-t) all `paths` are sources.
pub(crate) fn targets(
    paths: &[PathBuf],
    into: Option<&Path>,
    exactly: bool,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    if let Some(into) = into {
        return several(paths, into);
    }
    let (dst, sources) = match paths {
        [] => return usage("name a source and a destination"),
        [src] => return usage(format!("name a destination after `{}`", ShownPath(src))),
        [sources @ .., dst] => (dst, sources),
    };
    if exactly && sources.len() > 1 {
        return usage("-T takes one source and one destination");
    }
    if let [src] = sources {
        // A template has no name in the file system.
        let exactly = exactly || is_template(src);
        return Ok(vec![(src.clone(), target(src, dst, exactly)?)]);
    }
    several(sources, dst)
}

/// Places each source in `dst` under its name. Refuses duplicates in advance: `--replace` would lose one clone.
fn several(sources: &[PathBuf], dst: &Path) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    if !dst.is_dir() {
        return usage(format!("`{}` must be an existing directory to clone into", ShownPath(dst)));
    }
    let mut taken = HashMap::new();
    let mut targets = Vec::new();
    for src in sources {
        if is_template(src) {
            return usage(format!(
                "`{}` is a template: name the target of each with a command of its own",
                ShownPath(src)
            ));
        }
        let Some(name) = last(src) else {
            return usage(format!("cannot name the clone of `{}` in `{}`", ShownPath(src), ShownPath(dst)));
        };
        let target = dst.join(name);
        if let Some(other) = taken.insert(name, src) {
            let (target, other, src) = (ShownPath(&target), ShownPath(other), ShownPath(src));
            return usage(format!("`{other}` and `{src}` would both become `{target}`"));
        }
        targets.push((src.clone(), target));
    }
    if let Some((lost, (src, target))) = source_that_goes(&targets) {
        let (target, src, lost) = (ShownPath(target), ShownPath(src), ShownPath(lost));
        return usage(format!("`{lost}` is in `{target}`, which the clone of `{src}` would replace"));
    }
    Ok(targets)
}

/// Finds a source inside another source's existing target, or equal to it; returns both.
fn source_that_goes(targets: &[(PathBuf, PathBuf)]) -> Option<(&Path, &(PathBuf, PathBuf))> {
    // Follows no link, except for a source that ends in a slash.
    let place = |path: &Path| Some(fs_err::canonicalize(real_path::parent(path)).ok()?.join(last(path)?));
    let existing = targets.iter().filter(|(_, target)| fs_err::symlink_metadata(target).is_ok());
    let existing: HashMap<PathBuf, _> = existing.filter_map(|one| Some((place(&one.1)?, one))).collect();
    if existing.is_empty() {
        return None;
    }
    targets.iter().find_map(|(lost, _)| {
        let followed = ends_with_slash(lost).then(|| fs_err::canonicalize(lost).ok()).flatten();
        let places: Vec<PathBuf> = place(lost).into_iter().chain(followed).collect();
        let mut around = places.iter().flat_map(|place| place.ancestors()).filter_map(|above| existing.get(above));
        Some((lost.as_path(), *around.find(|(src, _)| src != lost)?))
    })
}

fn target(src: &Path, dst: &Path, exactly: bool) -> Result<PathBuf, Failure> {
    if exactly || !dst.is_dir() {
        // A slash after a missing name asks for a directory, which only a directory can become.
        if ends_with_slash(dst) && !dst.is_dir() && !src.is_dir() && !is_template(src) {
            return usage(format!("`{}` is not a directory", ShownPath(dst)));
        }
        return Ok(without_slashes(dst));
    }
    // `src/.` means its contents: cp merges them into the directory, but nothing is ever merged here.
    let Some(name) = last(src) else { return Ok(without_slashes(dst)) };
    let is_itself = !ends_with_slash(dst) && last(dst) == Some(name);
    Ok(if is_itself { dst.to_path_buf() } else { dst.join(name) })
}

fn usage<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::stated(USAGE, text, "see `calve cp --help`"))
}

fn is_template(src: &Path) -> bool {
    calve_core::template::template_name(src).is_some()
}

/// Returns the last name of a path, or `None` if the path ends in `.` or `..`.
fn last(path: &Path) -> Option<&OsStr> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut parts = bytes.split(|&byte| is_separator(char::from(byte))).rev();
    if parts.find(|part| !part.is_empty()) == Some(b".") {
        return None;
    }
    match path.components().next_back() {
        Some(Component::Normal(name)) => Some(name),
        _ => None,
    }
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(char::from(byte)))
}

fn without_slashes(path: &Path) -> PathBuf {
    match (path.components().next_back(), path.parent()) {
        (Some(Component::Normal(name)), Some(above)) if ends_with_slash(path) => above.join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves `dst` in a folder that holds the directories `src` and `there` (with a directory `src` in it).
    fn resolved(src: &str, dst: &str, exactly: bool) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for directory in ["src", "there/src"] {
            fs_err::create_dir_all(folder.path().join(directory)).unwrap();
        }
        fs_err::write(folder.path().join("file"), "x").unwrap();
        let join = |name: &str| PathBuf::from(format!("{}/{name}", folder.path().display()));
        let found = targets(&[join(src), join(dst)], None, exactly).ok()?;
        let path = found[0].1.strip_prefix(folder.path()).unwrap().to_path_buf();
        Some(path.to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/"))
    }

    #[test]
    fn the_destination_is_understood_as_cp_does_with_the_stated_differences() {
        let cases = [
            ("src", "new", false, Some("new")),
            ("src", "new/", false, Some("new")),
            ("file", "new/", false, None),
            ("src", "there", false, Some("there/src")),
            ("src/", "there/", false, Some("there/src")),
            ("src", "there/src", false, Some("there/src")),
            ("src", "there/src/", false, Some("there/src/src")),
            ("src", "there", true, Some("there")),
            ("src/.", "there", false, Some("there")),
            ("src/.", "new", false, Some("new")),
            ("file", "file", false, Some("file")),
        ];
        for (src, dst, exactly, expected) in cases {
            assert_eq!(resolved(src, dst, exactly).as_deref(), expected, "{src} {dst} {exactly}");
        }
    }
}
