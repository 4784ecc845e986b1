//! A template's key: templates with one key have the same contents.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use crate::error::{AtPath as _, Error, Remedy, Result};
use crate::files::home::not_utf8;
use crate::registry::template::manifest::names;

/// Raised when templates are built in another way.
const FORMAT: &str = "calve.template/1";

/// Hashes a template's ingredients: texts, and the files below a directory that match patterns.
pub fn recipe_word(texts: &[&str], inputs: &[String], directory: &Path) -> Result<String> {
    let mut key = Key::new();
    texts.iter().for_each(|text| key.add(text));
    key.add_own_inputs(inputs, directory)?;
    Ok(key.finish())
}

/// The ingredients of a template. Each part is hashed with its length, so that parts cannot run together.
pub(crate) struct Key(blake3::Hasher);

impl Key {
    pub(crate) fn new() -> Self {
        let mut key = Self(blake3::Hasher::new());
        key.add(FORMAT);
        key
    }

    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(crate) fn add_command(&mut self, command: &[OsString]) {
        self.add(command.len().to_string());
        for word in command {
            self.add(word.as_bytes());
        }
    }

    /// Adds names and contents of the matching files. Fails if a pattern matches none.
    pub(crate) fn add_inputs(&mut self, patterns: &[String], directory: &Path) -> Result<()> {
        for pattern in patterns {
            let files = matching(pattern, directory)?;
            if files.is_empty() {
                return Err(Error::NoInput(pattern.clone()));
            }
            self.add(pattern);
            for file in files {
                self.add(file.strip_prefix(directory).unwrap_or(&file).as_os_str().as_bytes());
                let mut hasher = blake3::Hasher::new();
                let read = fs_err::File::open(&file).and_then(|file| hasher.update_reader(file).map(drop));
                read.at("read", &file)?;
                self.add(hasher.finalize().as_bytes());
            }
        }
        Ok(())
    }

    pub(crate) fn add_directory(&mut self, directory: &Path) -> Result<()> {
        self.add(directory.as_os_str().as_bytes());
        let mut files = Vec::new();
        below(directory, &mut files)?;
        for file in files {
            let found = fs_err::symlink_metadata(&file).at("look at", &file)?;
            self.add(file.as_os_str().as_bytes());
            self.add(format!("{} {}.{}", found.len(), found.mtime(), found.mtime_nsec()));
        }
        Ok(())
    }

    /// Adds inputs like [`Key::add_inputs`], but refuses links that lead out of `directory`.
    fn add_own_inputs(&mut self, patterns: &[String], directory: &Path) -> Result<()> {
        let real = |path: &Path| fs_err::canonicalize(path).at("find", path);
        let root = real(directory)?;
        for pattern in patterns {
            let plain = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{']));
            let start = plain.fold(directory.to_path_buf(), |path, part| path.join(part));
            if start.exists() && !real(&start)?.starts_with(&root) {
                return Err(Error::NoInput(pattern.clone()));
            }
            for link in matching(pattern, directory)?.iter().filter(|file| file.is_symlink()) {
                if !real(link)?.starts_with(&root) {
                    return Err(Error::NoInput(pattern.clone()));
                }
            }
        }
        self.add_inputs(patterns, directory)
    }

    pub(crate) fn finish(self) -> String {
        self.0.finalize().to_hex()[..32].to_owned()
    }
}

/// Lists the files that match a pattern, in order. A directory matches all files below it.
fn matching(pattern: &str, directory: &Path) -> Result<Vec<PathBuf>> {
    let whole = directory.join(pattern);
    if whole.is_file() {
        return Ok(vec![whole]);
    }
    let mut files = Vec::new();
    if whole.is_dir() {
        below(&whole, &mut files)?;
        return Ok(files);
    }
    let text = whole.to_str().ok_or_else(|| not_utf8(&whole))?;
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    let bad = |error| format!("the pattern `{}` is not valid: {error}", pattern.escape_default());
    let matcher = glob.map_err(|error| Error::usage(bad(error), Remedy::ReadHelp))?.compile_matcher();
    // No part before the first wildcard can vary.
    let plain = |part: &Component<'_>| !part.as_os_str().as_bytes().iter().any(|byte| b"*?[{".contains(byte));
    let root: PathBuf = whole.components().take_while(plain).collect();
    if root.is_dir() {
        below(&root, &mut files)?;
    }
    files.retain(|file| matcher.is_match(file));
    Ok(files)
}

fn below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for name in names(directory)? {
        let path = directory.join(name);
        let found = fs_err::symlink_metadata(&path).at("look at", &path)?;
        if found.is_dir() {
            below(&path, files)?;
        } else if found.is_file() || path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    fn key(patterns: &[&str], directory: &Path) -> Result<String> {
        let mut key = Key::new();
        key.add_inputs(&patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>(), directory)?;
        Ok(key.finish())
    }

    #[test]
    fn a_key_follows_contents_and_names() {
        let slot = tempfile::tempdir().unwrap();
        let path = |name: &str| slot.path().join(name);
        fs::create_dir_all(path("sql/deep")).unwrap();
        fs::write(path("sql/1.sql"), "one").unwrap();
        fs::write(path("sql/deep/2.sql"), "two").unwrap();
        fs::write(path("sql/notes.txt"), "three").unwrap();
        let (flat, deep, all) = (["sql/*.sql"], ["sql/**/*.sql"], ["sql"]);
        let before = [flat, deep, all].map(|patterns| key(&patterns, slot.path()).unwrap());
        assert_eq!(before, [flat, deep, all].map(|patterns| key(&patterns, slot.path()).unwrap()));
        fs::write(path("sql/deep/2.sql"), "2").unwrap();
        let after = [flat, deep, all].map(|patterns| key(&patterns, slot.path()).unwrap());
        assert_eq!(before[0], after[0]);
        assert!(before[1] != after[1] && before[2] != after[2]);
        fs::rename(path("sql/1.sql"), path("sql/0.sql")).unwrap();
        assert_ne!(before[0], key(&flat, slot.path()).unwrap());
        assert!(key(&["none/*.sql"], slot.path()).is_err());
    }

    #[test]
    fn parts_do_not_run_together() {
        let of = |words: &[&str]| {
            let mut key = Key::new();
            key.add_command(&words.iter().map(OsString::from).collect::<Vec<_>>());
            key.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
