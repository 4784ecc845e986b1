use calve_core::internal::ShownPath;
use calve_git::remote::{FetchReport, GitCloneReport, PlannedClone, Traffic};
use calve_receipt::human::{counted, size};

pub(crate) fn plan_text(PlannedClone { purpose, recipe, .. }: &PlannedClone) -> String {
    let mut text = format!("for {purpose}: {}\n", recipe.reason);
    recipe.commands.iter().for_each(|command| text.push_str(&format!("{command}\n")));
    text
}

pub(crate) fn clone_sentence(report: &GitCloneReport) -> String {
    let mut parts = vec![traffic(&report.traffic)];
    if report.plan.recipe.filter.is_some() {
        let least = if report.missing.counted { "" } else { "at least " };
        parts.push(format!("{least}{} left on the server", counted(report.missing.objects, "object")));
    }
    parts.push(format!("in {:.2} s", report.seconds.total));
    format!("cloned `{}` to `{}`: {}", report.plan.url, ShownPath(&report.plan.dst), parts.join(", "))
}

pub(crate) fn fetch_sentence(report: &FetchReport) -> String {
    let what =
        if report.updated.is_empty() { "nothing new".to_owned() } else { format!("{} updated", report.updated.len()) };
    format!("fetched: {what}, {}, in {:.2} s", traffic(&report.traffic), report.seconds)
}

fn traffic(traffic: &Traffic) -> String {
    let requests = traffic.requests.map(|requests| counted(requests, "request") + ", ").unwrap_or_default();
    match traffic.bytes_received {
        Some(bytes) => format!("{requests}{} received", size(bytes)),
        None => format!("{requests}objects of unknown size received"),
    }
}
