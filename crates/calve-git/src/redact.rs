//! Removes secrets from printed URLs: user and password, the query (`private_token=…`) and the fragment.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use calve_core::internal::ShownPath;

pub(crate) const INSTEAD: &str = "REDACTED";

/// Redacts a URL, and escapes what cannot be printed.
pub(crate) fn url(given: &OsStr) -> String {
    word(&ShownPath(Path::new(given)).to_string())
}

/// Redacts one argument, which may be a URL or end with one. The URL extends to the end of the argument.
pub(crate) fn word(text: &str) -> String {
    clean(text, |_| false)
}

pub(crate) fn git_command(arguments: &[OsString]) -> String {
    let words = arguments.iter().map(|argument| word(&argument.to_string_lossy()));
    std::iter::once("git".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Redacts the output of a program, in which a URL ends at a space or a quote.
pub(crate) fn prose(text: &str) -> String {
    clean(text, |c| c.is_whitespace() || "'\"`<>".contains(c))
}

fn clean(text: &str, ends: impl Fn(char) -> bool) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let (url, behind) = after.split_at(after.find(&ends).unwrap_or(after.len()));
        let scheme = before[scheme_start(&before[..at])..at].to_ascii_lowercase();
        if scheme == "file" {
            // A path, in which no character is special.
            rest = after;
            continue;
        }
        // Another URL inside, as in `url.https://x/.insteadOf=https://y/`.
        let own = url.find("://").map_or(url.len(), |next| scheme_start(&url[..next]));
        let (shown, is_cut) = without_user(&url[..own]);
        if scheme.contains("ssh") {
            // The user's name is part of the address. With a password, it is left out.
            clean.push_str(user(&url[..own]).unwrap_or_default());
        }
        let secret = shown.find(['?', '#']);
        clean.push_str(&shown[..secret.unwrap_or(shown.len())]);
        if let Some(secret) = secret {
            clean.push_str(&shown[secret..=secret]);
            clean.push_str(INSTEAD);
            // Everything after a `?` belongs to it, other URLs too.
            rest = behind;
        } else {
            clean.push_str(if is_cut { INSTEAD } else { "" });
            rest = &after[own..];
        }
    }
    clean.push_str(rest);
    clean
}

fn scheme_start(text: &str) -> usize {
    let before = text.char_indices().rev().find(|(_, c)| !c.is_ascii_alphanumeric() && !"+-.".contains(*c));
    before.map_or(0, |(at, c)| at + c.len_utf8())
}

/// Returns the user, such as `git@`, if there is no password.
fn user(url: &str) -> Option<&str> {
    let end = url[..url.find('/').unwrap_or(url.len())].rfind('@')?;
    let name = &url[..end];
    (!name.contains([':', '@', '?', '#'])).then(|| &url[..=end])
}

/// Returns the part after `://` without user and password, and whether the beginning of a password was cut off.
fn without_user(url: &str) -> (&str, bool) {
    let host_end = url.find('/').unwrap_or(url.len());
    if let Some(at) = url[..host_end].rfind('@') {
        return (&url[at + 1..], false);
    }
    // A colon without a port: a password with a slash in it, or one that is cut off.
    let host = &url[..host_end];
    let inside = host.rfind(']').map_or(0, |at| at + 1);
    let host = &host[..host.find(['?', '#']).unwrap_or(host.len()).max(inside)];
    let Some(colon) = host[inside..].find(':').map(|at| inside + at) else { return (url, false) };
    if host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) {
        return (url, false);
    }
    match url.rfind('@') {
        Some(at) => (&url[at + 1..], false),
        None => (&url[..=colon], true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_a_url_is_not_shown() {
        for (given, shown) in [
            ("https://example.org:8443/a@b.git", "https://example.org:8443/a@b.git"),
            ("https://me:secret@example.org/a", "https://example.org/a"),
            ("https://secret@example.org/a", "https://example.org/a"),
            ("https://me:sec/ret@example.org/a", "https://example.org/a"),
            ("https://me:sec?ret@example.org/a", "https://example.org/a"),
            ("https://me:sec", "https://me:REDACTED"),
            ("https://[::1]:80/a", "https://[::1]:80/a"),
            ("https://example.org/a?private_token=secret", "https://example.org/a?REDACTED"),
            ("https://example.org/a?x=sec'ret y&z=http://secret/", "https://example.org/a?REDACTED"),
            ("https://example.org?secret", "https://example.org?REDACTED"),
            ("https://example.org/a#secret", "https://example.org/a#REDACTED"),
            ("url.https://secret@x/.insteadOf=https://secret@y/", "url.https://x/.insteadOf=https://y/"),
            ("file:///a?b#c", "file:///a?b#c"),
            ("ssh://git@example.org:22/a", "ssh://git@example.org:22/a"),
            ("ssh://git:secret@example.org/a", "ssh://example.org/a"),
            ("git@example.org:a", "git@example.org:a"),
        ] {
            assert_eq!(url(given.as_ref()), shown, "{given}");
        }
    }

    #[test]
    fn in_prose_a_url_ends_where_its_quotes_do() {
        let said = "fatal: unable to access 'https://me:secret@example.org/a@b/?t=secret': no; see <http://x.org/@#secret> and http://y/?secret too";
        let shown = "fatal: unable to access 'https://example.org/a@b/?REDACTED': no; see <http://x.org/@#REDACTED> and http://y/?REDACTED too";
        assert_eq!(prose(said), shown);
        assert_eq!(prose("nothing :// here ://"), "nothing :// here ://");
        assert_eq!(prose("ähttp://ü:ä@ö/ü?ßecret «é://é:é»"), "ähttp://ö/ü?REDACTED «é://é:REDACTED");
        // However it is cut, no character is cut in two.
        let odd = "é://é@[é:é]é:é/é?é#é é+é://é:é@é";
        for (at, _) in odd.char_indices() {
            prose(&odd[at..]);
            word(&odd[..at]);
        }
    }
}
