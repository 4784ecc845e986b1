use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::TemplateError;

/// The length limit of a name, in bytes.
pub const LONGEST_TEMPLATE_NAME: usize = 48;

/// Returns whether a template may have this name. Names in calve-db follow the same rule.
pub fn is_template_name(name: &str) -> bool {
    is_record_name(name, LONGEST_TEMPLATE_NAME)
}

/// Returns whether a name suits paths, URLs and shell commands: letters, digits and `-_.`, not beginning with these.
pub fn is_record_name(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    starts && name.len() <= longest && name.bytes().all(plain)
}

pub(super) fn check(name: &str) -> Result<(), TemplateError> {
    if is_template_name(name) {
        return Ok(());
    }
    Err(TemplateError::BadName { name: name.to_owned(), longest: LONGEST_TEMPLATE_NAME })
}

/// Returns the name if `source` stands for a template: `@NAME`, without a slash. `./@NAME` is a path.
pub fn template_name(source: &Path) -> Option<String> {
    let name = source.as_os_str().as_bytes().strip_prefix(b"@")?;
    (!name.contains(&b'/')).then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["shop", "a", "Shop-1.2_b", "9"] {
            assert!(is_template_name(good), "{good}");
        }
        for bad in ["", ".", "..", "-a", ".a", "a/b", "a b", "a\n", "é", &"a".repeat(49)] {
            assert!(!is_template_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_source_is_a_template_by_its_first_character() {
        assert_eq!(template_name(Path::new("@shop")).as_deref(), Some("shop"));
        assert_eq!(template_name(Path::new("@")).as_deref(), Some(""));
        for path in ["./@shop", "/@shop", "@types/node", "@shop/", "shop", "a@b", ""] {
            assert_eq!(template_name(Path::new(path)), None, "{path}");
        }
    }
}
