//! How programs reach a server, in the forms that they expect.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// How a server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// The address as a URL, by the private socket.
    pub url: String,
    /// The address as a URL, by TCP, with the password. Null without TCP.
    pub tcp_url: Option<String>,
    // libpq's keywords; the Go driver's form for MariaDB and MySQL; the socket's path for Redis and Valkey.
    /// The address for the engine's own programs.
    pub dsn: String,
    // PostgreSQL: the socket's directory. MariaDB, MySQL: `localhost`, meaning the socket. Redis, Valkey: the socket.
    /// The host for the engine's own programs.
    pub host: String,
    /// The port, which for PostgreSQL is part of the socket's name.
    pub port: u16,
    /// The private socket.
    #[cfg_attr(feature = "schema", schemars(with = "calve_core::internal::json::ReceiptPath"))]
    pub(super) socket: PathBuf,
    /// The superuser.
    pub user: String,
    // Only Redis and Valkey ask for it on the socket too.
    /// The password for TCP. Null without TCP.
    pub password: Option<String>,
    /// A database that always exists.
    pub database: String,
    /// The port on 127.0.0.1. Null without TCP.
    pub tcp_port: Option<u16>,
    /// The environment variables by which programs find this server and no other. Null: the variable must not be set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub environment: BTreeMap<String, Option<String>>,
}

impl Address {
    /// Connects to the private socket.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.socket)
    }

    /// Returns the server's own directory for sockets.
    pub(super) fn directory(&self) -> &Path {
        self.socket.parent().unwrap_or(&self.socket)
    }

    /// Returns this address with its socket in `directory`, hidden from clients.
    pub(crate) fn unseen_in(&self, directory: &Path) -> Self {
        Self { socket: directory.join(self.socket.file_name().unwrap_or_default()), ..self.clone() }
    }

    pub fn set_environment(environment: &BTreeMap<String, Option<String>>, command: &mut Command) {
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    /// Returns the servers' variables for the engines' own programs. URLs, and what several servers set, are unset.
    pub fn environment_of_all(servers: Vec<Self>) -> BTreeMap<String, Option<String>> {
        let mut all = BTreeMap::new();
        for (name, value) in servers.into_iter().flat_map(|server| server.environment) {
            let is_ambiguous = name.ends_with("_URL") || all.contains_key(&name);
            all.insert(name, value.filter(|_| !is_ambiguous));
        }
        all
    }
}

/// Returns the engine's own variables, and `foreign` ones to unset: they lead elsewhere, or prevent a login.
pub(crate) fn environment<'a>(
    variables: impl IntoIterator<Item = (&'a str, String)>,
    foreign: &[&str],
) -> BTreeMap<String, Option<String>> {
    let foreign = foreign.iter().map(|name| ((*name).to_owned(), None));
    foreign.chain(variables.into_iter().map(|(name, value)| (name.to_owned(), Some(value)))).collect()
}

/// Percent-encodes a path for a URL's query: everything but ASCII letters, digits and `/-._~`.
pub(crate) fn in_query(text: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn odd_paths_can_be_in_urls() {
        assert_eq!(super::in_query("/run/a-b_c"), "/run/a-b_c");
        assert_eq!(super::in_query("/a b&ü"), "/a%20b%26%C3%BC");
    }
}
