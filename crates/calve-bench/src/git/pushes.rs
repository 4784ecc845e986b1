//! Commits that one user pushes while a client works, the same in every run: each adds a line to three files.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use super::programs::GitPrograms;
use crate::error::BenchError;
use crate::runs::shuffled;

/// Fetches after each clone.
pub(super) const FETCHES: u32 = 3;

/// 2030-01-01T00:00:00Z. The commits are a second apart.
const FIRST_COMMIT: u64 = 1_893_456_000;

/// Files that a commit changes, if there are as many.
const FILES: usize = 3;

/// Larger files are left alone: people do not edit them.
const LARGEST: u64 = 16 << 20;

/// Returns the reference of a push: 0 comes before the clone, and one more before each fetch.
pub(super) fn reference(number: u32) -> String {
    format!("refs/pushes/{number}")
}

/// Makes the commits in a bare clone. `files` is the tree as `git ls-tree -r -l -z` prints it.
pub(super) fn make(git: &GitPrograms<'_>, repository: &Path, branch: &str, files: &[u8]) -> Result<(), BenchError> {
    let files: Vec<_> = files.split(|byte| *byte == 0).filter_map(changeable).collect();
    let mut stream = Vec::new();
    let mut parent = format!("refs/heads/{branch}^0");
    for number in 0..=FETCHES {
        let (reference, mark, time) = (reference(number), number + 1, FIRST_COMMIT + u64::from(number));
        write!(
            stream,
            "commit {reference}\nmark :{mark}\ncommitter Calve <calve@localhost> {time} +0000\ndata 5\npush\nfrom {parent}\n"
        )?;
        for index in shuffled(files.len(), u64::from(number)).into_iter().take(FILES) {
            let (mode, path) = &files[index];
            let mut command = git.at(repository);
            command.args(["cat-file", "blob", &format!("refs/heads/{branch}:{path}")]);
            let mut content = git.output(&mut command, "reading a file to change")?;
            content.extend_from_slice(format!("\npushed {number}\n").as_bytes());
            write!(stream, "M {mode} inline {path}\ndata {}\n", content.len())?;
            stream.append(&mut content);
            stream.push(b'\n');
        }
        if files.is_empty() {
            let text = format!("pushed {number}\n");
            write!(stream, "M 100644 inline pushed by calve bench\ndata {}\n{text}\n", text.len())?;
        }
        parent = format!(":{mark}");
    }
    let input = repository.with_extension("stream");
    fs_err::write(&input, stream)?;
    let mut command = git.at(repository);
    command.args(["fast-import", "--quiet"]).stdin(File::from(fs_err::File::open(&input)?));
    git.output(&mut command, "making the commits to push")?;
    Ok(fs_err::remove_file(&input)?)
}

/// Parses an entry of `git ls-tree -r -l -z`. `None` unless it is a regular file, not too large, with a plain name.
fn changeable(entry: &[u8]) -> Option<(String, String)> {
    let (about, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
    let mut fields = about.split_whitespace();
    let mode = fields.next().filter(|mode| mode.starts_with("100"))?;
    let size: u64 = fields.nth(2)?.parse().ok()?;
    let is_plain = !path.starts_with('"') && !path.contains(char::is_control);
    (size <= LARGEST && is_plain).then(|| (mode.to_owned(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_submodules_are_left_alone() {
        assert_eq!(changeable(b"100755 blob abc     12\ta b"), Some(("100755".into(), "a b".into())));
        for other in ["120000 blob abc     12\tlink", "160000 commit abc       -\tmodule", "100644 blob a 1\t\"q", ""] {
            assert_eq!(changeable(other.as_bytes()), None, "{other}");
        }
    }
}
