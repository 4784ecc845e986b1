//! Patterns beside those of the git program.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use calve_core::Patterns;
use calve_testkit::{SplitMix64, git, git_command};

/// What patterns are put together from.
const PARTS: [&str; 18] =
    ["a", "b", "ab", "a b", ".", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "\\*", "{a,b}", "a{b", "\\!", "é"];
const NAMES: [&str; 9] = ["a", "b", "ab", "a b", "a.b", "*", "{a,b}", "!a", "é"];

fn pattern(random: &mut SplitMix64) -> String {
    let mut pattern = String::new();
    if random.below(4) == 0 {
        pattern.push('!');
    }
    for _ in 0..=random.below(4) {
        pattern.push_str(PARTS[random.below(PARTS.len() as u64) as usize]);
    }
    if random.below(4) == 0 {
        pattern.push('/');
    }
    pattern
}

/// Returns true for `/a**`: its stars match slashes in git (2.39), against gitignore(5), since it compares the `a` by itself first.
fn is_against_gits_manual(pattern: &str) -> bool {
    pattern.contains('/') && pattern.split('/').any(|part| part.contains("**") && part.contains(|other| other != '*'))
}

/// Every name as a directory at the first levels, and as a file at the last.
fn paths(folder: &std::path::Path) -> Vec<(PathBuf, bool)> {
    let mut paths = Vec::new();
    for first in NAMES {
        paths.push((PathBuf::from(first), true));
        for (number, second) in NAMES.iter().enumerate() {
            let second = PathBuf::from(first).join(second);
            paths.push((second.clone(), number % 2 == 0));
            if number % 2 == 0 {
                paths.extend(["a", "ab", "a.b"].map(|third| (second.join(third), false)));
            }
        }
    }
    for (path, is_directory) in &paths {
        match is_directory {
            true => fs_err::create_dir(folder.join(path)).unwrap(),
            false => fs_err::write(folder.join(path), "").unwrap(),
        }
    }
    paths
}

fn ignored_by_git(folder: &std::path::Path, lines: &str, paths: &[(PathBuf, bool)]) -> BTreeSet<PathBuf> {
    fs_err::write(folder.join(".gitignore"), lines).unwrap();
    let mut command = git_command(folder);
    command.args(["check-ignore", "--no-index", "-z", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asked: Vec<u8> =
        paths.iter().flat_map(|(path, _)| [path.to_str().unwrap().as_bytes(), b"\0"].concat()).collect();
    let writer = std::thread::spawn(move || stdin.write_all(&asked));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    answer.split_terminator('\0').map(PathBuf::from).collect()
}

#[test]
fn patterns_say_what_git_says() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), ["init", "-q"]);
    let paths = paths(folder.path());
    let mut random = SplitMix64::new(2026);
    let (mut compared, mut matched) = (0, 0);
    for _ in 0..500 {
        let mut lines: Vec<String> = (0..=random.below(3)).map(|_| pattern(&mut random)).collect();
        lines.retain(|line| !is_against_gits_manual(line));
        // git takes patterns that can match nothing; here they are refused.
        let Ok(patterns) = Patterns::new(&lines) else { continue };
        let ignored = ignored_by_git(folder.path(), &lines.join("\n"), &paths);
        let mut wrong = String::new();
        for (path, is_directory) in &paths {
            let covers = patterns.covers(path, *is_directory);
            compared += 1;
            matched += usize::from(covers);
            if covers != ignored.contains(path) {
                writeln!(wrong, "{} (directory: {is_directory}): {covers} here", path.display()).unwrap();
            }
        }
        assert_eq!(wrong, "", "{lines:?}");
    }
    assert!(compared > 10_000 && matched > 1_000 && matched < compared, "{matched} of {compared}");
}
