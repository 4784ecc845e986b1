//! Environment markers (PEP 508), for the interpreter of a virtual environment.

use pep440_rs::Version;

use super::version;

/// Real markers are shorter and less deep.
const LONGEST_BYTES: usize = 4096;
const DEEPEST: usize = 32;

pub(super) struct Interpreter {
    /// `None`: `pyvenv.cfg` does not say.
    version: Option<String>,
    is_cpython: Option<bool>,
}

impl Interpreter {
    pub(super) fn parse(text: &str) -> Interpreter {
        let value = |names: &[&str]| {
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            let mut found = pairs.filter(|(name, _)| names.contains(&name.trim())).map(|(_, value)| value.trim());
            found.next().map(str::to_owned)
        };
        let version =
            value(&["version", "version_info"]).map(|text| text.split('.').take(3).collect::<Vec<_>>().join("."));
        Interpreter { version, is_cpython: value(&["implementation"]).map(|name| name == "CPython") }
    }

    /// Returns whether the marker holds, `None` if that depends on unknown facts.
    pub(super) fn holds(&self, marker: &str) -> Option<bool> {
        let mut tokens = tokens(marker)?;
        tokens.reverse();
        let holds = self.any(&mut tokens, 0)?;
        if tokens.is_empty() { holds } else { None }
    }

    /// Parses alternatives. The outer `None` is an error in the marker.
    fn any(&self, tokens: &mut Vec<Token<'_>>, depth: usize) -> Option<Option<bool>> {
        joined(tokens, "or", true, |tokens| joined(tokens, "and", false, |tokens| self.term(tokens, depth)))
    }

    fn term(&self, tokens: &mut Vec<Token<'_>>, depth: usize) -> Option<Option<bool>> {
        match (tokens.pop()?, depth < DEEPEST) {
            (_, false) => None,
            (Token::Operator("("), _) => {
                let holds = self.any(tokens, depth + 1)?;
                (tokens.pop()? == Token::Operator(")")).then_some(holds)
            }
            (left, _) => {
                let operator = match tokens.pop()? {
                    Token::Operator(operator) => operator,
                    Token::Word("in") => "in",
                    Token::Word("not") if tokens.pop()? == Token::Word("in") => "not in",
                    _ => return None,
                };
                Some(match (left, tokens.pop()?) {
                    (Token::Word(variable), Token::Text(value)) => self.compares(variable, operator, value),
                    _ => None,
                })
            }
        }
    }

    fn compares(&self, variable: &str, operator: &str, value: &str) -> Option<bool> {
        let is_mac = cfg!(target_os = "macos");
        let own = match variable {
            "python_version" | "python_full_version" => return self.is_version(variable, operator, value),
            "os_name" => "posix",
            "sys_platform" if is_mac => "darwin",
            "sys_platform" => "linux",
            "platform_system" if is_mac => "Darwin",
            "platform_system" => "Linux",
            "platform_python_implementation" if self.is_cpython? => "CPython",
            "implementation_name" if self.is_cpython? => "cpython",
            _ => return None,
        };
        equality(operator, own == value)
    }

    fn is_version(&self, variable: &str, operator: &str, value: &str) -> Option<bool> {
        let parts = if variable == "python_version" { 2 } else { 3 };
        let own = self.version.as_ref()?.split('.').take(parts).collect::<Vec<_>>().join(".");
        version::satisfies(&own, &format!("{operator}{value}"))
    }

    /// Returns whether the release is one that these specifiers allow, as uv asks, or unknown.
    pub(super) fn satisfies(&self, wanted: &str) -> bool {
        let own = self.version.as_ref().and_then(|own| own.parse::<Version>().ok());
        own.is_none_or(|own| version::satisfies(&own.only_release().to_string(), wanted) != Some(false))
    }
}

fn equality(operator: &str, is_equal: bool) -> Option<bool> {
    match operator {
        "==" => Some(is_equal),
        "!=" => Some(!is_equal),
        _ => None,
    }
}

/// Parses parts separated by `word`. One part that is `decisive` decides for all.
fn joined<'t>(
    tokens: &mut Vec<Token<'t>>,
    word: &str,
    decisive: bool,
    part: impl Fn(&mut Vec<Token<'t>>) -> Option<Option<bool>>,
) -> Option<Option<bool>> {
    let mut holds = part(tokens)?;
    while tokens.pop_if(|token| *token == Token::Word(word)).is_some() {
        holds = match (holds, part(tokens)?) {
            (a, b) if a == Some(decisive) || b == Some(decisive) => Some(decisive),
            (Some(_), other) | (other, Some(_)) => other,
            (None, None) => None,
        };
    }
    Some(holds)
}

#[derive(PartialEq, Eq, Debug, Clone, Copy)]
enum Token<'t> {
    Word(&'t str),
    Text(&'t str),
    Operator(&'t str),
}

fn tokens(marker: &str) -> Option<Vec<Token<'_>>> {
    let mut rest = Some(marker).filter(|marker| marker.len() <= LONGEST_BYTES)?.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let end = match first {
            '\'' | '"' => rest[1..].find(first)? + 2,
            '(' | ')' => 1,
            '<' | '>' | '=' | '!' | '~' => length(|c| "<>=!~".contains(c)),
            _ => length(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(match first {
            '\'' | '"' => Token::Text(&token[1..end - 1]),
            c if "()<>=!~".contains(c) => Token::Operator(token),
            _ if end > 0 => Token::Word(token),
            _ => return None,
        });
        rest = after.trim_start();
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_hold_or_not_or_nobody_knows() {
        let interpreter =
            Interpreter::parse("home = /usr/bin\nimplementation = CPython\nversion_info = 3.11.7.final.0\n");
        for (marker, holds) in [
            ("python_version >= '3.8'", Some(true)),
            ("python_version < \"3.10\"", Some(false)),
            ("python_version == '3.11'", Some(true)),
            ("python_version == '3.*'", Some(true)),
            ("python_full_version > '3.11.2' and python_full_version<'3.11.8'", Some(true)),
            ("python_full_version >= '3.11'", Some(true)),
            ("sys_platform == 'win32'", Some(false)),
            ("sys_platform != 'win32' and platform_release == '5'", None),
            ("sys_platform == 'win32' and platform_release == '5'", Some(false)),
            ("os_name == 'posix' or platform_release == '5'", Some(true)),
            ("(os_name == 'nt' or python_version > '3') and platform_python_implementation != 'PyPy'", Some(true)),
            ("extra == 'x'", None),
            ("'dev' in dependency_groups", None),
            ("python_version not in '3.8, 3.9'", None),
            ("python_version ~= '3.8'", Some(true)),
            ("python_version", None),
            ("python_version >= '3.8' or", None),
            ("python_version >= '3.8' )", None),
            ("'é", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(interpreter.holds(marker), holds, "{marker}");
        }
        assert_eq!(interpreter.holds(&"(".repeat(3000)), None);
        assert_eq!(Interpreter::parse("").holds("python_version >= '3'"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_markers() {
        let interpreter = Interpreter::parse("version = 3.11.7\n");
        let seed = b"(os_name == 'nt' or python_version > '3.*') and extra not in \"x\"";
        calve_testkit::fuzz(&[seed, b"python_full_version >= '3.8'"], |input| {
            if let Ok(text) = std::str::from_utf8(input) {
                interpreter.holds(text);
            }
        });
    }
}
