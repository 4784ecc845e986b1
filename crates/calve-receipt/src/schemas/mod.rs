//! The words of documents, for their JSON Schema.

// Not every system has all the documents.
mod generated;

use std::path::Path;

#[test]
fn the_documentation_has_every_warning_of_the_engine() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receipt.md");
    let text = fs_err::read_to_string(page).unwrap();
    let table = text.split("\n## ").find(|section| section.starts_with("Warnings\n")).unwrap();
    let codes = table.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    let mut codes: Vec<&str> = codes.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    codes.sort_unstable();
    assert_eq!(codes, calve_core::report::WarningCode::CODES);
}
