//! Files with secrets, and files of variables: which of the donor's a new worktree gets.
//!
//! | In the donor | Own, or trusted | `secrets = "leave"`, or an untrusted pull request |
//! |---|---|---|
//! | named like a secret, ignored | carried | left out |
//! | named like a secret, untracked, with `--dirty` | carried | left out |
//! | named like a secret, tracked and changed, with `--dirty` | as changed | as committed |
//! | written by Calve, with the donor's ports and URLs | written anew | written anew |
//!
//! docs/worktrees.md has the same table. [`rule`] chooses the column, and [`fate`] the cell, of which [`Secrets::leaves`] is the part by name:
//! it decides about tracked files, and entries of carried directories. Calve's own files are written by `environment/env_file.rs` once the
//! worktree has its ports. A carried `.env` that gives variables of the new worktree other values is named (`environment/other_values.rs`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use calve_core::report::SkipReason;

use crate::config::Secrets;
use crate::dependency_names::{dependency, is_dependency};
use crate::environment::is_own_env_file;
use crate::worktree::add::ignored::left_behind;
use crate::worktree::add::request::AddRequest;
use crate::worktree::status::{Status, split};

/// Names of secret files and directories in lower case. `EXAMPLES` look like secrets, but are meant to be read.
const SECRET_NAMES: &str = ".aws .envrc .git-credentials .gnupg .htpasswd .kube .netrc .npmrc .pgpass .pypirc .secrets .ssh \
    credentials id_dsa id_ecdsa id_ed25519 id_rsa kubeconfig secrets service-account.json";
const SECRET_ENDINGS: &str = ".env .pem .key .p12 .pfx .jks .keystore .kdbx .tfvars .ppk";
const SECRET_BEGINNINGS: &str = ".env. secrets. credentials.";
const EXAMPLES: &str = ".example .sample .template .dist .defaults";

pub(crate) enum Fate {
    Carried,
    Left(SkipReason),
    /// Written with the new worktree's own values.
    Anew,
}

pub(crate) fn rule(request: &AddRequest) -> Secrets {
    if request.provenance.is_untrusted() { Secrets::Leave } else { request.config.secrets.unwrap_or_default() }
}

impl Secrets {
    pub(crate) fn leaves(self, path: &Path) -> bool {
        self == Self::Leave && is_secret(path)
    }
}

/// Decides about an entry of the donor that git does not track. An entry in a directory of secrets is one too. For one's own worktree, a
/// directory that the donor tracks does not count. Others' get only dependencies from it: often only a `.gitignore` is tracked there.
pub(crate) fn fate(request: &AddRequest, status: &Status, path: &Path) -> Fate {
    let rule = rule(request);
    let is_untracked =
        |above: &Path| status.ignored.iter().chain(&status.untracked).any(|one| above.starts_with(&one.path));
    let is_kept = request.provenance.is_untrusted() && dependency(path).is_none();
    let is_around = |above: &Path| rule.leaves(above) && (is_kept || is_untracked(above));
    // A worktree that another program made may have files of its own, or of an earlier run.
    let is_there = fs_err::symlink_metadata(request.path.join(path)).is_ok();
    let is_own_there = is_there && is_own_env_file(&request.path, path);
    match is_own_env_file(&request.donor, path) {
        true if is_there && !is_own_there => Fate::Left(left_behind::COLLIDES),
        true => Fate::Anew,
        false if path.ancestors().any(is_around) => Fate::Left(left_behind::SECRET),
        false if is_own_there => Fate::Anew,
        false => Fate::Carried,
    }
}

/// Returns whether people keep secrets under the last name. Directories that package managers or git fill have none.
pub(crate) fn is_secret(path: &Path) -> bool {
    let (above, name) = split(path.as_os_str().as_bytes());
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let ends_as_one_of = |table: &str| table.split(' ').any(|ending| name.ends_with(ending));
    let is_one = SECRET_NAMES.split(' ').any(|known| known == name)
        || ends_as_one_of(SECRET_ENDINGS)
        || SECRET_BEGINNINGS.split(' ').any(|beginning| name.starts_with(beginning));
    let mut above = Path::new(OsStr::from_bytes(above)).iter();
    is_one && !ends_as_one_of(EXAMPLES) && !above.any(|name| is_dependency(name) || name == ".git")
}
