//! `requirements*.txt` (PEP 508).

use super::lockfiles::{Locked, MAIN, normalised};
use super::version;

/// The shortest name, and so the first file if it is there.
const OWN: &str = "requirements.txt";

/// Reads the files, the project's own first. Another's packages may only be missing together. False: a line is unknown.
pub(super) fn read(files: &[&str]) -> (Vec<Locked>, bool) {
    let (mut all, mut is_understood) = (Vec::new(), true);
    for (at, text) in files.iter().enumerate() {
        let group = if at == 0 { MAIN.to_owned() } else { at.to_string() };
        for line in lines(text).iter().map(|line| line.trim()).filter(|line| !adds_nothing(line)) {
            match requirement(line, &group) {
                Some(one) => all.push(one),
                None => is_understood = false,
            }
        }
    }
    (all, is_understood)
}

/// Returns whether a line requires nothing that is not checked already.
fn adds_nothing(line: &str) -> bool {
    let options = ["--requirement", "-r", "--constraint", "-c"];
    match options.iter().find_map(|option| line.strip_prefix(option)) {
        Some(file) => file.trim_start_matches([' ', '\t', '=']).trim_start_matches("./") == OWN,
        // Most options say where packages come from.
        None => line.is_empty() || line.starts_with('-') && !line.starts_with("-e") && !line.starts_with("--editable"),
    }
}

fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        let line = if line.trim_start().starts_with('#') {
            ""
        } else {
            line.split(" #").next().and_then(|line| line.split("\t#").next()).unwrap_or_default()
        };
        match line.trim_end().strip_suffix('\\') {
            Some(beginning) => open.push_str(beginning),
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    lines.push(open);
    lines
}

/// Returns the part of an address that an installer notes (PEP 610): a commit, or all of the address of an archive.
fn revision(address: &str) -> Option<&str> {
    match address.starts_with("git+") {
        // `git@host` is no revision.
        true => {
            address.rsplit_once('@').map(|(_, revision)| revision).filter(|revision| !revision.contains(['/', ':']))
        }
        // Paths, credentials, variables and other kinds of repositories (`hg+`) are noted in another form.
        false => Some(address).filter(|address| address.contains("://") && !address.contains(['@', '$', '+'])),
    }
}

fn requirement(line: &str, group: &str) -> Option<Locked> {
    let line = line.split(" --").next().unwrap_or_default().trim();
    let (what, marker) = line.split_once(';').map_or((line, None), |(what, marker)| (what, Some(marker.trim())));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let end = what.find(|c| !is_name(c)).unwrap_or(what.len());
    let (name, rest) = what.split_at(end);
    // An option, a path, or an address without a name.
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || rest.starts_with(['/', ':', '\\', '+']) {
        return None;
    }
    let rest = rest.trim_start();
    let rest =
        rest.strip_prefix('[').and_then(|extras| extras.split_once(']')).map_or(rest, |(_, rest)| rest.trim_start());
    let address = rest.strip_prefix('@').and_then(|address| address.trim().split('#').next());
    let specifiers = rest.trim_matches(['(', ')', ' ']);
    let specifiers = (address.is_none() && !specifiers.is_empty()).then(|| specifiers.to_owned());
    // Any version shows whether they can be understood.
    specifiers.as_ref().map_or(Some(true), |specifiers| version::satisfies("1", specifiers))?;
    Some(Locked {
        name: normalised(name),
        version: specifiers,
        revision: address.and_then(revision).map(str::to_owned),
        marker: marker.map(str::to_owned),
        groups: vec![group.to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_is_read() {
        let text = "# comment\n-r base.txt\n--index-url https://h\nDjango == 5.0  # why\nzope.interface[a,b]==1.*,>=1\nrequests>=2,\t# why\n\
            idna==3.6 ; python_version < '3.8' \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n./local\nhttps://h/x.whl\n-e .\n\
            mine @ git+https://h/mine@v1#egg=mine\nother @ https://h/o.whl\nname\n\nlast==1\\";
        let (all, is_understood) = read(&[text, "pytest===8"]);
        assert!(!is_understood);
        let found: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.version.as_deref())).collect();
        let expected = [
            ("django", Some("== 5.0")),
            ("zope-interface", Some("==1.*,>=1")),
            ("requests", Some(">=2,")),
            ("idna", Some("==3.6")),
            ("mine", None),
            ("other", None),
            ("name", None),
            ("last", Some("==1")),
            ("pytest", Some("===8")),
        ];
        assert_eq!(found, expected);
        assert_eq!(all[3].marker.as_deref(), Some("python_version < '3.8'"));
        assert_eq!(all[4].revision.as_deref(), Some("v1"));
        assert_eq!(all[5].revision.as_deref(), Some("https://h/o.whl"));
        assert_eq!((all[5].groups.concat(), all[8].groups.concat()), (MAIN.to_owned(), "1".to_owned()));
    }

    #[test]
    fn lines_that_ask_for_what_is_not_looked_for_are_not_understood() {
        for line in [
            "-r base.txt",
            "-rbase.txt",
            "--requirement=base.txt",
            "-r requirements/base.txt",
            "-c limits.txt",
            "--constraint limits.txt",
            "-e .",
            "--editable=./own",
            ".",
            "./local",
            "https://h/x.whl",
            "git+https://h/x@v1#egg=x",
            "a>=1.*",
        ] {
            assert!(!read(&["a==1", line]).1, "{line}");
        }
        for line in [
            "",
            "# -e .",
            "-r requirements.txt",
            "--constraint=./requirements.txt",
            "--index-url https://h",
            "-i https://h",
        ] {
            let (all, is_understood) = read(&["a==1", line]);
            assert!(is_understood && all.len() == 1, "{line}");
        }
    }
}
