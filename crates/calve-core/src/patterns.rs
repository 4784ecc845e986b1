//! Patterns as in gitignore(5), for entries that a clone leaves out or takes.

use std::path::Path;

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::Error;

/// A pattern costs memory for each of its bytes, and with slashes again for each directory on the way.
const LONGEST_BYTES: usize = 4096;
const DEEPEST: usize = 64;

/// Lines as in gitignore(5) that match paths relative to the root of the tree.
///
/// A pattern without a slash matches a name in any directory, one with a slash a path from the root; a final slash
/// limits it to directories. The last matching line decides, and `!` at its start takes back matches of earlier lines.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    lines: Vec<Line>,
    globs: GlobSet,
    /// Match the directories on the way to targets of patterns with a slash.
    ways: GlobSet,
}

#[derive(Debug, Clone)]
struct Line {
    is_negated: bool,
    directories_only: bool,
}

impl Patterns {
    /// Reads one pattern a line. Skips empty lines and those that begin with `#`.
    ///
    /// # Errors
    /// Fails with [`Error::Pattern`] for the first invalid pattern.
    pub fn new(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        let (mut read, mut globs, mut ways) = (Vec::new(), GlobSetBuilder::new(), GlobSetBuilder::new());
        for line in lines {
            let invalid = |reason| Error::Pattern { pattern: line.as_ref().to_owned(), reason };
            let Some(text) = significant(line.as_ref()) else { continue };
            let (is_negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
            if text.len() > LONGEST_BYTES || text.matches('/').count() > DEEPEST {
                return Err(invalid(format!(
                    "it is longer than {LONGEST_BYTES} bytes, or has more than {DEEPEST} slashes"
                )));
            }
            let has_empty_name = text.contains("//");
            let (directories_only, text) = text.strip_suffix('/').map_or((false, text), |rest| (true, rest));
            let (is_path, body) = (text.contains('/'), text.strip_prefix('/').unwrap_or(text));
            if body.is_empty() || has_empty_name {
                return Err(invalid("it names nothing".into()));
            }
            globs.add(glob(&if is_path { body.to_owned() } else { format!("**/{body}") }).map_err(invalid)?);
            if !is_negated {
                for (slash, _) in body.match_indices('/') {
                    ways.add(glob(&body[..slash]).map_err(invalid)?);
                }
            }
            read.push(Line { is_negated, directories_only });
        }
        let built = |set: GlobSetBuilder| {
            set.build().map_err(|error| Error::Pattern { pattern: String::new(), reason: error.to_string() })
        };
        Ok(Self { lines: read, globs: built(globs)?, ways: built(ways)? })
    }

    /// Returns whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether the list matches the path itself; directories above it do not count: see [`Patterns::covers`].
    pub fn matches(&self, path: &Path, is_directory: bool) -> bool {
        // Asked for every entry of a tree.
        if self.is_empty() {
            return false;
        }
        let matching = self.globs.matches_candidate(&Candidate::new(path)).into_iter();
        let last = matching.filter(|&index| is_directory || !self.lines[index].directories_only).max();
        last.is_some_and(|last| !self.lines[last].is_negated)
    }

    /// Returns whether the list matches the path or a directory above it. As in git, nothing below a matched directory
    /// can be taken back.
    pub fn covers(&self, path: &Path, is_directory: bool) -> bool {
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        self.matches(path, is_directory) || above.into_iter().any(|above| self.matches(above, true))
    }

    /// Returns whether a pattern with a slash may match something below this directory.
    pub fn reach_into(&self, directory: &Path) -> bool {
        self.ways.is_match(directory)
    }
}

/// Returns the significant part of a line, if any. Spaces at its end count only after a backslash.
fn significant(line: &str) -> Option<&str> {
    let mut text = line.trim_end_matches(['\r', '\n']);
    while text.ends_with(' ') && !text.ends_with("\\ ") {
        text = &text[..text.len() - 1];
    }
    (!text.is_empty() && !text.starts_with('#')).then_some(text)
}

fn glob(pattern: &str) -> Result<Glob, String> {
    let pattern = in_globsets_terms(pattern)?;
    let built = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
    built.map_err(|error| error.kind().to_string())
}

/// Rewrites differences between git and `globset`: to git, braces are ordinary, no class matches a slash, `***` is `**`.
fn in_globsets_terms(pattern: &str) -> Result<String, String> {
    let mut rewritten = String::with_capacity(pattern.len() + 3);
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => {
                rewritten.push(next);
                rewritten.extend(rest.next());
            }
            '*' if rewritten.ends_with("**") => {}
            '{' | '}' => rewritten.extend(['\\', next]),
            '[' => {
                let is_negated = rest.next_if(|&next| next == '!' || next == '^').is_some();
                rewritten.push_str(if is_negated { "[!" } else { "[" });
                rewritten.extend(rest.next_if_eq(&']'));
                while let Some(inside) = rest.next_if(|&next| next != ']') {
                    if inside == '\\' || inside == '[' && rest.peek() == Some(&':') {
                        return Err("between `[` and `]` it can have neither `\\` nor `[:name:]`".into());
                    }
                    rewritten.push(inside);
                }
                if is_negated {
                    rewritten.push('/');
                }
                rewritten.extend(rest.next());
            }
            _ => rewritten.push(next),
        }
    }
    Ok(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_matches_decides() {
        let patterns = Patterns::new("# secrets\n.env*\n!.env.example\n/build/\ndocs/**/*.pdf\n\n".lines()).unwrap();
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
    fn patterns_of_any_length_are_judged() {
        // Each directory on the way is a pattern of its own.
        let _ = Patterns::new(vec!["*/".repeat(64) + "x"; 20]);
        for line in ["a/".repeat(100_000), "[a-z]*".repeat(40_000), "**/".repeat(80_000)] {
            assert!(Patterns::new([&(line + "x")]).is_err());
        }
        assert!(Patterns::new(["a/".repeat(60) + "x"]).is_ok());
    }

    #[test]
    fn only_patterns_with_a_slash_reach_into_directories() {
        let patterns = Patterns::new(["name", "a/b/c", "x/**/y", "!z/q"]).unwrap();
        for (directory, expected) in [
            ("a", true),
            ("a/b", true),
            ("a/b/c", false),
            ("b", false),
            ("x", true),
            ("x/1/2", true),
            ("name", false),
            ("z", false),
        ] {
            assert_eq!(patterns.reach_into(Path::new(directory)), expected, "{directory}");
        }
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in ["[", "/", "!", "!/", "//", "a//b", "a\\", "[[:alpha:]]", "[\\]]"] {
            assert!(matches!(Patterns::new([pattern]), Err(Error::Pattern { .. })), "{pattern}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_patterns() {
        let seeds: [&[u8]; 5] = [
            b"*.log\n/build/\n!keep",
            b"a/**/b\nc?[a-z]{x,y}",
            b"node_modules",
            b"\\!x\n# comment",
            b"**/**/**/a*b*c*d*e",
        ];
        calve_testkit::fuzz(&seeds, |input| {
            let text = String::from_utf8_lossy(&input[..input.len().min(2000)]);
            if let Ok(patterns) = Patterns::new(text.lines()) {
                patterns.covers(Path::new("a/node_modules/b.log"), false);
                patterns.reach_into(Path::new("a/node_modules"));
                patterns.matches(Path::new("aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbcccccccccccccccccccd"), true);
            }
        });
    }
}
