use crate::error::Error;
use crate::git::Git;
use crate::remedy::Remedy;
use crate::remote::error::RemoteError;

/// Returns the version of git. Fails if git cannot start, or is older than 2.30.
pub(crate) fn git_version(git: &Git) -> Result<String, RemoteError> {
    let said = git.line(&["version"])?.to_string_lossy().into_owned();
    let version = said.trim_start_matches("git version ").split(' ').next().unwrap_or_default();
    if numbers(version) < (2, 30) {
        let reason = format!("git {version} is too old: 2.30 is the oldest that works");
        return Err(Error::refused(reason, Remedy::UpdateGitOrDoWithout).into());
    }
    Ok(version.to_owned())
}

fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("2.9.5") < (2, 30) && numbers("2.30.0") >= (2, 30) && numbers("2.100.1") > (2, 30));
        assert_eq!(numbers("2.45.GIT"), (2, 45));
    }

    #[test]
    fn the_installed_git_answers() {
        let version = git_version(&Git::at("/")).unwrap();
        assert!(version.starts_with(char::is_numeric), "{version}");
    }
}
