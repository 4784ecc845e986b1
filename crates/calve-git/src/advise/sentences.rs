//! Turns numbers into advice. Pure: every sentence names the numbers behind it.

use serde::Serialize;

use super::numbers::{Cost, Numbers, RepositoryCosts, Test};

/// One sentence of advice and the facts behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "AdviceSentence")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sentence {
    /// The repository that was measured.
    pub repository: String,
    /// The subject: a purpose, `fetch`, `shallow` or `fleet`.
    pub topic: &'static str,
    /// The sentence.
    pub text: String,
    /// The names of the tests, such as `T1`.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub tests: Vec<Test>,
}

/// Puts the numbers into words, for a fleet with `jobs` a day. Omits a question whose tests were not measured.
pub fn advise(numbers: &Numbers, jobs: u64) -> Vec<Sentence> {
    let mut all = Vec::new();
    for measured in &numbers.repositories {
        let about = [throw_away(measured), history(measured), developer(measured), large_contents(measured)];
        all.extend(about.into_iter().flatten());
        all.extend(shallow_and_fetch(measured, Test::T7));
        all.extend(shallow_and_fetch(measured, Test::T8));
        all.extend(kept_or_thrown_away(measured));
        all.extend(depth_into_full(measured));
        all.extend(fleet(measured, jobs));
    }
    all
}

fn sentence(measured: &RepositoryCosts, topic: &'static str, tests: &[Test], text: String) -> Sentence {
    Sentence { repository: measured.repository.clone(), topic, text, tests: tests.to_vec() }
}

/// Describes tests and costs: "T2 (clone --depth=1): 300 ms, 15 ms of server CPU". `None` if one was not measured.
fn named(measured: &RepositoryCosts, tests: &[Test]) -> Option<String> {
    let one = |test: &Test| Some(format!("{test} ({}): {}", test.words(), figures(measured.cost(*test)?)));
    Some(tests.iter().map(one).collect::<Option<Vec<_>>>()?.join("; "))
}

fn figures(cost: &Cost) -> String {
    let reset = cost.reset_ms.map(|ms| format!(" and {} for the reset", spoken(ms))).unwrap_or_default();
    let cpu = cost.server_cpu_ms.map(|ms| format!(", {} of server CPU", spoken(ms))).unwrap_or_default();
    format!("{}{reset}{cpu}", spoken(cost.wall_ms))
}

fn least(measured: &RepositoryCosts, tests: &[Test], of: impl Fn(&Cost) -> Option<f64>) -> Option<Test> {
    let known = tests.iter().filter_map(|test| Some((*test, of(measured.cost(*test)?)?)));
    known.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(test, _)| test)
}

fn throw_away(measured: &RepositoryCosts) -> Option<Sentence> {
    let tests = [Test::T1, Test::T2, Test::T3, Test::T4];
    let all: Vec<_> = tests.iter().filter_map(|test| named(measured, &[*test])).collect();
    if all.len() < 2 {
        return None;
    }
    let fastest = least(measured, &tests, |cost| Some(cost.client_ms()))?;
    let lightest = least(measured, &tests, |cost| cost.server_cpu_ms);
    let verdict = match lightest {
        Some(lightest) if lightest != fastest => format!(
            "{fastest} ({}) is the fastest to have, and {lightest} ({}) costs the server least",
            fastest.words(),
            lightest.words()
        ),
        Some(_) => format!("{fastest} ({}) is the fastest to have and costs the server least", fastest.words()),
        None => format!("{fastest} ({}) is the fastest to have", fastest.words()),
    };
    let usual = if fastest == Test::T2 { "it" } else { "T2, which has least to store" };
    let all = all.join("; ");
    let text = format!("for a clone that is thrown away, {verdict}; the purpose `ci` takes {usual} ({all})");
    Some(sentence(measured, "ci", &tests, text))
}

fn history(measured: &RepositoryCosts) -> Option<Sentence> {
    let (treeless, blobless) = (measured.cost(Test::T3)?, measured.cost(Test::T4)?);
    let saved = blobless.client_ms() - treeless.client_ms();
    let clones = named(measured, &[Test::T3, Test::T4])?;
    let faster = spoken(saved);
    let compared = match saved > 0.0 {
        true => {
            format!("treeless is {faster} faster to clone, and then asks the server for every tree that is looked at")
        }
        false => "blobless is no slower to clone than treeless".to_owned(),
    };
    let mut text = format!("for a build that needs history, the purpose `history` is blobless: {compared} ({clones})");
    let mut tests = vec![Test::T3, Test::T4];
    if let (Some(t9), Some(t10)) = (measured.cost(Test::T9), measured.cost(Test::T10)) {
        let each = t9.client_ms() - t10.client_ms();
        if saved > 0.0 && each > 0.0 {
            let after = (saved / each).floor() + 1.0;
            text.push_str(&format!(
                "; a fetch and reset take {} longer in the treeless one (T9: {}; T10: {}), so that it has lost its lead after {after} of them",
                spoken(each),
                figures(t9),
                figures(t10)
            ));
            tests.extend([Test::T9, Test::T10]);
        }
    }
    Some(sentence(measured, "history", &tests, text))
}

fn developer(measured: &RepositoryCosts) -> Option<Sentence> {
    let lasting = compare(measured, [Test::T4, Test::T10], "a blobless clone")?;
    let text = format!(
        "for a developer, the purpose `dev` is full, so that nothing asks the server again for what it had already: {lasting}"
    );
    Some(sentence(measured, "dev", &[Test::T1, Test::T4, Test::T5, Test::T10], text))
}

fn large_contents(measured: &RepositoryCosts) -> Option<Sentence> {
    let (full, blobless) = (measured.cost(Test::T1)?, measured.cost(Test::T4)?);
    // Rounded as printed: a sentence that says 100 % must not claim a saving.
    let share = (100.0 * blobless.client_ms() / full.client_ms()).round();
    let advice = match share {
        ..50.0 => "so the purpose `blobs` pays here",
        50.0..100.0 => "so the purpose `blobs` saves less than half of the wait here",
        _ => "so the purpose `blobs` does not pay here: a full clone is at least as fast",
    };
    let text = format!(
        "a blobless clone took {share:.0} % of the time of a full one, {advice} ({})",
        named(measured, &[Test::T4, Test::T1])?
    );
    Some(sentence(measured, "blobs", &[Test::T1, Test::T4], text))
}

fn shallow_and_fetch(measured: &RepositoryCosts, fetch: Test) -> Option<Sentence> {
    let with = if fetch == Test::T8 { "with `fetch --depth=1`" } else { "without a depth" };
    let name = format!("a shallow clone that is fetched into {with}");
    let text = compare(measured, [Test::T2, fetch], &name)?;
    Some(sentence(measured, "shallow", &[Test::T1, Test::T2, Test::T5, fetch], text))
}

fn kept_or_thrown_away(measured: &RepositoryCosts) -> Option<Sentence> {
    let (full, shallow, fetch) = (measured.cost(Test::T1)?, measured.cost(Test::T2)?, measured.cost(Test::T5)?);
    let kept = |what: &str, once: f64, each: f64, anew: f64| match anew - each {
        saved if saved > 0.0 => {
            format!("after {} in {what}", counted((once / saved).floor() as u64 + 1, "job", "jobs"))
        }
        _ => format!("never in {what}"),
    };
    let mut answers = vec![kept("waiting", full.client_ms(), fetch.client_ms(), shallow.client_ms())];
    if let (Some(once), Some(each), Some(anew)) = (full.server_cpu_ms, fetch.server_cpu_ms, shallow.server_cpu_ms) {
        answers.push(kept("server CPU", once, each, anew));
    }
    let text = format!(
        "a full clone that is kept and fetched into is cheaper than a new shallow clone for every job {} ({})",
        answers.join(", "),
        named(measured, &[Test::T1, Test::T5, Test::T2])?
    );
    Some(sentence(measured, "fetch", &[Test::T1, Test::T2, Test::T5], text))
}

fn depth_into_full(measured: &RepositoryCosts) -> Option<Sentence> {
    let (plain, depth) = (measured.cost(Test::T5)?, measured.cost(Test::T6)?);
    let times = |a: f64, b: f64| if b > 0.0 { format!("{:.1} times", a / b) } else { "far more than".into() };
    let mut factors = vec![format!("{} the wait", times(depth.client_ms(), plain.client_ms()))];
    if let (Some(a), Some(b)) = (depth.server_cpu_ms, plain.server_cpu_ms) {
        factors.push(format!("{} the server CPU", times(a, b)));
    }
    let text = format!(
        "`fetch --depth=1` into a full clone takes {} of a plain fetch, and cuts the history off ({})",
        factors.join(" and "),
        named(measured, &[Test::T6, Test::T5])?
    );
    Some(sentence(measured, "fetch", &[Test::T5, Test::T6], text))
}

fn fleet(measured: &RepositoryCosts, jobs: u64) -> Option<Sentence> {
    const DAY_MS: f64 = 86_400_000.0;
    let ways = [
        (Test::T1, "a full clone each"),
        (Test::T2, "a shallow clone each"),
        (Test::T3, "a treeless clone each"),
        (Test::T4, "a blobless clone each"),
        (Test::T5, "a fetch into a full clone that is kept"),
    ];
    let mut tests = Vec::new();
    let costs = ways.iter().filter_map(|(test, words)| {
        let each = measured.cost(*test)?.server_cpu_ms?;
        tests.push(*test);
        let all = each * jobs as f64;
        let share = 100.0 * all / DAY_MS;
        Some(format!("{words} {} ({test}: {} each; {share:.1} % of one core)", spoken(all), spoken(each)))
    });
    let costs: Vec<_> = costs.collect();
    if costs.is_empty() {
        return None;
    }
    let jobs = counted(jobs, "job", "jobs");
    let text = format!("{jobs} a day cost the server this much CPU time a day: {}", costs.join("; "));
    Some(sentence(measured, "fleet", &tests, text))
}

/// Compares a clone with its fetches to a full one: which is cheaper at first, and until how many fetches.
fn compare(measured: &RepositoryCosts, own: [Test; 2], name: &str) -> Option<String> {
    let full = [Test::T1, Test::T5];
    let answer = |what: &str, of: fn(&Cost) -> Option<f64>| {
        let costs = |[clone, fetch]: [Test; 2]| Some((of(measured.cost(clone)?)?, of(measured.cost(fetch)?)?));
        Some(lead(what, costs(own)?, costs(full)?))
    };
    let waiting = answer("waiting", |cost| Some(cost.client_ms()))?;
    let answers: Vec<_> = std::iter::once(waiting).chain(answer("server CPU", |cost| cost.server_cpu_ms)).collect();
    Some(format!("{name} is {} ({})", answers.join(", and "), named(measured, &[own, full].concat())?))
}

/// Says when a clone with its fetches is cheaper than a full one. Each pair is the cost once, and of each fetch.
fn lead(what: &str, (a_once, a_each): (f64, f64), (full_once, full_each): (f64, f64)) -> String {
    let meeting = ((full_once - a_once) / (a_each - full_each)).floor() as u64;
    let fetches = counted(meeting.saturating_add(1), "fetch", "fetches");
    match (a_once < full_once, a_each > full_each) {
        (true, true) => format!("cheaper than a full one in {what} until {fetches}"),
        (true, false) => format!("cheaper than a full one in {what} however many fetches"),
        (false, false) if a_each < full_each => format!("cheaper than a full one in {what} only after {fetches}"),
        (false, _) => format!("never cheaper than a full one in {what}"),
    }
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats milliseconds for people, with three digits: "15 ms", "1.25 s", "5 min".
fn spoken(milliseconds: f64) -> String {
    let (number, unit) = match milliseconds {
        ms if ms < 1000.0 => (ms, "ms"),
        ms if ms < 60_000.0 => (ms / 1000.0, "s"),
        ms if ms < 3_600_000.0 => (ms / 60_000.0, "min"),
        ms => (ms / 3_600_000.0, "h"),
    };
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    let text = format!("{number:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::published;

    #[test]
    fn times_are_readable() {
        let cases = [
            (0.0, "0 ms"),
            (4.0, "4 ms"),
            (0.256, "0.26 ms"),
            (300.0, "300 ms"),
            (1250.0, "1.25 s"),
            (50_000.0, "50 s"),
        ];
        let longer = [(144_000.0, "2.4 min"), (7_500_000.0, "2.08 h"), (600_000.0, "10 min"), (360_000_000.0, "100 h")];
        for (ms, text) in cases.into_iter().chain(longer) {
            assert_eq!(spoken(ms), text);
        }
    }

    #[test]
    fn a_lead_ends_where_the_sums_meet() {
        for (a, full, words) in [
            ((300.0, 255.0), (2000.0, 205.0), "cheaper than a full one in CPU until 35 fetches"),
            ((15.0, 4.0), (450.0, 4.0), "cheaper than a full one in CPU however many fetches"),
            ((450.0, 4.0), (15.0, 14.0), "cheaper than a full one in CPU only after 44 fetches"),
            ((130.0, 9.0), (60.0, 4.0), "never cheaper than a full one in CPU"),
        ] {
            assert_eq!(lead("CPU", a, full), words);
        }
        for (a, b, fetches) in [((300.0, 255.0), (2000.0, 205.0), 35.0), ((0.0, 3.0), (10.0, 1.0), 6.0)] {
            let sum = |(once, each): (f64, f64), n: f64| once + n * each;
            assert!(sum(a, fetches) > sum(b, fetches) && sum(a, fetches - 1.0) <= sum(b, fetches - 1.0));
        }
    }

    #[test]
    fn blobless_clones_are_advised_where_they_save_something() {
        for (milliseconds, expected) in [
            (400.0, "pays here"),
            (700.0, "saves less than half"),
            (996.0, "does not pay here"),
            (2000.0, "does not pay here"),
        ] {
            let mut measured = published::numbers().repositories.swap_remove(0);
            let full = measured.cost(Test::T1).unwrap().client_ms();
            let (_, blobless) = measured.costs.iter_mut().find(|(test, _)| *test == Test::T4).unwrap();
            (blobless.wall_ms, blobless.reset_ms) = (full * milliseconds / 1000.0, None);
            let text = large_contents(&measured).unwrap().text;
            assert!(text.contains(expected), "{milliseconds}: {text}");
        }
    }

    #[test]
    fn every_sentence_names_the_numbers_it_stands_on() {
        let numbers = published::numbers();
        let sentences = advise(&numbers, 1000);
        for measured in &numbers.repositories {
            let mine: Vec<_> = sentences.iter().filter(|sentence| sentence.repository == measured.repository).collect();
            for topic in ["ci", "history", "dev", "blobs", "shallow", "fetch", "fleet"] {
                assert!(mine.iter().any(|sentence| sentence.topic == topic), "{topic}");
            }
            for Sentence { text, tests, topic, .. } in mine {
                assert!(!tests.is_empty());
                for test in tests {
                    let cost = measured.cost(*test).unwrap();
                    let number = match *topic {
                        "fleet" => spoken(cost.server_cpu_ms.unwrap()),
                        _ => spoken(cost.wall_ms),
                    };
                    assert!(text.contains(&test.to_string()) && text.contains(&number), "{topic}: {test}: {text}");
                }
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_not_spoken_of() {
        let mut numbers = published::numbers();
        numbers.repositories.truncate(1);
        numbers.repositories[0].costs.retain(|(test, _)| *test <= Test::T4);
        for (_, cost) in &mut numbers.repositories[0].costs {
            cost.server_cpu_ms = None;
        }
        let sentences = advise(&numbers, 10);
        assert!(sentences.iter().all(|sentence| !sentence.text.contains("CPU")), "{sentences:?}");
        assert!(sentences.iter().all(|sentence| ["ci", "history", "blobs"].contains(&sentence.topic)), "{sentences:?}");
    }
}
