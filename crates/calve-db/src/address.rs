//! How programs reach a server: the forms in which they want to be told.

mod client;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use client::check_option_files;

/// How a server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// For programs that take URLs, by the private socket.
    pub url: String,
    /// By TCP, where it was asked for. The password is in it.
    pub tcp_url: Option<String>,
    /// The form of the engine's own programs and drivers in C: libpq's keywords; the Go driver's form for MariaDB and MySQL; the socket's path for
    /// Redis and Valkey.
    pub dsn: String,
    /// The directory of the socket, for PostgreSQL; `localhost`, which means the socket, for MariaDB and MySQL; the socket for Redis and Valkey.
    pub host: String,
    /// The port, which for PostgreSQL is part of the socket's name.
    pub port: u16,
    pub socket: PathBuf,
    pub user: String,
    /// For TCP only: the socket needs none, but that of Redis and Valkey.
    pub password: Option<String>,
    /// The database that is there in any case; for Redis and Valkey its number.
    pub database: String,
    /// The port on 127.0.0.1, where TCP was asked for.
    pub tcp_port: Option<u16>,
    /// Environment variables that the engine's own programs look at.
    pub variables: Vec<(String, String)>,
}

impl Address {
    /// Returns all environment variables that tell a program where the server is.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut variables = self.variables.clone();
        // An engine without SQL has a variable of its own: a program may use both.
        if !client::is_redis(self) {
            variables.insert(0, ("DATABASE_URL".to_owned(), self.url.clone()));
        }
        variables.extend(client::no_login_path(self));
        variables
    }

    /// Returns the variables that must not be set: they would lead the engine's own programs to another server, or keep them from logging
    /// in.
    pub fn foreign_variables(&self) -> &'static [&'static str] {
        client::foreign_variables(self)
    }
}

/// Escapes a path for a URL's query: everything but letters, digits and `/-._~` as `%` and two digits.
pub(crate) fn in_query(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn odd_paths_can_be_in_urls() {
        assert_eq!(super::in_query("/run/a-b_c"), "/run/a-b_c");
        assert_eq!(super::in_query("/a b&ü"), "/a%20b%26%C3%BC");
    }
}
