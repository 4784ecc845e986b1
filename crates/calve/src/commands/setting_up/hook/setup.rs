use std::path::PathBuf;

use calve_core::internal::ShownPath;
use calve_core::{CancelToken, CloneOptions};
use calve_env::OwnParts;
use calve_git::escape::Action;
use calve_git::worktree::{AddOptions, FillReport, left_behind};
use calve_receipt::{FactSubject, human};

use crate::commands::worktree::facts::{Facts, UNTRUSTED, dependency_lines};
use crate::failure::Failure;
use crate::host::Program;
use crate::{home, output, real_path, wording};

pub(crate) fn run(maker: &str, from: Option<&PathBuf>, cancel: &CancelToken) -> Result<(), Failure> {
    let clone = CloneOptions { spares: home::spares(), cancel: cancel.clone(), ..CloneOptions::default() };
    let options = AddOptions { start: real_path::here()?, from: from.cloned(), clone, ..AddOptions::default() };
    let mut say = |filled: &FillReport, own: &OwnParts<'_>| {
        let mut facts = Facts::default();
        describe(filled, &mut facts);
        facts.own_parts(&filled.path, &filled.donor, own);
        facts.say();
    };
    let path = calve_env::set_up(&Program, &options, maker, &mut say, cancel)?;
    output::path(&path)
}

fn describe(filled: &FillReport, facts: &mut Facts) {
    let repaired = filled.audit.findings.iter().filter(|found| found.action != Action::Reported).count();
    let carried = human::entries(filled.untracked.carried.len() as u64);
    let donor = ShownPath(&filled.donor);
    let text = format!("carried {carried} that git ignores from `{donor}`; {repaired} repaired in them");
    facts.add(FactSubject::Files, text);
    if filled.provenance.is_untrusted() {
        facts.add(FactSubject::Trust, UNTRUSTED);
    }
    for left in filled.untracked.left.iter().filter(|left| left.reason == left_behind::BEHIND_LINK) {
        let text = format!("warning: `{}` was not carried: {}", ShownPath(&left.path), left.reason.text());
        facts.add(FactSubject::Left, text);
    }
    facts.add_all(FactSubject::Dependencies, dependency_lines(&filled.untracked.dependencies, &filled.donor));
    let changed = wording::clone::changed(&filled.changed);
    facts.add_all(FactSubject::Warning, changed.map(|line| format!("warning: {line}")));
}
