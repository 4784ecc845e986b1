//! Patterns in the manner of gitignore(5): `.worktreeinclude`, and the lists in `.calve.toml`.

use std::path::Path;

use globset::{Candidate, GlobBuilder, GlobMatcher};

use crate::error::{Error, Result};
use crate::remedy::Remedy;

/// A list of patterns. Of those that match, the last one decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

#[derive(Debug, Clone)]
struct Pattern {
    glob: GlobMatcher,
    /// The parts of the path that the pattern is about, each as a glob; none when it is about a name anywhere.
    parts: Vec<Part>,
    is_negated: bool,
    is_for_directories: bool,
}

#[derive(Debug, Clone)]
enum Part {
    /// `**`
    Any,
    One(GlobMatcher),
}

impl Patterns {
    /// One pattern a line; empty lines and those that begin with `#` say nothing.
    pub(crate) fn of_file(text: &str) -> Result<Patterns> {
        Self::of(text.lines())
    }

    pub(crate) fn of(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Patterns> {
        let patterns = lines.into_iter().filter_map(|line| pattern(line.as_ref()).transpose());
        Ok(Patterns(patterns.collect::<Result<_>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path itself is matched, whatever is said of directories above it.
    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        self.verdict(path, is_directory).unwrap_or(false)
    }

    /// Whether the path or a directory above it is matched: with a directory, everything in it is.
    pub(crate) fn covers(&self, path: &Path, is_directory: bool) -> bool {
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        self.matches(path, is_directory) || above.into_iter().any(|above| self.matches(above, true))
    }

    fn verdict(&self, path: &Path, is_directory: bool) -> Option<bool> {
        let candidate = Candidate::new(path);
        let holds = |pattern: &&Pattern| {
            (is_directory || !pattern.is_for_directories) && pattern.glob.is_match_candidate(&candidate)
        };
        self.0.iter().rev().find(holds).map(|pattern| !pattern.is_negated)
    }

    /// Whether a pattern that names a path, not just a name, could match something below this directory.
    pub(crate) fn reach_into(&self, directory: &Path) -> bool {
        let names: Vec<&Path> = directory.iter().map(Path::new).collect();
        self.0.iter().any(|pattern| !pattern.is_negated && leads_into(&pattern.parts, &names))
    }
}

/// Whether the parts, as far as they go along with these names, have more to come.
fn leads_into(parts: &[Part], names: &[&Path]) -> bool {
    match (parts.first(), names.first()) {
        (None, _) => false,
        (Some(Part::Any), _) | (Some(_), None) => true,
        (Some(Part::One(glob)), Some(name)) => glob.is_match(name) && leads_into(&parts[1..], &names[1..]),
    }
}

fn pattern(line: &str) -> Result<Option<Pattern>> {
    let invalid = |why: String| {
        let reason = format!("the pattern `{}` is not valid: {why}", calve_core::Shown(line));
        Error::refused(reason, Remedy::CorrectPattern)
    };
    let mut text = line.trim_end_matches(['\r', '\n']);
    // Spaces at the end do not count, unless the last is quoted.
    while text.ends_with(' ') && !text.ends_with("\\ ") {
        text = &text[..text.len() - 1];
    }
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (is_negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let (is_for_directories, text) = text.strip_suffix('/').map_or((false, text), |rest| (true, rest));
    let anchored = text.strip_prefix('/');
    let body = anchored.unwrap_or(text);
    if body.is_empty() {
        return Err(invalid("it names nothing".into()));
    }
    let build = |glob: &str| {
        let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
        built.map(|glob| glob.compile_matcher()).map_err(|error| invalid(error.kind().to_string()))
    };
    let is_path = anchored.is_some() || body.contains('/');
    let glob = build(&if is_path { body.to_owned() } else { format!("**/{body}") })?;
    let mut parts = Vec::new();
    for part in body.split('/').filter(|_| is_path) {
        parts.push(if part == "**" { Part::Any } else { Part::One(build(part)?) });
    }
    Ok(Some(Pattern { glob, parts, is_negated, is_for_directories }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let patterns = Patterns::of_file("# secrets\n.env*\n!.env.example\n/build/\ndocs/**/*.pdf\n\n").unwrap();
        for (path, is_directory, expected) in [
            (".env", false, true),
            ("a/.env.local", false, true),
            ("a/.env.example", false, false),
            ("build", true, true),
            ("build", false, false),
            ("a/build", true, false),
            ("docs/x/y/z.pdf", false, true),
            ("docs/z.pdf", false, true),
            ("z.pdf", false, false),
        ] {
            assert_eq!(patterns.matches(Path::new(path), is_directory), expected, "{path}");
        }
        assert!(patterns.covers(Path::new("build/x/y"), false));
        assert!(!patterns.covers(Path::new("built/x"), false));
    }

    #[test]
    fn only_paths_lead_into_directories() {
        let patterns = Patterns::of_file("name\na/b/c\nx/**/y\n").unwrap();
        for (directory, expected) in
            [("a", true), ("a/b", true), ("a/b/c", false), ("b", false), ("x/1/2", true), ("name", false)]
        {
            assert_eq!(patterns.reach_into(Path::new(directory)), expected, "{directory}");
        }
        assert!(Patterns::of_file("[").is_err());
        assert!(Patterns::of_file("/").is_err());
    }
}
