//! The user that a server runs as: this user, or an unprivileged one if this one is root.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Remedy, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Uid 65534: a server without an account must not run as root.
impl Default for Account {
    fn default() -> Self {
        Self { user: 65534, group: 65534 }
    }
}

impl Account {
    /// Returns this process's user. For root: the first of `names` in /etc/passwd, else the unprivileged default.
    pub(crate) fn for_server(names: &[&str]) -> Result<Self> {
        let user = geteuid();
        if !user.is_root() {
            return Ok(Self { user: user.as_raw(), group: rustix::process::getegid().as_raw() });
        }
        let passwd = fs_err::read_to_string("/etc/passwd").unwrap_or_default();
        let found = names.iter().chain(&["nobody"]).find_map(|name| find(&passwd, name));
        found.ok_or_else(|| {
            let text = format!("no database server runs as root, and this system has no user {}", names.join(", "));
            Error::failed(text, Remedy::CreateAccount(names.iter().map(|name| (*name).to_owned()).collect()))
        })
    }

    /// Returns the user to change to, if this process is root's.
    pub(crate) fn to_become(self) -> Option<(u32, u32)> {
        geteuid().is_root().then_some((self.user, self.group))
    }

    /// Returns whether this user can reach `directory`, by the search bits of everything above it.
    pub(crate) fn reaches(self, directory: &Path) -> bool {
        directory.ancestors().skip(1).all(|above| {
            let Ok(found) = fs_err::metadata(above) else { return false };
            let bit = match (found.uid() == self.user, found.gid() == self.group) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                _ => 0o001,
            };
            found.mode() & bit != 0
        })
    }
}

fn find(passwd: &str, name: &str) -> Option<Account> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let (user, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (user != 0).then_some(Account { user, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npost:x:9:9::/:\npostgres:x:101:104:,,,:/var/lib:/bin/bash\n";
        assert_eq!(find(passwd, "postgres"), Some(Account { user: 101, group: 104 }));
        assert_eq!(find(passwd, "mysql"), None);
        assert_eq!(find(passwd, "root"), None);
    }
}
