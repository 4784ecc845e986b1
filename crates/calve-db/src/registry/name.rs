//! Names of templates and servers.

use std::io::Read as _;

use crate::error::{Error, Result};

const LONGEST: usize = 48;

/// Names become parts of paths, of URLs and of shell commands.
pub(crate) fn check(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && name.len() <= LONGEST && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Error::BadName { name: name.to_owned(), longest: LONGEST })
}

/// Some letters and digits that nobody can guess, without those that are taken for one another.
pub(crate) fn random(length: usize) -> Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = vec![0_u8; length];
    let source = "/dev/urandom";
    let read = fs_err::File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::io("read", source, error))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["shop", "a", "Shop-1.2_b", "9"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", ".a", "a/b", "a b", "a\n", "é", &"a".repeat(49)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn random_words_differ() {
        assert_eq!(random(24).unwrap().len(), 24);
        assert_ne!(random(24).unwrap(), random(24).unwrap());
    }
}
