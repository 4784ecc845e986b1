//! Names that cannot be guessed.

use std::io::Read as _;

use crate::error::{AtPath as _, Result};

const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Returns unguessable letters and digits, without look-alikes.
pub(crate) fn letters(length: usize) -> Result<String> {
    let mut bytes = vec![0_u8; length];
    let source = "/dev/urandom";
    fs_err::File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).at("read", source)?;
    Ok(spelled(&bytes))
}

/// Returns a letter or a digit for each byte.
pub(crate) fn spelled(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_words_differ() {
        assert_eq!(letters(24).unwrap().len(), 24);
        assert_ne!(letters(24).unwrap(), letters(24).unwrap());
    }
}
