//! Versions of Python packages (PEP 440).

use pep440_rs::{Version, VersionSpecifiers};

/// Returns whether a version is `wanted`: a version, or specifiers such as `>=1.2,<2`. `None` if one of them is unknown to PEP 440.
pub(super) fn satisfies(version: &str, wanted: &str) -> Option<bool> {
    let has_operator = wanted.trim_start().starts_with(['=', '!', '<', '>', '~']);
    let wanted =
        if has_operator { wanted.trim_end_matches([',', ' ']).replace("===", "==") } else { format!("=={wanted}") };
    let (version, wanted) = (version.parse::<Version>().ok()?, wanted.parse::<VersionSpecifiers>().ok()?);
    // The library does not pad a version that is shorter than a prefix such as `1.2.*`.
    let release: Vec<u64> = version.release().iter().copied().chain([0; 4]).collect();
    Some(wanted.contains(&version.with_release(release)))
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
            ("v1", "1"),
            ("8", "===8"),
            ("1.0.post1", "1.post1"),
            ("2.31", ">=2,"),
            ("1", "!=1.2.*"),
        ] {
            assert_eq!(satisfies(version, wanted), Some(true), "{version} {wanted}");
        }
        for (version, wanted) in [
            ("1.1", "1"),
            ("1.0rc1", "1.0"),
            ("2.1", "2.1+cu118"),
            ("1.20.1", "1.2.*"),
            ("1.10", "1.1"),
            ("10", "1"),
            ("2.1+cpu", "2.1+cu118"),
            ("1.0.dev1", "1.0.post1"),
            ("1", "==1.2.*"),
            ("2.0.0", ">=2.1"),
            ("2.0.0", "~=2.1"),
            ("2.0.0", "!=2.0"),
            ("2.0.0", ">2"),
            ("5.0", "<5"),
            ("2.1.0+cu118", ">2.1.0"),
            ("1.0rc1", ">=1.0"),
        ] {
            assert_eq!(satisfies(version, wanted), Some(false), "{version} {wanted}");
        }
        for (version, wanted) in [("", "1"), ("é1", "2"), ("1", ">=x"), ("1", ">=1.*")] {
            assert_eq!(satisfies(version, wanted), None, "{version} {wanted}");
        }
    }
}
