//! rustc's dep-info: Makefile rules, and comments with the variables that were read.

pub(super) struct DepInfo<'t> {
    /// As rustc was given them: relative to its working directory, or absolute.
    pub(super) files: Vec<Vec<u8>>,
    pub(super) variables: Vec<(&'t [u8], &'t [u8])>,
}

impl<'t> DepInfo<'t> {
    pub(super) fn parse(text: &'t [u8]) -> Self {
        let mut files = Vec::new();
        let mut variables = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            if let Some(variable) = line.strip_prefix(b"# env-dep:") {
                let end = variable.iter().position(|&byte| byte == b'=');
                variables.extend(end.map(|end| (&variable[..end], &variable[end + 1..])));
            } else if !line.starts_with(b"#") {
                // OUTPUT: FILE FILE. The output is in `target`, and says nothing about its contents.
                if let Some(at) = memchr::memmem::find(line, b": ") {
                    words(&line[at + 2..], &mut files);
                }
            }
        }
        files.sort();
        files.dedup();
        Self { files, variables }
    }
}

fn words(text: &[u8], words: &mut Vec<Vec<u8>>) {
    let mut word = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if bytes.peek() == Some(&b' ') => word.extend(bytes.next()),
            b' ' => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            byte => word.push(byte),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
}

/// Returns whether these sources use `OUT_DIR`, and only to include files from there.
pub(super) fn only_included(texts: &[Vec<u8>]) -> bool {
    let mut asked = false;
    for text in texts {
        for at in memchr::memmem::find_iter(text, b"OUT_DIR") {
            asked = true;
            // Whitespace is ignored: rustfmt puts the arguments on lines of their own.
            let before: Vec<u8> =
                text[..at].iter().rev().filter(|byte| !byte.is_ascii_whitespace()).take(40).copied().collect();
            let including =
                ["include!(concat!(env!(\"", "include_str!(concat!(env!(\"", "include_bytes!(concat!(env!(\""];
            let is =
                |form: &&str| before.iter().zip(form.bytes().rev()).filter(|(a, b)| **a == *b).count() == form.len();
            if !including.iter().any(is) {
                return false;
            }
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_variables_are_read() {
        let text = b"/o/target/debug/deps/a-1.d: src/lib.rs /o/a\\ b/x.rs\n\nsrc/lib.rs:\n/o/a\\ b/x.rs:\n\n# env-dep:A=/o/x=y\n# env-dep:B\n";
        let info = DepInfo::parse(text);
        assert_eq!(info.files, [b"/o/a b/x.rs".to_vec(), b"src/lib.rs".to_vec()]);
        assert_eq!(info.variables, [(&b"A"[..], &b"/o/x=y"[..])]);
    }

    #[test]
    fn including_is_told_from_asking() {
        let included = |text: &str| only_included(&[text.as_bytes().to_vec()]);
        assert!(included("include!(concat!(env!(\"OUT_DIR\"), \"/a.rs\"));"));
        assert!(included("include_bytes!(\n    concat!(\n  env!(\"OUT_DIR\"), \"/a\"))"));
        assert!(!included("const D: &str = env!(\"OUT_DIR\");"));
        assert!(!included("include!(concat!(env!(\"OUT_DIR\"), \"/a.rs\")); fn f() { option_env!(\"OUT_DIR\"); }"));
        assert!(!included("some_macro!();"), "a macro of another crate asked");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_dep_info() {
        let text = b"/t/a.d: src/lib.rs /h/a\\ b.rs\n\nsrc/lib.rs:\n\n# env-dep:CARGO_MANIFEST_DIR=/a\n# env-dep:X\n";
        calve_testkit::fuzz(&[text], |input| drop(DepInfo::parse(input)));
    }
}
