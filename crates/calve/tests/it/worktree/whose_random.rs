//! Random fetches, commits and names: whose work a commit is depends on nothing but who made it and which branches have it.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use calve_testkit::{SplitMix64, few_rounds, rounds};

use super::repo::{git, try_git};
use super::whose::Project;

/// Where a fetch by hand puts a request: git keeps a log of these, or their names tell. A tag is no evidence.
const NAMES: [&str; 12] = [
    "x",
    "y/z",
    "heads/w",
    "remotes/origin/x",
    "refs/remotes/origin/main",
    "refs/remotes/other/deep/er/x",
    "refs/remotes/origin/pr/5",
    "refs/heads/pull/5/head",
    "refs/merge-requests/5/head",
    "refs/tags/pr/5",
    "refs/tags/t",
    "refs/review/5",
];

const PATTERNS: [&str; 5] = [
    "+refs/pull/*/head:refs/remotes/origin/c*",
    "+refs/pull/*:refs/remotes/origin/*",
    "+refs/pull/*/head:refs/heads/requests/*",
    "+refs/pull/*/head:refs/kept/*",
    "+refs/*:refs/remotes/mirror/*",
];

struct Random {
    project: Project,
    /// A stranger's copy of the server, which is no remote.
    fork: PathBuf,
    random: SplitMix64,
    count: usize,
    requests: Vec<u32>,
    branches: Vec<String>,
    /// Commits that a stranger has made for a request.
    theirs: HashSet<String>,
    mine: BTreeSet<String>,
    /// Commits of requests that are in another form: the one before, and the new one.
    amended: Vec<(String, String)>,
    /// Heads of requests that were fetched to where something tells so.
    known: BTreeSet<String>,
    /// The latest commit from a rare kind of fetch, not yet checked.
    newest: Option<String>,
}

impl Random {
    fn new(seed: u64) -> Self {
        let project = Project::new();
        let fork = project.repo.spot.join("fork");
        git(&project.repo.spot, ["clone", "-q", "--bare", "server", "fork"]);
        Self {
            project,
            fork,
            random: SplitMix64::new(seed),
            count: 0,
            requests: Vec::new(),
            branches: Vec::new(),
            theirs: HashSet::new(),
            mine: BTreeSet::new(),
            amended: Vec::new(),
            known: BTreeSet::new(),
            newest: None,
        }
    }

    fn on_server(&self, line: &str) -> String {
        git(&self.project.server, line.split(' ')).trim().to_owned()
    }

    fn number(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// A new commit on the server.
    fn commit(&mut self, parents: &[&str]) -> String {
        let parents: String = parents.iter().map(|parent| format!(" -p {parent}")).collect();
        let number = self.number();
        self.on_server(&format!("commit-tree main^{{tree}}{parents} -m {number}"))
    }

    fn head(&self, number: u32) -> String {
        self.on_server(&format!("rev-parse refs/pull/{number}/head"))
    }

    fn commit_here(&mut self, extra: &str) {
        let number = self.number();
        self.project.git(&format!("commit -q --allow-empty -m {number}{extra}"));
    }

    fn note_mine(&mut self, branch: &str) {
        let commits = self.project.git(&format!("rev-list {branch} ^main ^origin/main"));
        self.mine.extend(commits.lines().filter(|commit| !self.theirs.contains(*commit)).map(str::to_owned));
    }

    fn step(&mut self) -> String {
        let own = (!self.branches.is_empty()).then(|| self.random.pick(&self.branches).clone());
        match (self.random.below(16), own) {
            (0..3, _) if self.requests.len() < 2 || self.random.below(2) == 0 => {
                let number = 10 + self.requests.len() as u32;
                let other = self.requests.last().map_or("main".to_owned(), |last| format!("refs/pull/{last}/head"));
                let base = if self.random.below(3) == 0 { other } else { "main".into() };
                let commit = self.commit(&[&base]);
                self.on_server(&format!("update-ref refs/pull/{number}/head {commit}"));
                self.requests.push(number);
                self.theirs.insert(commit);
                format!("request {number} of {base}")
            }
            (0..3, _) => {
                let number = *self.random.pick(&self.requests);
                let commit = self.commit(&[&format!("refs/pull/{number}/head")]);
                self.on_server(&format!("update-ref refs/pull/{number}/head {commit}"));
                self.theirs.insert(commit);
                format!("request {number} has more")
            }
            (3, _) => {
                let commit = self.commit(&["main"]);
                self.on_server(&format!("update-ref refs/heads/main {commit}"));
                "the project has more".into()
            }
            (4, _) if self.random.below(2) == 0 && !self.requests.is_empty() => {
                let number = *self.random.pick(&self.requests);
                let commit = self.commit(&["main", &format!("refs/pull/{number}/head")]);
                self.on_server(&format!("update-ref refs/heads/main {commit}"));
                format!("request {number} is merged")
            }
            (4..9, _) if !self.requests.is_empty() => self.fetch_by_hand(),
            (9, _) => {
                self.project.fetch_again();
                self.note_configured();
                "fetch".into()
            }
            (10, Some(own)) => self.change_own(&own),
            (11, Some(own)) => {
                let number = 10 + self.requests.len() as u32;
                self.requests.push(number);
                self.project.git(&format!("push -q origin {own}:refs/pull/{number}/head"));
                format!("{own} becomes request {number}")
            }
            (12, _) => self.amend_request(),
            (13, _) => self.fetch_fork(),
            (14, _) => self.rebase_request(),
            _ => self.make_own(),
        }
    }

    fn change_own(&mut self, own: &str) -> String {
        self.project.git(&format!("switch -q {own}"));
        let what = match self.random.below(3) {
            0 => {
                self.commit_here(" --amend");
                "amend"
            }
            1 => {
                self.commit_here("");
                "commit"
            }
            _ => {
                self.project.git("rebase -q origin/main");
                "rebase"
            }
        };
        self.project.git("switch -q main");
        self.note_mine(own);
        format!("{what} {own}")
    }

    fn amend_request(&mut self) -> String {
        let known: Vec<_> = self.known.iter().filter(|known| self.theirs.contains(*known)).cloned().collect();
        if known.is_empty() {
            return "nothing".into();
        }
        let old = self.random.pick(&known).clone();
        self.project.git(&format!("checkout -q --detach {old}"));
        self.commit_here(" --amend");
        let new = self.project.git("rev-parse HEAD");
        self.project.git("switch -q main");
        self.theirs.insert(new.clone());
        self.known.insert(new.clone());
        self.amended.push((old.clone(), new));
        format!("amend {old} of a request")
    }

    fn fetch_fork(&mut self) -> String {
        let number = self.number();
        let commit = git(&self.fork, ["commit-tree", "main^{tree}", "-p", "main", "-m", &number.to_string()]);
        let commit = commit.trim().to_owned();
        git(&self.fork, ["update-ref", "refs/heads/patch", &commit]);
        let url = match self.random.below(2) {
            0 => "../fork".to_owned(),
            _ => format!("file://{}", self.fork.display()),
        };
        let name = format!("fork-{number}");
        let steps = match self.random.below(4) {
            0 => vec![format!("fetch -q {url} patch:{name}")],
            1 => vec![format!("fetch -q {url} +patch:remotes/origin/{name}")],
            2 => vec![format!("fetch -q {url} patch"), format!("branch {name} FETCH_HEAD")],
            _ => {
                vec![format!("fetch -q {url} patch"), "checkout -q FETCH_HEAD".to_owned(), "switch -q main".to_owned()]
            }
        };
        steps.iter().for_each(|step| drop(self.project.git(step)));
        self.newest = Some(commit.clone());
        self.theirs.insert(commit.clone());
        self.known.insert(commit);
        steps.join(", ")
    }

    /// Without a branch, so that nothing but the log of HEAD tells.
    fn rebase_request(&mut self) -> String {
        let known: Vec<_> = self.known.iter().filter(|known| self.theirs.contains(*known)).cloned().collect();
        if known.is_empty() {
            return "nothing".into();
        }
        let old = self.random.pick(&known).clone();
        // A shallow history may end there.
        if !self.is_here(&format!("{old}~1")) {
            return "nothing".into();
        }
        // Within a second, the same message would make the same commit.
        let rebase = format!("rebase -q --signoff --onto main {old}~1");
        if self.random.below(2) == 0 {
            self.project.git(&format!("checkout -q --detach {old}"));
            self.project.git(&rebase);
        } else {
            self.project.git(&format!("{rebase} {old}"));
        }
        let new = self.project.git("rev-parse HEAD");
        self.project.git("switch -q main");
        self.newest = Some(new.clone());
        self.theirs.insert(new.clone());
        self.known.insert(new);
        format!("rebase {old} of a request")
    }

    fn make_own(&mut self) -> String {
        let own = format!("own-{}", self.number());
        if self.random.below(2) == 0 {
            self.project.git(&format!("switch -q -c {own} main"));
            self.commit_here("");
            self.commit_here("");
            self.project.git("switch -q main");
        } else {
            self.project.git(&format!("worktree add -q -b {own} ../{own} main"));
            let number = self.number().to_string();
            let at = self.project.repo.spot.join(&own);
            git(&at, ["commit", "-q", "--allow-empty", "-m", &number]);
            self.project.git(&format!("worktree remove ../{own}"));
        }
        self.note_mine(&own);
        self.branches.push(own.clone());
        format!("commit on {own}")
    }

    fn fetch_by_hand(&mut self) -> String {
        let number = *self.random.pick(&self.requests);
        let head = self.head(number);
        let source = match self.random.below(3) {
            0 => format!("pull/{number}/head"),
            1 => format!("refs/pull/{number}/head"),
            _ => head.clone(),
        };
        let depth = match self.random.below(3) {
            0 => format!(" --depth={}", 1 + self.random.below(3)),
            _ => String::new(),
        };
        let kind = self.random.below(6);
        let refspec = match kind {
            0 => (*self.random.pick(&PATTERNS)).to_owned(),
            _ => format!("+{source}:{}", self.random.pick(&NAMES)),
        };
        let configures = kind == 0 && self.random.below(2) == 0;
        let line = if configures {
            self.project.git(&format!("config --add remote.origin.fetch {refspec}"));
            "fetch -q origin".to_owned()
        } else {
            format!("fetch -q --no-tags{depth} origin {refspec}")
        };
        let fetched = try_git(&self.project.repo.path, line.split(' '));
        assert!(fetched.status.success(), "{line}: {}", String::from_utf8_lossy(&fetched.stderr));
        match kind {
            0 if configures => self.note_configured(),
            0 => self.know_all(),
            _ => drop(self.known.insert(head)),
        }
        line
    }

    fn know_all(&mut self) {
        let heads: Vec<_> = self.requests.iter().map(|number| self.head(*number)).collect();
        self.known.extend(heads);
    }

    fn note_configured(&mut self) {
        if self.project.git("config --get-all remote.origin.fetch").lines().count() > 1 {
            self.know_all();
        }
    }

    /// Returns the commits that are here, below these and in nothing below those.
    fn list(&self, tips: impl IntoIterator<Item = String>, without: &[String]) -> HashSet<String> {
        let words = ["rev-list", "--ignore-missing"].map(str::to_owned);
        let without = without.iter().map(|tip| format!("^{tip}"));
        let listed = self.project.repo.git(words.into_iter().chain(tips).chain(without));
        listed.lines().map(str::to_owned).collect()
    }

    /// Asks whose some commits are. Returns how many are a stranger's.
    fn check(&mut self, when: &str) -> usize {
        let of_project: HashSet<String> = self.on_server("rev-list --branches").lines().map(str::to_owned).collect();
        // A fetch by hand may have put a request there, also one that has been merged since.
        let heads = self.on_server("rev-list --first-parent main");
        let remotes = self
            .project
            .git("for-each-ref --format=%(objectname) refs/remotes/origin/main refs/remotes/mirror/heads/main");
        let tips = remotes.lines().filter(|tip| heads.contains(*tip)).map(str::to_owned);
        let tips: Vec<String> = tips.chain(["main".to_owned()]).collect();
        let known = self.list(self.known.iter().cloned(), &tips);
        let is_taken = |new: &str| self.amended.iter().any(|(old, one)| one == new && !known.contains(old));
        let all: BTreeSet<String> =
            self.mine.iter().chain(&self.theirs).chain(&of_project).filter(|oid| self.is_here(oid)).cloned().collect();
        let all: Vec<_> = all.into_iter().collect();
        let mut foreign = 0;
        for _ in 0..3 {
            let commit = self.newest.take().unwrap_or_else(|| self.random.pick(&all).clone());
            let left = self.list([commit.clone()], &tips);
            let theirs: Vec<_> = left.iter().filter(|one| self.theirs.contains(*one)).collect();
            let is_theirs = theirs.iter().any(|one| known.contains(*one) && !is_taken(one));
            if is_theirs || theirs.is_empty() && (left.is_empty() || self.mine.contains(&commit)) {
                assert_eq!(self.project.is_foreign(&commit), is_theirs, "{when}: {commit}");
                foreign += usize::from(is_theirs);
            }
        }
        foreign
    }

    fn is_here(&self, oid: &str) -> bool {
        // No ref that a fetch has overwritten needs to be there.
        try_git(&self.project.repo.path, ["cat-file", "-e", oid]).status.success()
    }
}

#[test]
fn random_fetches_never_mix_up_whose_work_it_is() {
    let mut foreign = 0;
    for seed in 0..rounds(3) as u64 {
        let mut random = Random::new(seed);
        let mut steps = Vec::new();
        for _ in 0..16 {
            steps.push(random.step());
            foreign += random.check(&format!("seed {seed}: {steps:#?}"));
        }
    }
    assert!(few_rounds() || foreign > 10, "{foreign}");
}
