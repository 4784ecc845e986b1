//! `calve git advise`.

use std::path::Path;

use calve_core::Shown;
use calve_git::advise::{Cost, Measured, Numbers, Sentence, Test, advise, published};
use serde_json::{Value, json};

use crate::cli::git::GitAdviseArguments;
use crate::failure::{FAILED, Failure};
use crate::output;

pub(crate) fn run(arguments: &GitAdviseArguments) -> Result<(), Failure> {
    let numbers = match &arguments.bench {
        Some(file) => numbers_in(file)?,
        None => published::numbers(),
    };
    let sentences = advise(&numbers, arguments.jobs);
    if arguments.json {
        return output::json(&document(&numbers, &sentences, arguments.jobs));
    }
    output::result(&text(&numbers, &sentences))
}

fn text(numbers: &Numbers, sentences: &[Sentence]) -> String {
    let mut text = format!("numbers: {}\n", numbers.source);
    for measured in &numbers.repositories {
        text.push_str(&format!("\n{}\n", Shown(Path::new(&measured.repository))));
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

fn document(numbers: &Numbers, sentences: &[Sentence], jobs: u64) -> Value {
    let sentence = |sentence: &Sentence| {
        json!({
            "repository": sentence.repository,
            "topic": sentence.topic,
            "text": sentence.text,
            "tests": sentence.tests.iter().map(|test| test.to_string()).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "calve.git-advice/1",
        "source": numbers.source,
        "jobs": jobs,
        "sentences": sentences.iter().map(sentence).collect::<Vec<_>>(),
    })
}

/// Reads what `calve bench git --export-json` wrote.
fn numbers_in(file: &Path) -> Result<Numbers, Failure> {
    let unusable = |why: &str| {
        let text = format!("`{}` has no numbers to advise by: {why}", Shown(file));
        Failure::stated(FAILED, text, "name a file that `calve bench git --export-json FILE` has written")
    };
    let bytes = fs_err::read(file).map_err(|error| unusable(&error.to_string()))?;
    let report: Value =
        serde_json::from_slice(&bytes).map_err(|error| unusable(&format!("it is no JSON ({error})")))?;
    let results = report["results"].as_array().ok_or_else(|| unusable("there is no list `results` in it"))?;
    let mut repositories: Vec<Measured> = Vec::new();
    for result in results {
        let Some(Ok(test)) = result["test"].as_str().map(str::parse::<Test>) else { continue };
        let Some(cost) = cost(result) else { continue };
        let name = repository(result, &report);
        let known = repositories.iter().position(|measured| measured.repository == name);
        let index = known.unwrap_or_else(|| {
            repositories.push(Measured { repository: name.clone(), costs: Vec::new() });
            repositories.len() - 1
        });
        repositories[index].costs.push((test, cost));
    }
    if repositories.is_empty() {
        return Err(unusable("none of its `results` is one of the tests T1 to T10 with a `median`"));
    }
    Ok(Numbers { source: format!("medians measured by `calve bench git`, from `{}`", Shown(file)), repositories })
}

fn repository(result: &Value, report: &Value) -> String {
    let name = |value: &Value| value.as_str().map(str::to_owned);
    let named = name(&result["repository"]).or_else(|| name(&result["repository"]["name"]));
    named.or_else(|| name(&report["repository"])).unwrap_or_else(|| "the repository".to_owned())
}

/// hyperfine's fields are in seconds.
fn cost(result: &Value) -> Option<Cost> {
    let usable = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    let wall = usable(&result["median"])?;
    Some(Cost { wall_ms: wall * 1000.0, reset_ms: None, server_cpu_ms: usable(&result["server_cpu_ms_median"]) })
}
