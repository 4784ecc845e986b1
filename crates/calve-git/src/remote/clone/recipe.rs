//! Chooses the `git clone` for a purpose. Pure: facts go in, commands come out.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::ansi_c;
use calve_core::internal::json::{As, ReceiptPath, Text};
use serde::Serialize;

use crate::redact;
use crate::remote::clone::purpose::{Property, Purpose};
use crate::remote::error::RemoteError;
use crate::remote::prompts::Prompts;
use crate::remote::url::{RepositoryUrl, Transport};
use crate::trust::is_object_id;

/// Leaves the contents of files on the server until they are checked out.
const BLOBLESS: &str = "blob:none";

#[derive(Debug, Clone)]
pub struct GitCloneOptions {
    pub url: RepositoryUrl,
    /// The exact destination: absent, or an empty directory.
    pub dst: PathBuf,
    pub purpose: Purpose,
    /// The branch or tag to check out. Without it and `revision`: the commit of the repository's own HEAD.
    pub branch: Option<String>,
    /// The whole id of the commit to check out.
    pub revision: Option<String>,
    /// Directories of the repository to check out; all if empty.
    pub sparse: Vec<String>,
    /// Properties without which nothing is made.
    pub require: Vec<Property>,
    pub prompts: Prompts,
    pub cancel: CancelToken,
}

/// A clone, and how it is made.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedClone {
    /// The address of the repository, without secrets.
    #[serde(with = "As::<Text>")]
    pub url: RepositoryUrl,
    /// The clone.
    #[serde(with = "As::<ReceiptPath>")]
    pub dst: PathBuf,
    /// The purpose of the clone.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Purpose::NAMES)))]
    pub purpose: Purpose,
    /// How it is made, and why so.
    pub recipe: Recipe,
    /// The version of git.
    pub git: String,
}

/// How a clone is made, and why so.
#[derive(Debug, Clone, Serialize)]
#[serde(rename = "GitRecipe")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recipe {
    /// The objects that stay on the server, in git's words. Null if none do.
    pub filter: Option<&'static str>,
    /// The number of commits of history. Null for all.
    pub depth: Option<u32>,
    /// The branch or tag that is checked out, if one was named.
    pub branch: Option<String>,
    /// The commit that is checked out, if one was named.
    pub revision: Option<String>,
    /// The directories that are checked out. Empty for all.
    pub sparse: Vec<String>,
    /// Why this is the right way.
    pub reason: &'static str,
    /// The commands.
    pub commands: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) arguments: Vec<OsString>,
    /// Runs in the new repository instead of beside it.
    pub(crate) inside: bool,
    pub(crate) input: Vec<u8>,
}

/// Chooses the recipe. `is_shallow`: the source's history is cut off, and a partial clone would search it without end.
pub(crate) fn choose(wanted: &GitCloneOptions, is_shallow: bool, git: String) -> Result<PlannedClone, RemoteError> {
    check(wanted)?;
    let GitCloneOptions { url, dst, purpose, branch, revision, sparse, .. } = wanted.clone();
    let sparsely = !sparse.is_empty();
    let depth = (purpose == Purpose::Ci).then_some(1);
    // With a depth, git knows where the history ends.
    let may_be_partial = depth.is_some() || !is_shallow;
    let is_partial = sparsely || matches!(purpose, Purpose::History | Purpose::Blobs);
    let filter = (is_partial && may_be_partial).then_some(BLOBLESS);
    // Beside the files of a linked worktree, git finds no note of where the history ends.
    let by_protocol = filter.is_some() || depth.is_some() || is_shallow;
    let url = if by_protocol { url.over_the_protocol() } else { url };
    let reason = reason(purpose, sparsely);
    let recipe = Recipe { filter, depth, branch, revision, sparse, reason, commands: Vec::new() };
    let mut plan = PlannedClone { url, dst, purpose, recipe, git };
    let steps = plan.begin(&plan.dst).into_iter().chain(plan.check_out());
    plan.recipe.commands = steps.map(|step| step.spoken(&plan.dst)).collect();
    Ok(plan)
}

fn reason(purpose: Purpose, sparsely: bool) -> &'static str {
    match purpose {
        Purpose::Dev if sparsely => {
            "few directories of a repository that stays: all commits and trees, and contents only of what is checked out"
        }
        Purpose::Dev => "a clone that stays: the full one costs most once, and fetches into it cost least",
        Purpose::Ci => {
            "one commit, thrown away: nothing is cheaper than a shallow clone, as long as nothing is fetched into it; it has no tags and no history, \
             so that `git describe` needs the purpose `history`"
        }
        Purpose::History => {
            "history without the old contents: all commits and trees, so that logs and merge bases need no server"
        }
        Purpose::Blobs => {
            "large contents stay on the server until they are checked out, and fetches cost about as much as in a full clone"
        }
    }
}

fn check(wanted: &GitCloneOptions) -> Result<(), RemoteError> {
    let senseless = |why: String| Err(RemoteError::senseless(why));
    if let Some(id) = wanted.revision.as_ref().filter(|id| !is_object_id(id)) {
        return senseless(format!("{id:?} is not the whole id of a commit, which has 40 or 64 hexadecimal digits"));
    }
    let is_no_name = |name: &&String| name.is_empty() || name.starts_with('-') || name.contains(char::is_control);
    if let Some(name) = wanted.branch.as_ref().filter(is_no_name) {
        return senseless(format!("{name:?} cannot be the name of a branch"));
    }
    for path in &wanted.sparse {
        let outside = path.split('/').any(|part| part == "..");
        let is_whole = path.split('/').all(|part| matches!(part, "" | "."));
        if is_whole || outside || path.contains(char::is_control) {
            return senseless(format!("{path:?} is not a directory of the repository"));
        }
    }
    Ok(())
}

impl PlannedClone {
    /// Returns the commands that make the repository at `tree`, without a checkout.
    pub(crate) fn begin(&self, tree: &Path) -> Vec<Step> {
        if let (Some(id), Some(_)) = (&self.recipe.revision, self.recipe.depth) {
            return self.init_and_fetch(tree, id);
        }
        let purpose = format!("calve.purpose={}", self.purpose);
        let mut step = self.limited(Step::beside(["clone", "--no-checkout", "-c", &purpose]));
        if self.recipe.depth.is_some() {
            step = step.with("--single-branch");
        }
        if let Some(name) = &self.recipe.branch {
            step = step.with(format!("--branch={name}"));
        }
        vec![step.with("--").with(self.url.as_os_str()).with(tree)]
    }

    /// Returns the commands that clone one commit: git has an option for that only since 2.49.
    fn init_and_fetch(&self, tree: &Path, id: &str) -> Vec<Step> {
        let format = if id.len() == 64 { "sha256" } else { "sha1" };
        let mut steps = vec![
            Step::beside(["init", "--quiet"]).with(format!("--object-format={format}")).with(tree),
            Step::inside(["config", "calve.purpose"]).with(self.purpose.to_string()),
            Step::inside(["config", "remote.origin.url"]).with(self.url.as_os_str()),
        ];
        if let Some(filter) = self.recipe.filter {
            steps.push(Step::inside(["config", "remote.origin.promisor", "true"]));
            steps.push(Step::inside(["config", "remote.origin.partialclonefilter", filter]));
        }
        steps.push(self.limited(Step::inside(["fetch", "--no-tags"])).with("origin").with(id));
        // Otherwise HEAD would name a branch that does not exist yet.
        steps.push(Step::inside(["update-ref", "--no-deref", "HEAD"]).with(format!("{id}^{{commit}}")));
        steps
    }

    fn limited(&self, step: Step) -> Step {
        let step = self.recipe.filter.iter().fold(step, |step, filter| step.with(format!("--filter={filter}")));
        self.recipe.depth.iter().fold(step, |step, depth| step.with(format!("--depth={depth}")))
    }

    pub(crate) fn check_out(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.recipe.sparse.is_empty() {
            let mut set = Step::inside(["sparse-checkout", "set", "--stdin"]);
            for path in self.recipe.sparse.iter().map(|path| path.trim_matches('/')) {
                // git would unquote a name in quotes as in C, and trim spaces at its ends.
                let is_other = path.starts_with(['"', ' ']) || path.ends_with(' ');
                let line = if is_other { format!("/{path}/\n") } else { format!("{path}\n") };
                set.input.extend_from_slice(line.as_bytes());
            }
            steps.extend([Step::inside(["sparse-checkout", "init", "--cone"]), set]);
        }
        // Without `--force`, git succeeds although it could not write a file.
        steps.push(match &self.recipe.revision {
            Some(id) => Step::inside(["checkout", "--force", "--detach"]).with(id),
            None => Step::inside(["checkout", "--force"]),
        });
        steps
    }

    /// Returns whether git links or copies a repository's files on this machine, instead of asking a server.
    pub(crate) fn is_local(&self) -> bool {
        self.url.kind == Transport::Local
    }
}

impl Step {
    fn beside<const N: usize>(words: [&str; N]) -> Step {
        Step { arguments: words.into_iter().map(OsString::from).collect(), inside: false, input: Vec::new() }
    }

    pub(crate) fn inside<const N: usize>(words: [&str; N]) -> Step {
        Step { inside: true, ..Step::beside(words) }
    }

    pub(crate) fn name(&self) -> String {
        let word = self.arguments.first().map(|word| word.to_string_lossy().into_owned());
        format!("git {}", word.unwrap_or_default())
    }

    pub(crate) fn with(mut self, argument: impl Into<OsString>) -> Step {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn spoken(&self, directory: &Path) -> String {
        let mut words = vec!["git".to_owned()];
        if self.inside {
            words.extend(["-C".into(), quoted(directory.as_os_str())]);
        }
        words.extend(self.arguments.iter().map(|argument| quoted(argument)));
        if !self.input.is_empty() {
            let lines: Vec<_> =
                String::from_utf8_lossy(&self.input).lines().map(|line| quoted(line.as_ref())).collect();
            return format!("printf '%s\\n' {} | {}", lines.join(" "), words.join(" "));
        }
        words.join(" ")
    }
}

/// Quotes a word for a shell, and for a terminal: characters that could drive it are escaped.
fn quoted(word: &OsStr) -> String {
    let Some(text) = word.to_str().filter(|text| !text.contains(char::is_control)) else {
        return redact::word(&ansi_c(word.as_encoded_bytes()));
    };
    let shown = redact::word(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    fn chosen(url: &str, purpose: Purpose, tip: Tip, sparse: &[&str]) -> Result<Vec<String>, RemoteError> {
        let (branch, revision) = match tip {
            Tip::Default => (None, None),
            Tip::Branch(name) => (Some(name.to_owned()), None),
            Tip::Revision(id) => (None, Some(id.to_owned())),
        };
        let url = RepositoryUrl::parse(OsStr::new(url)).unwrap();
        let sparse = sparse.iter().map(|path| (*path).to_owned()).collect();
        let (dst, require, prompts, cancel) = ("it's".into(), Vec::new(), Prompts::Never, CancelToken::default());
        let options = GitCloneOptions { url, dst, purpose, branch, revision, sparse, require, prompts, cancel };
        choose(&options, false, "2.47".into()).map(|plan| plan.recipe.commands)
    }

    enum Tip {
        Default,
        Branch(&'static str),
        Revision(&'static str),
    }

    fn lines(purpose: Purpose, tip: Tip, sparse: &[&str]) -> Vec<String> {
        chosen("https://me:secret@example.org/a b.git", purpose, tip, sparse).unwrap()
    }

    #[test]
    fn each_purpose_has_its_recipe() {
        let url = "https://example.org/a%20b.git";
        let to = format!("-- {url} 'it'\\''s'");
        let check_out = "git -C 'it'\\''s' checkout --force";
        assert_eq!(
            lines(Purpose::Dev, Tip::Default, &[]),
            [format!("git clone --no-checkout -c calve.purpose=dev {to}"), check_out.into()]
        );
        assert_eq!(
            lines(Purpose::Ci, Tip::Branch("main"), &[]),
            [
                format!("git clone --no-checkout -c calve.purpose=ci --depth=1 --single-branch --branch=main {to}"),
                check_out.into()
            ]
        );
        for purpose in [Purpose::History, Purpose::Blobs] {
            let begin = format!("git clone --no-checkout -c calve.purpose={purpose} --filter=blob:none {to}");
            assert_eq!(lines(purpose, Tip::Default, &[]), [begin, check_out.into()]);
        }
        assert_eq!(
            lines(Purpose::Dev, Tip::Default, &["/docs/", "a b"]),
            [
                format!("git clone --no-checkout -c calve.purpose=dev --filter=blob:none {to}"),
                "git -C 'it'\\''s' sparse-checkout init --cone".into(),
                "printf '%s\\n' docs 'a b' | git -C 'it'\\''s' sparse-checkout set --stdin".into(),
                check_out.into()
            ]
        );
    }

    #[test]
    fn one_commit_is_fetched_by_itself() {
        let shallow = lines(Purpose::Ci, Tip::Revision(ID), &[]);
        let fetch = format!("fetch --no-tags --depth=1 origin {ID}");
        assert!(shallow.iter().any(|line| line.ends_with(&fetch)), "{shallow:?}");
        for lines in [shallow, lines(Purpose::Dev, Tip::Revision(ID), &[])] {
            assert!(lines.last().unwrap().ends_with(&format!("checkout --force --detach {ID}")), "{lines:?}");
            assert!(!lines.concat().contains("secret"), "{lines:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |purpose, tip, sparse: &[&str]| {
            chosen("https://example.org/a", purpose, tip, sparse).unwrap_err();
        };
        refused(Purpose::Ci, Tip::Revision("HEAD"), &[]);
        refused(Purpose::Ci, Tip::Revision(&ID[1..]), &[]);
        refused(Purpose::Ci, Tip::Branch("--upload-pack=x"), &[]);
        for path in ["", "/", ".", "./", "../x", "a/../b", "a\nb"] {
            refused(Purpose::Dev, Tip::Default, &[path]);
        }
    }
}
