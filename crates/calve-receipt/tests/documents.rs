//! The published schema keeps the shapes that programs read: `documents.jsonl` has one document of each kind, as the program printed it
//! when the schema was first published (`calve.write/1`, which only packages hand over, was written by hand).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

use calve_testkit::assert_document;
use serde_json::Value;

fn documents() -> Vec<Value> {
    include_str!("documents.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn documents_of_earlier_versions_fit_the_schema() {
    documents().iter().for_each(assert_document);
}

#[test]
fn a_document_that_does_not_fit_is_told_apart() {
    let spoil: [fn(&mut Value); 4] = [
        |document| document["strategy"] = "magic".into(),
        |document| document["entries"]["files"] = "1".into(),
        |document| document["added"] = 1.into(),
        |document| drop(document.as_object_mut().unwrap().remove("bytes")),
    ];
    for spoil in spoil {
        let mut document = documents().swap_remove(0);
        spoil(&mut document);
        assert!(std::panic::catch_unwind(|| assert_document(&document)).is_err(), "{document}");
    }
}
