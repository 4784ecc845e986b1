//! What happens to spares that should not.
