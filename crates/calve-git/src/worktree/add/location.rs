use std::path::Path;

/// Returns the name of git's own directory for a worktree, as git makes it: a character that a reference may not have becomes a dash.
pub(crate) fn identifier(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut id: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    while id.contains("..") {
        id = id.replace("..", ".-");
    }
    if id.starts_with('.') {
        id.replace_range(..1, "-");
    }
    if id.ends_with(".lock") || id.ends_with('.') {
        id.push('-');
    }
    if id.is_empty() { "worktree".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::plain;

    #[test]
    fn identifiers_are_names_of_references() {
        for (path, id) in [
            ("/a/b.x", "b.x"),
            ("/a/.hidden", "-hidden"),
            ("/a/x y\u{e9}", "x-y-"),
            ("/a/..", "worktree"),
            ("/a/q.lock", "q.lock-"),
        ] {
            assert_eq!(identifier(Path::new(path)), id);
        }
    }

    #[test]
    fn dots_are_resolved_by_name() {
        assert_eq!(plain(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
    }
}
