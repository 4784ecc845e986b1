//! Versions of Python packages (PEP 440).

use pep440_rs::{Version, VersionSpecifiers};

/// Returns whether a version is `wanted`: a version, or specifiers such as `>=1.2,<2`.
pub(super) fn satisfies(version: &str, wanted: &str) -> bool {
    let has_operator = wanted.trim_start().starts_with(['=', '!', '<', '>', '~']);
    let wanted = if has_operator { wanted.to_owned() } else { format!("=={wanted}") };
    match (version.parse::<Version>(), wanted.parse::<VersionSpecifiers>()) {
        (Ok(version), Ok(wanted)) => wanted.contains(&version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_pip_compares_them() {
        for (version, wanted) in [
            ("1.0", "1"),
            ("2024.01.02", "2024.1.2"),
            ("1.0rc1", "1.0.c.1"),
            ("2.1.0+cu118", "2.1"),
            ("2.1.0+cu118", "2.1.0+cu118"),
            ("1.2.3", "1.2.*"),
            ("2.0.4", ">=2.0,<2.1"),
            ("2.0.4", "~= 2.0.1, != 2.0.3"),
            ("8", "===8"),
        ] {
            assert!(satisfies(version, wanted), "{version} {wanted}");
        }
        for (version, wanted) in [
            ("1.1", "1"),
            ("1.0rc1", "1.0"),
            ("2.1", "2.1+cu118"),
            ("1.20.1", "1.2.*"),
            ("", "1"),
            ("é1", "2"),
            ("2.0.0", ">=2.1"),
            ("2.0.0", "~=2.1"),
            ("2.0.0", "!=2.0"),
            ("2.0.0", ">2"),
            ("5.0", "<5"),
            ("2.1.0+cu118", ">2.1.0"),
            ("1.0rc1", ">=1.0"),
            ("1", ">=x"),
        ] {
            assert!(!satisfies(version, wanted), "{version} {wanted}");
        }
    }
}
