//! Comparing versions of packages for equality (PEP 440).

/// Returns the version's numbers and words, without trailing zeros of the numbers.
fn parts(version: &str) -> Vec<String> {
    let version = version.trim().trim_start_matches(['v', 'V']).to_ascii_lowercase();
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_alphabetic());
    let all = version.as_bytes().chunk_by(|a, b| kind(a) == kind(b)).filter(|part| part[0].is_ascii_alphanumeric());
    let one = |part: &[u8]| match &*String::from_utf8_lossy(part) {
        "alpha" => "a".to_owned(),
        "beta" => "b".to_owned(),
        "c" | "pre" | "preview" => "rc".to_owned(),
        word if !part[0].is_ascii_digit() => word.to_owned(),
        number => Some(number.trim_start_matches('0')).filter(|number| !number.is_empty()).unwrap_or("0").to_owned(),
    };
    let mut parts: Vec<String> = all.map(one).collect();
    let numbers = parts.iter().take_while(|part| part.starts_with(|c: char| c.is_ascii_digit())).count();
    let zeros = parts[..numbers].iter().rev().take_while(|part| *part == "0").count();
    // A lone `0` is version 0.
    parts.drain(numbers - zeros.min(numbers.saturating_sub(1))..numbers);
    parts
}

/// Returns whether an installed version is `wanted`, which may end in `.*`. A local part counts only if it has one.
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
