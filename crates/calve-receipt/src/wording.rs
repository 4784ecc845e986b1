//! Rewords the engine's texts, which name commands of the program, for packages in any language.

/// The program's words and the packages' words for them. Earlier pairs are replaced first.
const WORDS: &[(&str, &str)] = &[
    ("run `calve probe SRC DST`", "call `probe(src, dst)`"),
    ("`calve probe SRC DST`", "`probe(src, dst)`"),
    ("`calve probe`", "`probe`"),
    ("`calve cp` to such a place", "a clone to such a place"),
    (" (`calve rm`)", ""),
    ("or lower `--threads`", "or work with fewer threads"),
    ("check the volume: chkdsk", "check the volume"),
];

/// System programs that hints name in parentheses.
const PROGRAMS: &[&str] =
    &["chkdsk", "cipher", "dmesg", "findmnt", "icacls", "lsattr", "Resource Monitor", "sysctl", "ulimit"];

/// Returns `text` without commands and flags.
pub(crate) fn in_a_package(text: &str) -> String {
    let mut text = WORDS.iter().fold(text.to_owned(), |text, (program, package)| text.replace(program, package));
    for program in PROGRAMS {
        while let Some(from) = text.find(&format!(" ({program}")) {
            let Some(length) = text.get(from..).and_then(|rest| rest.find(')')) else { break };
            text.replace_range(from..=from + length, "");
        }
    }
    without_flags(&text)
}

/// Turns `` `--require instant` `` into the option `` `require` ``, with its value in words.
fn without_flags(text: &str) -> String {
    let mut parts = text.split("`--");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (flag, rest) = part.split_once('`').unwrap_or((part, ""));
        match flag.split_once(' ') {
            Some((option, value)) => words.push_str(&format!("`{option}` of `{value}`{rest}")),
            None => words.push_str(&format!("`{flag}`{rest}")),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::io;

    use calve_core::{Error, Required, Requirement, Strategy};

    use crate::error;

    /// One of each kind that has words of its own.
    fn errors() -> Vec<Error> {
        let path = || std::path::PathBuf::from("a");
        let mut errors = vec![
            Error::DestinationExists(path()),
            Error::DestinationExists("/".into()),
            Error::Missing(path()),
            Error::ParentMissing(path()),
            Error::Same { src: path(), dst: path() },
            Error::DestinationInsideSource { src: path(), dst: path() },
            Error::SourceInsideDestination { src: path(), dst: path() },
            Error::NotClonable { path: path(), kind: "socket" },
            Error::NoRoom { path: path(), needed: 2, available: 1, unit: "bytes" },
            Error::Protected { path: path(), reason: "it is `/`".into() },
            Error::ReplaceUnsupported(path()),
            Error::VerifyFailed { path: path(), count: 1, first: "b".into() },
            Error::NoDedupe { path: path(), file_system: "ext4".into() },
            Error::Pattern { pattern: "[".into(), reason: "no end".into() },
            Error::OutsideRoot { path: path(), reason: "it is empty" },
            Error::NotAFile { operation: "read", path: path(), kind: "FIFO" },
            Error::StagingLost(path()),
        ];
        let required = [Required::Property(Requirement::Instant), Required::Strategy(Strategy::Copy)];
        let refused = |requirement| Error::RequirementRefused { requirement, refused: Vec::new(), detail: None };
        errors.extend(required.map(refused));
        let operations = ["read", "open", "remove", "write the file", "enter the directory", "sync the directory of"];
        for operation in operations {
            // Windows has numbers up to there.
            errors.extend((1..2000).map(|number| Error::Io {
                operation,
                path: path(),
                source: io::Error::from_raw_os_error(number),
            }));
        }
        errors
    }

    #[test]
    fn no_text_names_a_command_or_a_flag() {
        let commands = [
            "mkdir", "ulimit", "sysctl", "dmesg", "findmnt", "lsattr", "chattr", "icacls", "chkdsk", "cipher", "resmon",
        ];
        for one in errors() {
            let document = error(&one);
            for text in [&document["hint"], &document["message"]] {
                let text = text.as_str().unwrap_or_default();
                let named = commands.iter().find(|command| text.contains(*command));
                assert!(
                    !text.is_empty() && named.is_none() && !text.contains("--") && !text.contains("`calve"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn options_and_functions_have_their_names() {
        let exists = error(&Error::DestinationExists("a".into()));
        assert_eq!(exists["hint"], "name another destination, or pass `replace` to swap it for the clone");
        let requirement = Required::Property(Requirement::Instant);
        let refused = error(&Error::RequirementRefused { requirement, refused: Vec::new(), detail: None });
        assert_eq!(refused["message"], "`require` of `instant` cannot be met");
        assert!(refused["hint"].as_str().is_some_and(|hint| hint.starts_with("call `probe(src, dst)` to see")));
    }
}
