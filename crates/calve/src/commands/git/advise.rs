use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::advise::{Cost, Numbers, RepositoryCosts, Sentence, Test, advise};
use calve_git::remote::published;
use serde_json::Value;

use crate::cli::git::GitAdviseArguments;
use crate::failure::{FAILED, Failure};
use crate::output;
use calve_receipt::GitAdviceReceipt;

pub(crate) fn run(arguments: &GitAdviseArguments) -> Result<(), Failure> {
    let numbers = match &arguments.bench {
        Some(file) => numbers_in(file)?,
        None => published::numbers(),
    };
    let sentences = advise(&numbers, arguments.jobs);
    let text = text(&numbers, &sentences);
    let receipt = GitAdviceReceipt { source: numbers.source, jobs: arguments.jobs, sentences };
    output::json_or(arguments.json, &receipt, &text)
}

fn text(numbers: &Numbers, sentences: &[Sentence]) -> String {
    let mut text = format!("numbers: {}\n", numbers.source);
    for measured in &numbers.repositories {
        text.push_str(&format!("\n{}\n", ShownPath(Path::new(&measured.repository))));
        let mine = sentences.iter().filter(|sentence| sentence.repository == measured.repository);
        let lines = mine.map(|sentence| format!("  {:<8} {}\n", sentence.topic, sentence.text));
        let before = text.len();
        text.extend(lines);
        if text.len() == before {
            text.push_str("  too few of the tests T1 to T10 were measured to say anything\n");
        }
    }
    text
}

fn numbers_in(file: &Path) -> Result<Numbers, Failure> {
    let unusable = |why: &str| {
        let text = format!("`{}` has no numbers to advise by: {why}", ShownPath(file));
        Failure::stated(FAILED, text, "name a file with what `calve bench git --json` printed")
    };
    let bytes = fs_err::read(file).map_err(|error| unusable(&error.to_string()))?;
    let report: Value =
        serde_json::from_slice(&bytes).map_err(|error| unusable(&format!("it is not JSON ({error})")))?;
    for warning in report["warnings"].as_array().into_iter().flatten() {
        let message = warning["message"].as_str().unwrap_or_default();
        output::warn(&format!("these numbers come with a warning: {}", ShownPath(Path::new(message))));
    }
    let results = report["results"].as_array().ok_or_else(|| unusable("there is no list `results` in it"))?;
    let mut repositories: Vec<RepositoryCosts> = Vec::new();
    for result in results {
        let Some(Ok(test)) = result["test"].as_str().map(str::parse::<Test>) else { continue };
        let Some(cost) = cost(test, result, results) else { continue };
        let name = result["repository"].as_str().unwrap_or("the repository").to_owned();
        match repositories.iter_mut().find(|measured| measured.repository == name) {
            Some(measured) => measured.costs.push((test, cost)),
            None => repositories.push(RepositoryCosts { repository: name, costs: vec![(test, cost)] }),
        }
    }
    if repositories.is_empty() {
        return Err(unusable("none of its `results` is one of the tests T1 to T10 with a `median`"));
    }
    Ok(Numbers { source: format!("medians measured by `calve bench git`, from `{}`", ShownPath(file)), repositories })
}

/// Extracts the cost of the clone, or of the fetch with its reset; `None` for other entries. hyperfine counts seconds.
fn cost(test: Test, result: &Value, results: &[Value]) -> Option<Cost> {
    let operation = if test <= Test::T4 { "clone" } else { "fetch" };
    if result["operation"].as_str().is_some_and(|of| of != operation) {
        return None;
    }
    let usable = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let same = |other: &&Value| other["test"] == result["test"] && other["repository"] == result["repository"];
    let reset = results.iter().filter(same).find(|other| operation == "fetch" && other["operation"] == "reset");
    let cpu = usable(&result["server_cpu_ms"]["median"]);
    // Being up to date includes the objects that a partial clone fetches during the reset.
    let later = reset.and_then(|reset| usable(&reset["server_cpu_ms"]["median"])).unwrap_or(0.0);
    Some(Cost {
        wall_ms: usable(&result["median"])? * 1000.0,
        reset_ms: reset.and_then(|reset| usable(&reset["median"])).map(|seconds| seconds * 1000.0),
        server_cpu_ms: cpu.map(|cpu| cpu + later),
    })
}
