//! The network of a command with namespaces of its own.

/// The network that a command of [`crate::PrivateOverlay`] sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// The network of everybody.
    #[default]
    Shared,
    /// None but a loopback device of its own.
    None,
}
