//! Repositories made up for tests and benches: the same options give the same commits, on every machine.
//!
//! They are made by one `git fast-import`. It looks for deltas against the blob before only, so all versions of a file follow each other in
//! its stream, the newest first: as git packs them itself, the newest is whole and older ones are deltas. The other way round, a
//! server would have to compress anew all that a shallow clone gets.

use std::io::{BufWriter, Read as _, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};

use calve_core::CancelToken;
use calve_git::{Error, Git, Result};

use crate::random::SplitMix64;

/// The shape of a made-up repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticShape {
    /// Few files with a long history, as a library has.
    Small,
    /// Thousands of files and of commits.
    Middle,
    /// Few commits with large files that neither compress nor differ by little.
    Blobs,
}

impl SyntheticShape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Middle, Self::Blobs];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Middle => "middle",
            Self::Blobs => "blobs",
        }
    }
}

/// A repository to be made up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntheticRepository {
    /// Text, or blobs.
    pub shape: SyntheticShape,
    /// At least 1, on one branch, without merges.
    pub commits: u32,
    /// At least 1.
    pub files: u32,
    /// The size of each file, about.
    pub file_bytes: u64,
    /// How many files each commit after the first changes.
    pub changed_files: u32,
    /// Another seed gives another repository of the same shape.
    pub seed: u64,
}

/// The one branch of a made-up repository.
pub const SYNTHETIC_BRANCH: &str = "main";

/// 2020-01-01T00:00:00Z; the commits follow each other by an hour.
const FIRST_COMMIT: u64 = 1_577_836_800;

impl SyntheticRepository {
    /// Returns the usual sizes of that shape.
    pub fn new(shape: SyntheticShape) -> Self {
        let (commits, files, file_bytes, changed_files) = match shape {
            SyntheticShape::Small => (6_000, 300, 6_000, 3),
            SyntheticShape::Middle => (5_000, 6_000, 8_000, 3),
            SyntheticShape::Blobs => (40, 20, 1_000_000, 1),
        };
        Self { shape, commits, files, file_bytes, changed_files, seed: 1 }
    }

    /// Makes it: a bare repository at `dst`, which must not exist, or be an empty directory. Everything is in one pack.
    ///
    /// # Errors
    /// Fails when git cannot be started or fails, and when `cancel` is thrown. Keeps what was made until then.
    pub fn write(&self, dst: &Path, cancel: &CancelToken) -> Result<()> {
        fs_err::create_dir_all(dst)?;
        // Named, for who has told git to look for no bare repository by itself (`safe.bareRepository`).
        let git = Git::at(dst).with("GIT_DIR", ".");
        let branch = format!("--initial-branch={SYNTHETIC_BRANCH}");
        git.run(&["init", "--quiet", "--bare", "--template=", "--object-format=sha1", &branch])?;
        // One pack, whatever the number of objects and the user's configuration, and no file too large for it.
        let arguments = ["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--done", "--depth=50"];
        let mut command = git.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = Error::start(dst);
        let mut child = command.spawn().map_err(start)?;
        let stdin = child.stdin.take();
        let written = stdin.map_or(Ok(()), |stdin| self.stream(BufWriter::with_capacity(1 << 16, stdin), cancel));
        let mut said = String::new();
        let heard = child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_string(&mut said));
        let status = child.wait()?;
        // Ctrl-C ends git as well.
        if cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        if !status.success() {
            let arguments = arguments.iter().map(Into::into).collect();
            let (directory, code) = (dst.to_path_buf(), status.code());
            return Err(Error::Git { arguments, directory, code, said: said.trim().to_owned() });
        }
        written.and(heard.map(|_| ()))?;
        Ok(())
    }

    /// Returns the input of `git fast-import`.
    fn stream(&self, mut out: BufWriter<ChildStdin>, cancel: &CancelToken) -> std::io::Result<()> {
        let plan = self.plan();
        let mut mark = 0;
        let mut changes: Vec<Vec<(u32, u64)>> = vec![Vec::new(); plan.commits];
        for (file, commits) in (0_u32..).zip(&plan.versions) {
            let mut content = Content::new(self, file);
            let mut put = |commit: usize, bytes: &[u8]| {
                if cancel.is_cancelled() {
                    return Err(std::io::ErrorKind::Interrupted.into());
                }
                mark += 1;
                changes[commit].push((file, mark));
                write!(out, "blob\nmark :{mark}\ndata {}\n", bytes.len())?;
                out.write_all(bytes)?;
                out.write_all(b"\n")
            };
            if self.shape == SyntheticShape::Blobs {
                // No delta helps them, and all at once may be more than fits into memory.
                for &commit in commits {
                    put(commit, &content.bytes())?;
                }
                continue;
            }
            let mut versions = Vec::new();
            for number in 0..commits.len() {
                if number > 0 {
                    content.change();
                }
                versions.push(content.bytes());
            }
            for (&commit, bytes) in commits.iter().zip(&versions).rev() {
                put(commit, bytes)?;
            }
        }
        for (number, changed) in (0_u64..).zip(&changes) {
            let seconds = FIRST_COMMIT + 3600 * number;
            let message = format!("change number {number}\n");
            write!(
                out,
                "commit refs/heads/{SYNTHETIC_BRANCH}\ncommitter Calve <calve@localhost> {seconds} +0000\ndata {}\n{message}",
                message.len()
            )?;
            for (file, mark) in changed {
                writeln!(out, "M 100644 :{mark} {}", self.path(*file))?;
            }
            out.write_all(b"\n")?;
        }
        out.write_all(b"done\n")?;
        out.flush()
    }

    /// Decides which commits change which files.
    fn plan(&self) -> HistoryPlan {
        let mut random = SplitMix64::new(self.seed);
        let commits = self.commits.max(1) as usize;
        let files = self.files.max(1);
        let mut versions = vec![vec![0]; files as usize];
        for commit in 1..commits {
            for _ in 0..self.changed_files.max(1) {
                // A few files change often, as in real histories.
                let file = random.below(u64::from(files)).min(random.below(u64::from(files)));
                let of_file = &mut versions[file as usize];
                if of_file.last() != Some(&commit) {
                    of_file.push(commit);
                }
            }
        }
        HistoryPlan { commits, versions }
    }

    fn path(&self, file: u32) -> String {
        match self.shape {
            SyntheticShape::Blobs => format!("assets/{file:04}.bin"),
            // At most 20 in a directory, as people keep them.
            _ => format!("src/part{:03}/unit{:02}/file{file:05}.txt", file / 400, file / 20 % 20),
        }
    }
}

struct HistoryPlan {
    commits: usize,
    /// The commits that each file has a new version in, in order.
    versions: Vec<Vec<usize>>,
}

/// One file as it changes.
enum Content {
    Text { lines: Vec<String>, random: SplitMix64 },
    Noise { bytes: u64, random: SplitMix64 },
}

impl Content {
    fn new(of: &SyntheticRepository, file: u32) -> Self {
        let mut random = SplitMix64::new(of.seed ^ (u64::from(file) + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        // From half to one and a half of the size asked for.
        let bytes = of.file_bytes / 2 + random.below(of.file_bytes.max(1) + 1);
        if of.shape == SyntheticShape::Blobs {
            return Self::Noise { bytes, random };
        }
        let mut lines: Vec<String> = Vec::new();
        let mut length = 0;
        while length < bytes as usize {
            let line = line(&mut random);
            length += line.len();
            lines.push(line);
        }
        Self::Text { lines, random }
    }

    fn change(&mut self) {
        // Noise is new each time that it is asked for.
        let Self::Text { lines, random } = self else { return };
        for _ in 0..=random.below(4) {
            let new = line(random);
            match lines.len() {
                0 => lines.push(new),
                length => lines[random.below(length as u64) as usize] = new,
            }
        }
        let at = random.below(lines.len() as u64 + 1) as usize;
        lines.insert(at, line(random));
    }

    fn bytes(&mut self) -> Vec<u8> {
        match self {
            Self::Text { lines, .. } => lines.concat().into_bytes(),
            Self::Noise { bytes, random } => {
                let words = (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes());
                words.take(*bytes as usize).collect()
            }
        }
    }
}

/// Returns a line of a program that does not exist.
fn line(random: &mut SplitMix64) -> String {
    const SYLLABLES: [&str; 16] = [
        "re", "set", "count", "tree", "ob", "ject", "path", "in", "dex", "up", "load", "pack", "ref", "log", "size",
        "map",
    ];
    let mut line = " ".repeat(4 * random.below(3) as usize);
    for word in 0..2 + random.below(6) {
        if word > 0 {
            line.push_str([" ", " = ", "(", ", ", "."][random.below(5) as usize]);
        }
        for _ in 0..1 + random.below(3) {
            line.push_str(SYLLABLES[random.below(16) as usize]);
        }
    }
    line.push_str(";\n");
    line
}
