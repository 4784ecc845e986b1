//! Files with secrets, and files of variables: which of the donor's a new worktree gets.
//!
//! | In the donor | Own, or trusted | `secrets = "leave"`, or an untrusted pull request |
//! |---|---|---|
//! | named like a secret, ignored | carried | left out |
//! | named like a secret, untracked, with `--dirty` | carried | left out |
//! | named like a secret, tracked and changed, with `--dirty` | as changed | as committed |
//! | written by Calve, with the donor's ports and URLs | written anew | written anew |
//!
//! docs/worktrees.md has the same table. [`secrets_rule`] decides between the columns, [`is_secret`] tells the names. Calve's own files
//! are taken out of what is carried in `survey.rs`, and written by `environment/env_file.rs` once the worktree has its ports. A carried
//! `.env` that gives variables of the new worktree other values is named (`environment/other_values.rs`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::config::Secrets;
use crate::dependency_names::is_dependency;
use crate::trust::Provenance;
use crate::worktree::status::split;

/// Names of secret files and directories in lower case. `EXAMPLES` look like secrets, but are meant to be read.
const SECRET_NAMES: &str = ".aws .envrc .git-credentials .gnupg .htpasswd .kube .netrc .npmrc .pgpass .pypirc .secrets .ssh \
    credentials id_dsa id_ecdsa id_ed25519 id_rsa kubeconfig secrets service-account.json";
const SECRET_ENDINGS: &str = ".env .pem .key .p12 .pfx .jks .keystore .kdbx .tfvars .ppk";
const SECRET_BEGINNINGS: &str = ".env. secrets. credentials.";
const EXAMPLES: &str = ".example .sample .template .dist .defaults";

pub(crate) fn secrets_rule(provenance: Provenance, configured: Option<Secrets>) -> Secrets {
    if provenance.is_untrusted() { Secrets::Leave } else { configured.unwrap_or_default() }
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
