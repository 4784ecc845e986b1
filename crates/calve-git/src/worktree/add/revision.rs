use crate::error::Result;
use crate::git::Git;

/// Parses the number in `pr/123`.
pub(crate) fn pull_request(branch: &str) -> Option<u64> {
    let digits = branch.strip_prefix("pr/")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns the commit that a local branch has now. `git rev-parse` would take `refs/heads/x-0-gab12` for a commit that begins with `ab12`.
pub(crate) fn branch_tip(git: &Git, branch: &str) -> Result<Option<String>> {
    let reference = format!("refs/heads/{branch}");
    // Those below it match, too.
    let listed = git.run(&["for-each-ref", "--format=%(objectname) %(refname)", &reference])?;
    let listed = String::from_utf8_lossy(&listed);
    let mut tips = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(tips.find(|(_, name)| *name == reference).map(|(oid, _)| oid.to_owned()))
}

pub(crate) fn commit(git: &Git, revision: &str) -> Result<Option<String>> {
    let revision = format!("{revision}^{{commit}}");
    let answer = git.answer(&["rev-parse", "--verify", "--quiet", "--end-of-options", &revision])?;
    // `^x` is an answer too: all but `x`.
    Ok(answer.filter(|oid| !oid.starts_with('^')))
}
