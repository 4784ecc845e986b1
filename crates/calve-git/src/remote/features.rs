//! The abilities of the installed git, found out by asking it.

use crate::error::Result;
use crate::git::Git;
use crate::remote::error::RemoteError;

/// The abilities of the installed git beyond 2.30.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// As git says it: "2.39.5".
    pub version: String,
    /// `git clone --revision`: a clone of one commit, named by its id (2.49).
    pub revision: bool,
    /// `git clone --bundle-uri`: most of a full clone from a static file (2.38).
    pub bundle_uri: bool,
    /// `git backfill`: the missing contents of a partial clone, in batches (2.49).
    pub backfill: bool,
}

impl Features {
    /// Asks the installed git, by its own help.
    ///
    /// # Errors
    /// When git cannot be started, or is older than 2.30.
    pub fn ask(git: &Git) -> std::result::Result<Features, RemoteError> {
        let said = git.line(&["version"])?.to_string_lossy().into_owned();
        let version = said.trim_start_matches("git version ").split(' ').next().unwrap_or_default().to_owned();
        if numbers(&version) < (2, 30) {
            return Err(RemoteError::OldGit { version });
        }
        let clone = usage(git, "clone")?;
        let has = |option: &str| clone.contains(&format!("--{option}")) || clone.contains(&format!("--[no-]{option}"));
        let backfill = usage(git, "backfill")?.contains("git backfill");
        Ok(Features { version, revision: has("revision"), bundle_uri: has("bundle-uri"), backfill })
    }
}

/// Returns the output of `git COMMAND -h`. A command that git does not have is no error: it says so.
fn usage(git: &Git, command: &str) -> Result<String> {
    let output = git.output(&[command, "-h"])?;
    let known = output.status.code() == Some(129);
    let text = [output.stdout, output.stderr].concat();
    Ok(if known { String::from_utf8_lossy(&text).into_owned() } else { String::new() })
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
        // 2.49 brought the option and the command together.
        assert_eq!(features.revision, features.backfill, "{features:?}");
        assert_eq!(features.bundle_uri, numbers(&features.version) >= (2, 38), "{features:?}");
    }
}
