//! Names of templates and servers.

use std::io::Read as _;

use calve_core::{LONGEST_TEMPLATE_NAME, is_template_name};

use crate::error::{Error, Result};

/// Fails for a name that could not be a part of paths, of URLs and of shell commands, as names become.
pub(crate) fn check(name: &str) -> Result<()> {
    if is_template_name(name) {
        return Ok(());
    }
    Err(Error::BadName { name: name.to_owned(), longest: LONGEST_TEMPLATE_NAME })
}

/// Returns letters and digits that nobody can guess, without those that are taken for one another.
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
    fn random_words_differ() {
        assert_eq!(random(24).unwrap().len(), 24);
        assert_ne!(random(24).unwrap(), random(24).unwrap());
    }
}
