//! Generates the JSON Schema of all documents, and compares it with the one that is published.

use std::collections::BTreeMap;

use calve_core::CloneReport as CloneReceipt;
use calve_core::space::{DedupeReport as DedupeReceipt, DiskUsage as DiskUsageReceipt};
use calve_core::template::Verification as TemplateVerifyReceipt;
use calve_git::escape::AuditReport as WorktreeCheckReceipt;
use calve_git::remote::{FetchReport as GitFetchReceipt, GitCloneReport as GitCloneReceipt};
use calve_git::worktree::{ConvertReport as WorktreeConvertReceipt, WorktreeRemoveReport as WorktreeRemoveReceipt};
use calve_receipt::*;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Expands to the names of the documents, each with the schema of its type.
macro_rules! documents {
    ($($name:ident)*) => { |generator: &mut schemars::SchemaGenerator| {
        vec![$((stringify!($name), generator.subschema_for::<$name>())),*]
    } };
}

/// Generates the schema of everything that `calve --json` prints.
fn generated() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let documents = documents! {
        CloneReceipt CloneReceipts PlanReceipt PlanReceipts RemoveReceipts ProbeReceipt WriteReceipt DiskUsageReceipt
        DedupeReceipt SparesReceipt
        TemplateCreateReceipt TemplateReceipt TemplatesReceipt TemplateVerifyReceipt TemplateRemoveReceipt
        TemplatePushReceipt TemplatePullReceipt
        WorktreeAddReceipt WorktreePlanReceipt WorktreeCheckReceipt WorktreeConvertReceipt WorktreesReceipt
        WorktreePruneReceipt WorktreeRemoveReceipt WorktreeRemovePlanReceipt WorktreeRemoveReceipts
        EnvironmentReceipt ServicesReceipt
        GitCloneReceipt GitClonePlanReceipt GitFetchReceipt GitFetchPlanReceipt GitAdviceReceipt
        DbServerReceipt DbServersReceipt DbTemplateReceipt DbTemplatesReceipt DbTemplatePushReceipt DbTemplatePullReceipt DbGcReceipt
        DbPoolsReceipt DbMarkReceipt DbMarksReceipt DbPromoteReceipt
        RunReceipt VolumesReceipt
        ErrorReceipt
    }(&mut generator);
    // It has two kinds, and names them itself.
    generator.subschema_for::<bench::BenchReport>();
    let mut definitions: BTreeMap<String, Value> = generator.take_definitions(true).into_iter().collect();
    let mut renamed = Vec::new();
    for (name, schema) in &documents {
        // serde calls them by the value of `schema`, and schemars leaves that field out.
        let reference = schema.as_value()["$ref"].as_str().unwrap().to_owned();
        let tag = reference.trim_start_matches("#/$defs/").replace("~1", "/");
        let mut definition = definitions.remove(&tag).unwrap();
        let described = "The kind of document and the version of its shape.";
        let mut properties = Map::new();
        properties.insert("schema".into(), json!({ "type": "string", "const": tag, "description": described }));
        properties.extend(definition["properties"].as_object().unwrap().clone());
        definition["properties"] = properties.into();
        definition["required"].as_array_mut().unwrap().insert(0, "schema".into());
        definitions.insert((*name).into(), definition);
        renamed.push((reference, format!("#/$defs/{name}")));
    }
    let names = documents.iter().map(|(name, _)| *name).chain(["BenchReport"]);
    let names = names.map(|name| json!({ "$ref": format!("#/$defs/{name}") }));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The JSON documents of Calve",
        "oneOf": names.collect::<Vec<_>>(),
        "$defs": definitions,
    });
    let text = renamed
        .iter()
        .fold(schema.to_string(), |text, (from, to)| text.replace(&format!("\"{from}\""), &format!("\"{to}\"")));
    serde_json::from_str(&text).unwrap()
}

/// Returns the published schema, which has to be that of the structs.
pub fn published() -> Value {
    let schema = generated();
    crate::has(&crate::repository().join("docs/schemas/receipts.json"), &format!("{schema:#}\n"));
    schema
}

#[test]
fn the_documentation_has_every_warning_of_the_engine() {
    let text = fs_err::read_to_string(crate::repository().join("docs/receipt.md")).unwrap();
    let table = text.split("\n## ").find(|section| section.starts_with("Warnings\n")).unwrap();
    let codes = table.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    let mut codes: Vec<&str> = codes.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    codes.sort_unstable();
    assert_eq!(codes, calve_core::report::WarningCode::CODES);
}
