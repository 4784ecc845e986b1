//! Panics that name the path and the operation.

use std::fmt::Display;
use std::path::Path;

/// Unwraps `result`, or fails the test with "cannot `action` `path`: reason".
#[track_caller]
pub(crate) fn must<T, E: Display>(result: Result<T, E>, action: &str, path: &Path) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("cannot {action} `{}`: {error}", path.display()),
    }
}
