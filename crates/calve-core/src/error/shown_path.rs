use std::fmt;
use std::path::Path;

/// Displays a path with control characters and invalid bytes escaped, so that a hostile name cannot drive a terminal.
pub struct ShownPath<P>(pub P);

impl<P: AsRef<Path>> fmt::Display for ShownPath<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_ref().as_os_str().as_encoded_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() {
                    write!(f, "{}", c.escape_default())?;
                } else {
                    fmt::Write::write_char(f, c)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}
