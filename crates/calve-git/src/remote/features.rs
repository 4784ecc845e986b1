use crate::error::Error;
use crate::git::Git;
use crate::remedy::Remedy;
use crate::remote::error::RemoteError;

/// The abilities of the installed git beyond 2.30.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    pub version: String,
    /// `git clone --revision`: a clone of one commit, named by its id (2.49).
    pub revision: bool,
}

impl Features {
    /// Asks the installed git, by its own help. Fails if it cannot be started, or is older than 2.30.
    pub fn ask(git: &Git) -> std::result::Result<Features, RemoteError> {
        let said = git.line(&["version"])?.to_string_lossy().into_owned();
        let version = said.trim_start_matches("git version ").split(' ').next().unwrap_or_default().to_owned();
        if numbers(&version) < (2, 30) {
            let reason = format!("git {version} is too old: 2.30 is the oldest that works");
            return Err(Error::refused(reason, Remedy::UpdateGitOrDoWithout).into());
        }
        let output = git.output(&["clone", "-h"])?;
        let clone = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let revision = clone.contains("--revision") || clone.contains("--[no-]revision");
        Ok(Features { version, revision })
    }
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
        let features = Features::ask(&Git::at("/")).unwrap();
        assert!(features.version.starts_with(char::is_numeric), "{features:?}");
        assert_eq!(features.revision, numbers(&features.version) >= (2, 49), "{features:?}");
    }
}
