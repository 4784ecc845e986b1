//! Names of templates and servers.

use calve_core::template::{LONGEST_TEMPLATE_NAME, is_template_name};

use crate::error::{Error, Result};

/// Fails unless a name can be part of paths, URLs and shell commands.
pub(crate) fn check(name: &str) -> Result<()> {
    if is_template_name(name) {
        return Ok(());
    }
    Err(Error::BadName { name: name.to_owned(), longest: LONGEST_TEMPLATE_NAME })
}

pub(crate) fn made_up(template: &str, letters: &str) -> String {
    format!("{}-{letters}", template.chars().take(40).collect::<String>())
}
