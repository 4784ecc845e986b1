//! Comparing versions of packages for equality (PEP 440).

#[derive(PartialEq, Eq, Debug)]
enum Part {
    Number(String),
    Word(String),
}

/// Returns the version's numbers and words, without zeros at the end of its numbers.
fn parts(version: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let version = version.trim().trim_start_matches(['v', 'V']);
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let is_same = |c: char| c.is_ascii_digit() == first.is_ascii_digit() && c.is_ascii_alphanumeric();
        let end = if first.is_ascii_alphanumeric() { rest.find(|c| !is_same(c)).unwrap_or(rest.len()) } else { 0 };
        let (part, after) = rest.split_at(end);
        if first.is_ascii_digit() {
            let number = part.trim_start_matches('0');
            parts.push(Part::Number(if number.is_empty() { "0" } else { number }.to_owned()));
        } else if end > 0 {
            parts.push(Part::Word(match &*part.to_ascii_lowercase() {
                "alpha" => "a".into(),
                "beta" => "b".into(),
                "c" | "pre" | "preview" => "rc".into(),
                other => other.into(),
            }));
        }
        rest = if end > 0 { after } else { &rest[first.len_utf8()..] };
    }
    let numbers = parts.iter().take_while(|part| matches!(part, Part::Number(_))).count();
    let zeros = parts[..numbers].iter().rev().take_while(|part| **part == Part::Number("0".into())).count();
    // `0` is the version 0.
    parts.drain(numbers - zeros.min(numbers.saturating_sub(1))..numbers);
    parts
}

/// Returns whether an installed version is the wanted one, which may end in `.*`, and which has any local part unless it names one.
pub(super) fn is(installed: &str, wanted: &str) -> bool {
    let release = |version: &str| version.split('+').next().unwrap_or_default().to_owned();
    if let Some(beginning) = wanted.trim().strip_suffix(".*") {
        let numbers = |version: &str| version.split('.').map(str::to_owned).collect::<Vec<_>>();
        return numbers(&release(installed)).starts_with(&numbers(beginning.trim_start_matches('v')));
    }
    if wanted.contains('+') { parts(installed) == parts(wanted) } else { parts(&release(installed)) == parts(wanted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_the_same_in_several_spellings() {
        for (installed, wanted) in [
            ("1.0", "1"),
            ("1.0.0", "1.0"),
            ("2024.01.02", "2024.1.2"),
            ("1.0rc1", "1.0.c.1"),
            ("1.0a1", "1.0-alpha-1"),
            ("1.0.post1", "1.post1"),
            ("2.1.0+cu118", "2.1"),
            ("2.1.0+cu118", "2.1.0+cu118"),
            ("v1", "1"),
            ("1.2.3", "1.2.*"),
            ("0.0", "0"),
        ] {
            assert!(is(installed, wanted), "{installed} {wanted}");
        }
        for (installed, wanted) in [
            ("1.1", "1"),
            ("1.10", "1.1"),
            ("10", "1"),
            ("1.0rc1", "1.0"),
            ("1.0.dev1", "1.0.post1"),
            ("2.1+cpu", "2.1+cu118"),
            ("2.1", "2.1+cu118"),
            ("1.20.1", "1.2.*"),
            ("0", "1"),
            ("", "1"),
            ("é1", "2"),
        ] {
            assert!(!is(installed, wanted), "{installed} {wanted}");
        }
    }
}
