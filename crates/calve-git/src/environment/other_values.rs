use std::path::{Path, PathBuf};

use calve_core::internal::json::{As, ReceiptPath};
use serde::Serialize;

use crate::directory::Directory;
use crate::environment::is_own_env_file;

/// A carried file with the values of another worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "OtherValuesReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherValues {
    /// The path in the worktree.
    #[serde(rename = "path", with = "As::<ReceiptPath>")]
    pub file: PathBuf,
    /// The names of the variables.
    pub variables: Vec<String>,
}

/// Finds carried `.env` and `.env.*` files that give one of the worktree's variables another value.
pub fn other_values(root: &Path, carried: &[PathBuf], variables: &[(String, String)]) -> Vec<OtherValues> {
    let is_env_file = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == ".env" || name.starts_with(".env."))
    };
    let candidates = carried.iter().filter(is_env_file).filter(|path| !is_own_env_file(root, path));
    let found = candidates.filter_map(|path| {
        let text = Directory::open(root, path.parent()?)?.read(path.file_name()?)?;
        let other = variables.iter().filter(|(name, value)| set(&text, name).is_some_and(|other| other != value));
        let variables: Vec<String> = other.map(|(name, _)| name.clone()).collect();
        (!variables.is_empty()).then(|| OtherValues { file: path.clone(), variables })
    });
    found.collect()
}

fn set<'t>(text: &'t str, variable: &str) -> Option<&'t str> {
    let value = text.lines().rev().find_map(|line| {
        let line = line.trim_start();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        (name.trim() == variable).then(|| value.trim())
    })?;
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
        _ => value.split(" #").next().map(str::trim_end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_set_a_variable_is_read() {
        for (text, value) in [
            ("A=1", Some("1")),
            ("\n  export A = '1 # 2' # 3\n", Some("1 # 2")),
            ("A=1\nA=\"2\"\n", Some("2")),
            ("A=1 # one\r\n", Some("1")),
            ("A=", Some("")),
            ("A='", Some("")),
            ("#A=1\nAB=1\nB=A=1\nA\n", None),
        ] {
            assert_eq!(set(text, "A"), value, "{text}");
        }
    }
}
