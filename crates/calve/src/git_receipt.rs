//! Receipts of `calve git`: the JSON shapes, versioned, and the lines for people.

use std::path::Path;

use calve_core::Shown;
use calve_git::remote::{CloneReceipt, Features, FetchReceipt, Notice, Property, Recipe, Tip, Traffic, Verdict};
use serde_json::{Value, json};

use crate::{receipt, wording};
use calve_receipt::human::{count, size};

/// `calve.git-clone/1`.
pub(crate) fn clone(receipt: &CloneReceipt, dst: &Path) -> Value {
    let CloneReceipt { recipe, git, head, traffic, seconds, missing, verdicts, notices } = receipt;
    json!({
        "schema": "calve.git-clone/1",
        "url": recipe.url.to_string(),
        "dst": receipt::path(dst),
        "purpose": recipe.purpose.name(),
        "recipe": self::recipe(recipe, dst),
        "git": git.version,
        "head": head,
        "requests": traffic.requests,
        "bytes_received": traffic.bytes_received,
        "seconds": { "total": rounded(seconds.total), "clone": rounded(seconds.clone), "checkout": rounded(seconds.checkout) },
        "objects_missing": missing.objects,
        "objects_missing_counted": missing.counted,
        "honoured": { "filter": honoured(verdicts, Property::Filter), "depth": honoured(verdicts, Property::Depth) },
        "warnings": notices.iter().map(notice).collect::<Vec<_>>(),
    })
}

/// `calve.git-clone-plan/1`: a dry run.
pub(crate) fn plan(recipe: &Recipe, git: &Features, dst: &Path) -> Value {
    json!({
        "schema": "calve.git-clone-plan/1",
        "url": recipe.url.to_string(),
        "dst": receipt::path(dst),
        "purpose": recipe.purpose.name(),
        "recipe": self::recipe(recipe, dst),
        "git": git.version,
    })
}

/// `calve.git-fetch/1`.
pub(crate) fn fetch(schema: &str, receipt: &FetchReceipt) -> Value {
    let mut document = json!({
        "schema": schema,
        "purpose": receipt.purpose.map(|purpose| purpose.name()),
        "shallow": receipt.shallow,
        "filter": receipt.filter,
        "commands": receipt.commands,
        "reason": receipt.reason,
    });
    if schema == "calve.git-fetch/1" {
        document["requests"] = receipt.traffic.requests.into();
        document["bytes_received"] = receipt.traffic.bytes_received.into();
        document["seconds"] = rounded(receipt.seconds).into();
        document["updated"] = receipt.updated.clone().into();
        document["warnings"] = receipt.notices.iter().map(notice).collect();
    }
    document
}

fn recipe(recipe: &Recipe, dst: &Path) -> Value {
    let (branch, revision) = match &recipe.tip {
        Tip::Default => (None, None),
        Tip::Branch(name) => (Some(name), None),
        Tip::Revision(id) => (None, Some(id)),
    };
    json!({
        "filter": recipe.filter.map(|filter| filter.spec()),
        "depth": recipe.depth,
        "branch": branch,
        "revision": revision,
        "sparse": recipe.sparse,
        "bundle_uri": recipe.bundle_uri.as_ref().map(ToString::to_string),
        "reason": recipe.reason,
        "commands": recipe.spoken(dst),
    })
}

/// Null when it was not asked for, or could not be told.
fn honoured(verdicts: &[(Property, Verdict)], wanted: Property) -> Option<bool> {
    let found = verdicts.iter().find(|(property, _)| *property == wanted);
    match found?.1 {
        Verdict::Honoured => Some(true),
        Verdict::Ignored(_) => Some(false),
        Verdict::Untold => None,
    }
}

fn notice(notice: &Notice) -> Value {
    json!({ "code": notice.code.name(), "message": wording::git::notice(notice) })
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// What will be done, and why.
pub(crate) fn plan_text(recipe: &Recipe, dst: &Path) -> String {
    let mut text = format!("for {}: {}\n", recipe.purpose, recipe.reason);
    recipe.spoken(dst).iter().for_each(|command| text.push_str(&format!("{command}\n")));
    text
}

pub(crate) fn fetch_text(receipt: &FetchReceipt) -> String {
    format!("{}: {}\n", receipt.commands.join(" && "), receipt.reason)
}

/// The one line about a clone.
pub(crate) fn clone_sentence(receipt: &CloneReceipt, dst: &Path) -> String {
    let mut parts = vec![traffic(&receipt.traffic)];
    if receipt.recipe.filter.is_some() {
        let least = if receipt.missing.counted { "" } else { "at least " };
        parts.push(format!("{least}{} objects left on the server", count(receipt.missing.objects)));
    }
    parts.push(format!("in {:.2} s", receipt.seconds.total));
    format!("cloned `{}` to `{}`: {}", receipt.recipe.url, Shown(dst), parts.join(", "))
}

pub(crate) fn fetch_sentence(receipt: &FetchReceipt) -> String {
    let what = if receipt.updated.is_empty() {
        "nothing new".to_owned()
    } else {
        format!("{} updated", receipt.updated.len())
    };
    format!("fetched: {what}, {}, in {:.2} s", traffic(&receipt.traffic), receipt.seconds)
}

fn traffic(traffic: &Traffic) -> String {
    let requests = match traffic.requests {
        Some(1) => "1 request, ".to_owned(),
        Some(requests) => format!("{} requests, ", count(requests)),
        None => String::new(),
    };
    match traffic.bytes_received {
        Some(bytes) => format!("{requests}{} received", size(bytes)),
        None => format!("{requests}few objects received"),
    }
}
