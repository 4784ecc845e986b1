//! Checked addresses: an [`Address`], like each one that it leads to, exists only if it passed.

use std::net::IpAddr;

use ureq::http::{Uri, uri::Scheme};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Https,
    /// Unencrypted: only for a registry on this machine.
    PlainHttp,
}

/// Returns the host of `HOST[:PORT]`: a domain name, an IPv4 address, or an IPv6 address in brackets. Returns `None`
/// for user names, and for spellings that two parsers could read differently.
pub(crate) fn host_name(text: &str) -> Option<&str> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_valid = match ipv6(name) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.chars().all(is_name) && !name.starts_with(['-', '.']),
    };
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit()) && port.parse().is_ok_and(|port: u16| port > 0);
    (is_valid && port.is_none_or(is_port)).then_some(name)
}

/// Refuses short, hexadecimal and mapped spellings, which another parser may read differently.
fn is_this_machine(name: &str) -> bool {
    let address = ipv6(name).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn ipv6(name: &str) -> Option<&str> {
    name.strip_prefix('[')?.strip_suffix(']')
}

/// An address without a user name. Only a plain-HTTP registry leads to unencrypted ones, on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    uri: Uri,
    transport: Transport,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressFault {
    Invalid,
    HasUserName,
    /// Unencrypted and on another machine. Has the host.
    Unencrypted(String),
}

impl Address {
    pub(crate) fn of_registry(host: &str, transport: Transport) -> Result<Self, AddressFault> {
        let scheme = match transport {
            Transport::Https => "https",
            Transport::PlainHttp => "http",
        };
        Self::parse(&format!("{scheme}://{host}/"), transport)
    }

    fn parse(text: &str, transport: Transport) -> Result<Self, AddressFault> {
        let uri: Uri = text.parse().map_err(|_| AddressFault::Invalid)?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(AddressFault::HasUserName);
        }
        let host = host_name(authority).ok_or(AddressFault::Invalid)?;
        let is_encrypted = uri.scheme() == Some(&Scheme::HTTPS);
        if !is_encrypted && uri.scheme() != Some(&Scheme::HTTP) {
            return Err(AddressFault::Invalid);
        }
        if is_encrypted || transport == Transport::PlainHttp && is_this_machine(host) {
            return Ok(Self { uri, transport });
        }
        Err(AddressFault::Unencrypted(authority.into()))
    }

    /// Resolves a redirect, an upload's location or a token's realm: an address, or a path on the same host.
    pub(crate) fn leads_to(&self, location: &str) -> Result<Self, AddressFault> {
        match (location.starts_with('/'), self.uri.scheme(), self.uri.authority()) {
            (true, Some(scheme), Some(host)) => Self::parse(&format!("{scheme}://{host}{location}"), self.transport),
            _ => Self::parse(location, self.transport),
        }
    }

    pub(crate) fn with_query(&self, value: &str) -> Result<Self, AddressFault> {
        let separator = if self.uri.query().is_some() { '&' } else { '?' };
        Self::parse(&format!("{}{separator}{value}", self.uri), self.transport)
    }

    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        // Both have a host, and hosts are compared without regard to case.
        self.uri.authority() == other.uri.authority() && self.uri.scheme() == other.uri.scheme()
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(address: &str) -> Option<AddressFault> {
        let plain = Address::parse(address, Transport::PlainHttp).err();
        // An address that is refused for a registry on this machine is refused for all others.
        assert!(plain.is_none() || Address::parse(address, Transport::Https).is_err(), "{address}");
        plain
    }

    #[test]
    fn this_machine_is_known_by_its_host_alone() {
        for here in ["localhost", "LocalHost:80", "127.0.0.1", "127.255.0.9:5000", "[::1]", "[0:0:0:0:0:0:0:1]:5000"] {
            let address = format!("http://{here}/v2/");
            assert_eq!(fault(&address), None, "{address}");
            let encrypted = Address::parse(&address, Transport::Https).err();
            assert_eq!(
                encrypted,
                Some(AddressFault::Unencrypted(here.into())),
                "a registry elsewhere leads to {address}"
            );
        }
        for elsewhere in [
            "127.0.0.1.evil.org",
            "localhost.evil",
            "localhost.evil:80",
            "evil.localhost",
            "localhost.",
            "127.0.0.1.",
            "127.1",
            "0x7f.1",
            "0177.0.0.1",
            "2130706433",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[::]",
            "[fe80::1]:5000",
            "192.0.2.2",
            "evil.org:80",
            "_localhost",
        ] {
            let refused = fault(&format!("http://{elsewhere}/v2/"));
            assert_eq!(refused, Some(AddressFault::Unencrypted(elsewhere.into())), "{elsewhere}");
        }
    }

    #[test]
    fn no_address_has_a_user_name() {
        for address in
            ["localhost:80@evil.org", "localhost@127.0.0.1", "user:word@ghcr.io", "@localhost", "a@b@localhost"]
        {
            for scheme in ["http", "https"] {
                let address = format!("{scheme}://{address}/v2/");
                let refused = fault(&address);
                assert!(
                    matches!(refused, Some(AddressFault::HasUserName | AddressFault::Invalid)),
                    "{address} {refused:?}"
                );
            }
        }
        assert_eq!(fault("http://localhost:80@evil.org/token"), Some(AddressFault::HasUserName));
        assert_eq!(fault("https://user:word@ghcr.io/token"), Some(AddressFault::HasUserName));
        assert_eq!(fault("https://ghcr.io/user@host?to=a@b"), None, "it is the path's");
    }

    #[test]
    fn what_parsers_read_differently_is_no_address() {
        for address in [
            "http://localhost\\@evil.org/",
            "http://evil.org\\@localhost/",
            "http://localhost%40evil.org/",
            "http://localhost:80:80/",
            "http://localhost:/",
            "http://localhost:+80/",
            "http://localhost:0/",
            "http://localhost:99999/",
            "http://localhost /",
            "http://[::1]evil.org/",
            "http://[::1%25lo]/",
            "http://[127.0.0.1]/",
            "http://::1/",
            "http:///evil.org/",
            "http:localhost/",
            "//localhost/",
            "localhost:80",
            "/v2/",
            "",
            "ftp://localhost/",
            "https://",
        ] {
            assert_eq!(fault(address), Some(AddressFault::Invalid), "{address}");
        }
    }

    #[test]
    fn a_path_leads_nowhere_else() {
        let base = Address::of_registry("localhost:5000", Transport::PlainHttp).unwrap();
        for path in ["/v2/a", "//evil.org/a", "/@evil.org/", "/\\evil.org"] {
            let led = base.leads_to(path).unwrap();
            assert!(led.is_same_server(&base), "{path} leads to {}", led.uri());
        }
        for other in ["http://localhost:5001/v2/", "http://127.0.0.1:5000/v2/", "https://localhost:5000/v2/"] {
            assert!(!base.leads_to(other).unwrap().is_same_server(&base), "{other}");
        }
        for nowhere in ["@evil.org/", ":80@evil.org/", "a/b", ".evil.org/"] {
            assert_eq!(base.leads_to(nowhere).err(), Some(AddressFault::Invalid), "{nowhere}");
        }
    }

    #[test]
    fn a_value_is_added_to_the_query() {
        let base = Address::of_registry("ghcr.io", Transport::Https).unwrap();
        for (path, expected) in [("/u", "https://ghcr.io/u?d=1"), ("/u?a=b", "https://ghcr.io/u?a=b&d=1")] {
            assert_eq!(base.leads_to(path).unwrap().with_query("d=1").unwrap().uri(), expected);
        }
    }
}
