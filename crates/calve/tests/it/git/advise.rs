//! Advice, and the numbers it stands on.

use serde_json::{Value, json};

use crate::program::calve;
use crate::spot::Spot;

#[test]
fn the_published_numbers_give_the_published_advice() {
    let advice = calve(["git", "advise"]).succeeds().stdout;
    assert!(advice.starts_with("numbers: published in 2020: git 2.28"), "{advice}");
    for said in [
        // T1 2,000 and T5 205, T2 300 and T8 255 ms: 1,700 / 50.
        "cheaper than a full one in waiting until 35 fetches, and cheaper than a full one in server CPU until 44 fetches",
        // T1 450, T5 4, T2 15: 450 / 11.
        "after 41 jobs in server CPU",
        // 6,250 to 600 ms, 1,000 to 40 ms.
        "takes 10.4 times the wait and 25.0 times the server CPU of a plain fetch",
        "T2 (clone --depth=1): 300 ms, 15 ms of server CPU",
        // 1,000 times 450 ms.
        "a full clone each 7.5 min (T1: 450 ms each; 0.5 % of one core)",
    ] {
        assert!(advice.contains(said), "{said}\n{advice}");
    }
    let few = calve(["git", "advise", "--jobs", "10"]).succeeds().stdout;
    assert!(few.contains("10 jobs a day") && few.contains("a full clone each 4.5 s"), "{few}");
    let document = calve(["git", "advise", "--json"]).succeeds().json();
    assert_eq!((&document["schema"], &document["jobs"]), (&json!("calve.git-advice/1"), &json!(1000)));
    assert!(
        document["sentences"]
            .as_array()
            .unwrap()
            .iter()
            .all(|sentence| !sentence["tests"].as_array().unwrap().is_empty())
    );
}

#[test]
fn the_numbers_of_a_bench_are_used_and_named() {
    let spot = Spot::anywhere();
    let result = |test: &str, seconds: f64, cpu: Value| json!({ "command": test, "test": test, "mean": seconds, "median": seconds, "server_cpu_ms": { "median": cpu }, "requests": 2, "bytes_received": 9 });
    let results = [
        result("T1", 3.0, json!(100.0)),
        result("T2", 1.0, json!(200.0)),
        result("T5", 0.25, json!(10.0)),
        result("T7", 0.5, json!(10.0)),
        json!({ "command": "something else", "median": 1.0 }),
    ];
    fs_err::write(spot.join("bench.json"), json!({ "results": results }).to_string()).unwrap();
    let advice = calve(["git", "advise", "--bench", "bench.json"]).within(&spot).succeeds().stdout;
    for said in [
        "medians measured by `calve bench git`, from `bench.json`",
        "T2 (clone --depth=1) is the fastest to have, and T1 (full clone) costs the server least",
        // 2 s ahead, lost 250 ms at a time; the server has done more from the beginning.
        "cheaper than a full one in waiting until 9 fetches, and never cheaper than a full one in server CPU",
    ] {
        assert!(advice.contains(said), "{said}\n{advice}");
    }
    assert!(!advice.contains("T4") && !advice.contains("T8"), "{advice}");
}

#[test]
fn each_operation_of_the_bench_is_taken_for_what_it_is() {
    let spot = Spot::anywhere();
    let result = |repository: &str, test: &str, operation: &str, seconds: f64, cpu: f64| json!({ "repository": repository, "test": test, "operation": operation, "median": seconds, "server_cpu_ms": { "median": cpu } });
    let results = [
        result("a", "T1", "clone", 3.0, 100.0),
        result("a", "T1", "checkout", 77.0, 777.0),
        result("a", "T5", "clone", 77.0, 777.0),
        result("a", "T5", "fetch", 0.2, 10.0),
        result("a", "T5", "reset", 0.05, 0.0),
        result("a", "T6", "fetch", 0.4, 30.0),
        result("a", "T6", "reset", 0.1, 5.0),
        result("b", "T1", "clone", 2.0, 50.0),
    ];
    let warnings = [json!({ "code": "busy", "message": "the machine was busy" })];
    let document = json!({ "results": results, "warnings": warnings });
    fs_err::write(spot.join("bench.json"), document.to_string()).unwrap();
    let ran = calve(["git", "advise", "--bench", "bench.json"]).within(&spot).succeeds();
    let advice = ran.stdout.clone();
    ran.says(&["warning: these numbers come with a warning: the machine was busy"]);
    for said in [
        "takes 2.0 times the wait and 3.5 times the server CPU of a plain fetch",
        "T6 (fetch --depth=1 into a full clone): 400 ms and 100 ms for the reset, 35 ms of server CPU",
        "(T1: 100 ms each; 0.1 % of one core)",
        "(T1: 50 ms each; 0.1 % of one core)",
    ] {
        assert!(advice.contains(said), "{said}\n{advice}");
    }
    assert!(!advice.contains("77"), "{advice}");
}

#[test]
fn a_file_without_numbers_is_refused() {
    let spot = Spot::anywhere();
    for (name, content) in [
        ("empty", ""),
        ("other.json", "{}"),
        ("none.json", r#"{"results": []}"#),
        ("wrong.json", r#"{"results": [{"test": "T1", "median": -1}, {"test": "T11", "median": 1}, {"test": 1}, 5]}"#),
    ] {
        fs_err::write(spot.join(name), content).unwrap();
        let ran = calve(["git", "advise", "--bench", name]).within(&spot).fails(1).hints();
        ran.says(&[&format!("`{name}` has no numbers"), "calve bench git --json"]);
    }
    calve(["git", "advise", "--bench", "missing"]).within(&spot).fails(1).hints();
    calve(["git", "advise", "--jobs", "0"]).fails(2);
}
