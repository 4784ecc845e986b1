//! One random state, and the precious things in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use calve_testkit::SplitMix64;

use super::fixture::{Fixture, copy, touch_filtered, try_git};

pub(super) struct State<'f> {
    fixture: &'f Fixture,
    seed: u64,
    /// What must not be lost, and what it is.
    pub(super) precious: Vec<(Vec<u8>, &'static str)>,
    /// The steps that made it.
    pub(super) story: Vec<String>,
    /// Where one may be.
    pub(super) starts: Vec<PathBuf>,
    /// What one may name.
    pub(super) names: Vec<PathBuf>,
    /// Where the repository is.
    r: PathBuf,
}

const WORKTREES: [(&str, &str); 5] = [("a", "a"), ("b", "b"), ("c", "R/.worktrees/c"), ("d", "d"), ("e", "e")];

type Change = fn(&mut State<'_>, &mut SplitMix64, &str, &Path);

/// What may happen to a worktree (its entry, its directory), one file of git's or the user's at a time.
const CHANGES: [(&str, Change); 40] = [
    // git has to read it, through the filter that it has.
    ("touched", |_, _, _, at| put(&at.join("file"), b"text\n")),
    ("dirty", |state, _, _, at| state.write(&at.join("file"), "a change")),
    ("untracked", |state, _, _, at| state.write(&at.join("new"), "an untracked file")),
    ("ignored", |state, random, _, at| {
        let name = random.pick(&["ignored/plain", "ignored/a/b/c.sqlite", "ignored/a/b/c.sqlite-wal", "ignored/.env"]);
        state.write(&at.join(name), "an ignored file");
    }),
    ("ignored, as in the main worktree", |state, _, _, at| {
        let text = format!("same-{}\n", state.seed);
        put(&state.r.join("ignored/same"), text.as_bytes());
        put(&at.join("ignored/same"), text.as_bytes());
    }),
    ("ignored, other than in the main worktree", |state, _, _, at| {
        let other = format!("word-{}-x.\n", state.seed);
        put(&state.r.join("ignored/edited"), other.as_bytes());
        state.write(&at.join("ignored/edited"), "an edited ignored file");
    }),
    ("a build output", |_, _, _, at| put(&at.join("ignored/dist/plain"), b"of no interest\n")),
    ("staged", |state, _, _, at| {
        state.stage(at);
    }),
    ("staged and not there", |state, _, _, at| {
        if state.stage(at) {
            fs_err::remove_file(at.join("staged")).unwrap();
        }
    }),
    ("staged and changed", |state, _, _, at| {
        if state.stage(at) {
            state.write(&at.join("staged"), "a change of a staged file");
        }
    }),
    ("staged removal", |_, _, _, at| {
        let _ = try_git(at, &["rm", "-q", "--cached", "file"]);
    }),
    ("detached", |state, _, id, at| {
        if at.join(".git").is_file() && state.entry("a").is_dir() {
            let head = state.fixture.head.clone();
            put(&state.entry(id).join("HEAD"), format!("{head}\n").as_bytes());
        }
    }),
    ("logged", |state, random, id, at| state.log(random, id, at)),
    ("branch reset", |state, _, id, _| {
        let log = state.r.join(".git/logs/refs/heads").join(id);
        if log.is_file() {
            let loose = state.precious_commit(0, "a commit that only the log of a branch has");
            let head = &state.fixture.head;
            let who = "A <a@example.org> 1500000000 +0000";
            let more = format!("{head} {loose} {who}\tcommit: x\n{loose} {head} {who}\treset: moving to HEAD^\n");
            put(&log, &[fs_err::read(&log).unwrap(), more.into_bytes()].concat());
        }
    }),
    ("referenced", |state, random, id, _| {
        let loose = state.precious_commit(0, "a commit of a worktree's own reference");
        let name = random.pick(&["refs/worktree/mine", "refs/bisect/bad", "refs/rewritten/x"]);
        put(&state.entry(id).join(name), format!("{loose}\n").as_bytes());
    }),
    ("merging", |state, _, id, _| {
        let loose = state.precious_commit(0, "the other side of a merge");
        put(&state.entry(id).join("MERGE_HEAD"), format!("{loose}\n").as_bytes());
    }),
    ("hidden", |state, random, _, at| state.hide(random, at)),
    ("a file replaced by a directory", |state, _, _, at| state.enter(at)),
    ("hidden, and replaced by a directory", |state, random, _, at| {
        state.hide(random, at);
        state.enter(at);
    }),
    ("in the place of a submodule", |state, _, _, at| {
        state.write(&at.join("empty/deep/notes"), "a file in the directory of a submodule");
    }),
    ("locked", |state, _, id, _| put(&state.entry(id).join("locked"), b"why\n")),
    ("loose", |state, _, id, _| {
        let loose = state.precious_commit(0, "a detached commit");
        put(&state.entry(id).join("HEAD"), format!("{loose}\n").as_bytes());
    }),
    ("branch", |state, _, id, _| {
        let loose = state.precious_commit(0, "a commit of a branch");
        put(&state.r.join(".git/refs/heads").join(id), format!("{loose}\n").as_bytes());
    }),
    ("rebase", |state, _, id, _| {
        let stash = state.precious_commit(0, "the stash of a rebase");
        put(&state.entry(id).join("rebase-merge/autostash"), format!("{stash}\n").as_bytes());
    }),
    ("submodule", |state, _, _, _| {
        let loose = state.precious_commit(2, "a commit of a submodule");
        let modules = state.entry("d").join("modules/sub");
        if modules.exists() {
            put(&modules.join("HEAD"), format!("{loose}\n").as_bytes());
        }
    }),
    ("nested", |state, random, _, at| state.nest(random, &at.join("ignored/deep/nested"))),
    ("bare", |state, _, _, at| {
        state.spare("bare.git", &at.join("ignored/bare.git"));
        let loose = state.fixture.loose[0].clone();
        copy_object(&state.r.join(".git"), &at.join("ignored/bare.git"), &loose);
        put(&at.join("ignored/bare.git/refs/heads/main"), format!("{loose}\n").as_bytes());
        state.precious.push((loose.into_bytes(), "a commit of a bare repository"));
    }),
    ("inner worktree", |state, _, id, at| {
        let (inner, from) = (at.join("ignored/c"), state.r.join(".worktrees/c"));
        if id != "c" && from.is_dir() && !inner.exists() && at.is_dir() && state.entry("c").is_dir() {
            fs_err::create_dir_all(at.join("ignored")).unwrap();
            fs_err::rename(&from, &inner).unwrap();
            put(&state.entry("c").join("gitdir"), format!("{}/.git\n", inner.display()).as_bytes());
            state.write(&inner.join("new"), "an untracked file of an inner worktree");
        }
    }),
    ("replaced by a repository", |state, random, id, at| state.replace(id, at, |state, at| state.nest(random, at))),
    ("replaced by a directory", |state, _, id, at| {
        state.replace(id, at, |state, at| state.write(&at.join("notes"), "a file of no repository"));
    }),
    ("replaced by a link", |state, _, id, at| {
        let away = state.away(id);
        state.replace(id, at, |_, at| symlink(&away, at).unwrap());
    }),
    ("replaced by a link to something else", |state, _, id, at| {
        let photos = state.fixture.state.join("photos");
        state.replace(id, at, |state, at| {
            state.write(&photos.join("cat"), "a file of a directory that a link leads to");
            symlink(&photos, at).unwrap();
        });
    }),
    ("replaced by a file", |state, _, id, at| state.replace(id, at, |state, at| state.write(at, "a file"))),
    ("replaced by another worktree", |state, _, id, at| {
        let other = state.fixture.state.join("a");
        if id != "a" && other.is_dir() {
            state.replace(id, at, |state, at| {
                copy(&other, at);
                state.write(&at.join("new"), "a file of a copied worktree");
            });
        }
    }),
    ("moved", |state, _, id, at| state.replace(id, at, |_, _| ())),
    ("gone", |_, _, _, at| {
        // Its contents were lost before.
        if at.is_dir() && !at.is_symlink() {
            fs_err::remove_dir_all(at).unwrap();
        }
    }),
    ("copied", |state, _, id, at| {
        let twin = state.fixture.state.join(format!("{id}-twin"));
        if at.is_dir() && !at.is_symlink() && !twin.exists() {
            copy(at, &twin);
            state.write(&twin.join("new"), "a file of a copy");
            state.starts.push(twin.clone());
            state.names.push(twin);
        }
    }),
    ("unlinked", |_, _, _, at| {
        let _ = fs_err::remove_file(at.join(".git"));
    }),
    ("broken entry", |state, _, id, _| {
        let _ = fs_err::remove_file(state.entry(id).join("gitdir"));
    }),
    ("twin entry", |state, _, id, _| {
        let (entry, twin) = (state.entry(id), state.entry(&format!("{id}-twin")));
        if entry.is_dir() && !twin.exists() {
            copy(&entry, &twin);
        }
    }),
];

impl<'f> State<'f> {
    pub(super) fn random(fixture: &'f Fixture, seed: u64, random: &mut SplitMix64) -> State<'f> {
        fixture.restore();
        let r = fixture.state.join("R");
        let mut state = State {
            fixture,
            seed,
            precious: Vec::new(),
            story: Vec::new(),
            starts: vec![r.clone()],
            names: Vec::new(),
            r,
        };
        // In each state, this would take as long as the rest.
        if random.below(4) == 0 {
            let place = fixture.move_request(random);
            fixture.see_request(&place);
            state.story.push(format!("the request is {place}"));
        }
        for (id, path) in WORKTREES {
            state.names.extend([PathBuf::from(id), fixture.state.join(path)]);
        }
        for _ in 0..random.below(5) {
            let (id, path) = *random.pick(&WORKTREES);
            let (name, change) = *random.pick(&CHANGES);
            let at = fixture.state.join(path);
            state.story.push(format!("{id}: {name}"));
            // A directory that was replaced has no files.
            if at.is_dir() && !at.is_symlink() {
                change(&mut state, random, id, &at);
            }
        }
        match random.below(8) {
            0 => state.copy_repository(),
            1 => state.move_repository(),
            2 => state.see_through_a_link(),
            _ => {}
        }
        let there =
            WORKTREES.iter().map(|(_, path)| fixture.state.join(path)).filter(|path| path.join(".git").is_file());
        state.starts.extend(there);
        state
    }

    fn entry(&self, id: &str) -> PathBuf {
        self.r.join(".git/worktrees").join(id)
    }

    fn away(&self, id: &str) -> PathBuf {
        self.fixture.state.join(format!("{id}-away"))
    }

    fn word(&mut self, why: &'static str) -> String {
        let word = format!("word-{}-{}.", self.seed, self.precious.len());
        self.precious.push((word.clone().into_bytes(), why));
        word
    }

    fn precious_commit(&mut self, which: usize, why: &'static str) -> String {
        let commit = self.fixture.loose[which].clone();
        self.precious.push((commit.clone().into_bytes(), why));
        commit
    }

    /// Writes something that is nowhere else.
    fn write(&mut self, path: &Path, why: &'static str) {
        if path.is_dir() {
            return;
        }
        let word = self.word(why);
        put(path, format!("{word}\n").as_bytes());
    }

    /// Writes a log of HEAD with a commit that was left, by a log or a reference that may be elsewhere too.
    fn log(&mut self, random: &mut SplitMix64, id: &str, at: &Path) {
        if !at.join(".git").is_file() || !self.entry(id).is_dir() {
            return;
        }
        let loose = self.fixture.loose[0].clone();
        let head = &self.fixture.head;
        let what = random.pick(&["commit: x", "cherry-pick: x", "revert: x", "am: x", "merge x: Merge made"]);
        let who = "A <a@example.org> 1500000000 +0000";
        let log =
            format!("{head} {loose} {who}\t{what}\n{loose} {head} {who}\tcheckout: moving from {loose} to {head}\n");
        put(&self.entry(id).join("logs/HEAD"), log.as_bytes());
        self.precious.push((loose.into_bytes(), "a commit that only a log has"));
    }

    /// Only the index, and the repository's objects, have it.
    fn stage(&mut self, at: &Path) -> bool {
        if !at.join(".git").is_file() || !self.entry("a").is_dir() {
            return false;
        }
        let text = format!("staged-{}-{}\n", self.seed, self.precious.len());
        put(&at.join("staged"), text.as_bytes());
        let Ok(oid) = try_git(at, &["hash-object", "-w", "staged"]) else { return false };
        let is_staged = try_git(at, &["update-index", "--add", "--cacheinfo", &format!("100644,{oid},staged")]).is_ok();
        if is_staged {
            let bytes = (0..20).map(|byte| u8::from_str_radix(&oid[byte * 2..byte * 2 + 2], 16).unwrap());
            self.precious.push((bytes.collect(), "a staged content"));
        }
        is_staged
    }

    fn hide(&mut self, random: &mut SplitMix64, at: &Path) {
        let how = *random.pick(&["--assume-unchanged", "--skip-worktree"]);
        if try_git(at, &["update-index", how, "file"]).is_ok() {
            self.write(&at.join("file"), "a change that git was told not to see");
        }
    }

    fn enter(&mut self, at: &Path) {
        if fs_err::remove_file(at.join("file")).is_ok() {
            self.write(&at.join("file/deep/in"), "a file in a directory that replaced a tracked file");
        }
    }

    fn spare(&self, name: &str, to: &Path) {
        if !to.exists() {
            fs_err::create_dir_all(to.parent().unwrap()).unwrap();
            copy(&self.fixture.state.join("spare").join(name), to);
        }
    }

    /// A clone of which everything is pushed, or not.
    fn nest(&mut self, random: &mut SplitMix64, at: &Path) {
        self.spare("nested", at);
        touch_filtered(at);
        match random.below(9) {
            0 => self.write(&at.join("file"), "a change in a nested repository"),
            1 => self.write(&at.join("new"), "an untracked file in a nested repository"),
            2..5 => {
                let loose = self.precious_commit(1, "a commit of a nested repository");
                let to = random.pick(&["refs/heads/work", "refs/stash", "HEAD"]);
                put(&at.join(".git").join(to), format!("{loose}\n").as_bytes());
            }
            5 => self.write(&at.join("ignored/plain"), "a file that a nested repository ignores"),
            6 => self.write(&at.join("empty/notes"), "a file in a nested repository's directory of a submodule"),
            7 => {
                self.hide(random, at);
                self.enter(at);
            }
            _ => {}
        }
    }

    fn replace(&mut self, id: &str, at: &Path, by: impl FnOnce(&mut Self, &Path)) {
        let away = self.away(id);
        if !away.exists() {
            fs_err::rename(at, &away).unwrap();
            self.write(&away.join("new"), "a file of a worktree that was moved");
            by(self, at);
            self.starts.push(away);
        }
    }

    fn copy_repository(&mut self) {
        self.story.push("the repository is copied".into());
        let copied = self.fixture.state.join("R2");
        copy(&self.r, &copied);
        self.starts = vec![copied];
    }

    fn move_repository(&mut self) {
        self.story.push("the repository is moved".into());
        let moved = self.fixture.state.join("R2");
        fs_err::rename(&self.r, &moved).unwrap();
        self.starts.retain(|start| !start.starts_with(&self.r));
        self.r = moved.clone();
        self.starts.push(moved);
    }

    fn see_through_a_link(&mut self) {
        self.story.push("seen through a link".into());
        let link = self.fixture.state.join("link");
        symlink(&self.fixture.state, &link).unwrap();
        self.starts = vec![link.join("R")];
        self.names.extend(WORKTREES.map(|(_, path)| link.join(path)));
    }
}

fn copy_object(from: &Path, to: &Path, oid: &str) {
    let object = Path::new("objects").join(&oid[..2]).join(&oid[2..]);
    fs_err::create_dir_all(to.join(&object).parent().unwrap()).unwrap();
    if !to.join(&object).exists() {
        fs_err::copy(from.join(&object), to.join(&object)).unwrap();
    }
}

/// Another change may have put a directory there.
fn put(path: &Path, bytes: &[u8]) {
    if path.is_dir() {
        return;
    }
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, bytes).unwrap();
}

/// All files, but for trash, and what git only keeps as history.
pub(super) fn live_files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            // The log of a worktree's HEAD goes with its entry, and a branch's with the branch; the log of HEAD itself is no more than history.
            let is_entry = directory.ancestors().nth(2).is_some_and(|above| above.ends_with("worktrees"));
            let is_history = name == "HEAD" && directory.ends_with("logs") && !is_entry;
            if name.starts_with(".calve-") || name == "objects" || is_history {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                found.push((entry.path(), fs_err::read(entry.path()).unwrap()));
            }
        }
    }
    found
}
