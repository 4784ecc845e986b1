//! Decides whether a command from git's configuration may run in an untrusted worktree.
//!
//! It may if a shell would only remove quotes from it, its program is allowed, by its name or by an absolute path, and
//! no other word leads into a tree; or if the user has approved it, word for word (`calve.command` in git's global or
//! system-wide configuration, which no repository can write).

use std::path::Path;

use super::is_untrusted;

pub(crate) fn may_run(command: &str, allowed: &[&str], approved: &[String]) -> bool {
    if approved.iter().any(|known| known == command) {
        return true;
    }
    // A credential helper that is a command, not a name.
    let words = words(command.strip_prefix('!').unwrap_or(command));
    let Some((program, rest)) = words.as_deref().and_then(<[String]>::split_first) else { return false };
    let is_elsewhere = |word: &str| word.starts_with('/') && !is_untrusted(Path::new(word));
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.strip_prefix("git-credential-").unwrap_or(name);
    let is_named = allowed.contains(&name) && (!program.contains('/') || is_elsewhere(program));
    is_named
        && rest.iter().all(|word| {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            !word.contains('/') || is_elsewhere(word) || is_elsewhere(value)
        })
}

/// Splits a command into words, if a shell would only remove quotes from it.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_open) = (String::new(), None, false);
    for c in command.chars() {
        match (quote, c) {
            (_, '$' | '`' | '\\' | '\n' | '\0') => return None,
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_open) = (Some(c), true),
            (None, ' ' | '\t') => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' | '!' | '#' | '~') => {
                return None;
            }
            (None, c) => {
                word.push(c);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_allowed_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (entry, tree) = (folder.path().join("entry"), folder.path().join("pr"));
        fs_err::create_dir(&entry).unwrap();
        fs_err::create_dir(&tree).unwrap();
        super::super::mark(&entry, super::super::Provenance::Untrusted, None).unwrap();
        fs_err::write(tree.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        let allowed = ["git-lfs", "git-crypt", "ssh"];
        let approved = ["nbstripout -t".to_owned(), "/opt/filter --in=x".to_owned()];
        for command in [
            "git-lfs clean -- %f",
            "git-lfs filter-process",
            "\"git-crypt\" smudge",
            "/usr/bin/git-crypt clean",
            "!ssh",
            "/usr/libexec/git-credential-ssh",
            "ssh -i /etc/key",
            "ssh -oIdentityFile=/etc/key -J me@bastion.example.rs",
            "nbstripout -t",
            "/opt/filter --in=x",
        ] {
            assert!(may_run(command, &allowed, &approved), "{command}");
        }
        let inside = [format!("{}/git-lfs", tree.display()), format!("ssh -F {}/../pr/x", tree.display())];
        for command in [
            "",
            "./git-lfs",
            "tools/git-lfs",
            &inside[0],
            &inside[1],
            "ssh -F x/config",
            "sqlite3",
            "/usr/bin/sqlite3",
            "sh teardown.sh",
            "python3 -mnbstripout",
            "nbstripout",
            "nbstripout -t x",
            "cat | git-lfs",
            "git-lfs; ./x",
            "$(pwd)/git-lfs",
            "`pwd`/git-lfs",
            "!f() { ./x; }; f",
            "A=./x git-lfs",
            "git-lfs --config=./x",
            "'git-lfs",
            "stdbuf git-lfs",
        ] {
            assert!(!may_run(command, &allowed, &approved), "{command}");
        }
    }
}
