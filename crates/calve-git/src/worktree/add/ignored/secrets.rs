//! Files with secrets, and files of variables: which of the donor's a new worktree gets.
//!
//! | In the donor | Own, or trusted | `secrets = "leave"`, or an untrusted pull request |
//! |---|---|---|
//! | named like a secret, ignored or untracked | carried | left out |
//! | named like a secret, tracked and changed, with `--dirty` | as changed | as committed |
//! | written by Calve, with the donor's ports and URLs | written anew | written anew |
//!
//! docs/worktrees.md has the same table. A carried `.env` that gives variables of the new worktree other values is named.
//! [`secrets_rule`] decides between the columns, [`is_secret`] tells the names, `environment` writes the files of variables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::config::Secrets;
use crate::trust::Provenance;
use crate::worktree::add::ignored::dependency_names::dependency;

/// Names of secrets, and what looks like one but is meant to be read.
const SECRET_NAMES: [&str; 14] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    "credentials.json",
    "service-account.json",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "kubeconfig",
];
const SECRET_ENDINGS: [&str; 9] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".tfvars", ".ppk"];
const SECRET_BEGINNINGS: [&str; 3] = [".env.", "secrets.", "credentials."];
const SECRET_DIRECTORIES: [&str; 4] = [".aws", ".ssh", ".gnupg", ".secrets"];
const EXAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// Returns the fate of secrets in a worktree of this provenance, where the configuration says `configured`.
pub(crate) fn secrets_rule(provenance: Provenance, configured: Option<Secrets>) -> Secrets {
    if provenance.is_untrusted() { Secrets::Leave } else { configured.unwrap_or_default() }
}

/// Returns whether a name is one under which people keep secrets. Not in directories that package managers fill.
pub(crate) fn is_secret(path: &Path, is_directory: bool) -> bool {
    let Some(name) = path.file_name().map(OsStr::as_bytes) else { return false };
    if dependency(path).is_some() {
        return false;
    }
    if is_directory {
        return SECRET_DIRECTORIES.iter().any(|known| known.as_bytes() == name);
    }
    if EXAMPLES.iter().any(|ending| name.ends_with(ending.as_bytes())) {
        return false;
    }
    SECRET_NAMES.iter().any(|known| known.as_bytes() == name)
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
}
