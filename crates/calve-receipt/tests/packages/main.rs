//! Generates the schema of all documents, and the types of the packages from that, and compares them with those that are there.
//! `CALVE_REWRITE=1 cargo test -p calve-receipt` writes them anew.
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod schemas;

use std::path::{Path, PathBuf};

use calve_core::{Requirement, Strategy};
use serde_json::Value;
use strum::VariantNames as _;

/// The documents that functions of the packages return, or make objects of.
const RETURNED: [&str; 6] = ["CloneReceipt", "RemoveReceipt", "ProbeReceipt", "WriteReceipt", "DbServer", ERRORS.0];
/// The packages throw errors, and have a class for them.
const ERRORS: (&str, &str) = ("ErrorReceipt", "CalveError");

/// How a language writes types.
struct Language {
    /// `(type of JSON Schema, type of the language)`.
    plain: [(&'static str, &'static str); 5],
    list: fn(&str) -> String,
    /// From text to this type.
    map: fn(&str) -> String,
    union: fn(&[String]) -> String,
    literals: fn(&[String]) -> String,
}

const TYPESCRIPT: Language = Language {
    plain: [
        ("string", "string"),
        ("integer", "number"),
        ("number", "number"),
        ("boolean", "boolean"),
        ("null", "null"),
    ],
    list: |item| if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") },
    map: |value| format!("Record<string, {value}>"),
    union: |types| types.join(" | "),
    literals: |values| {
        let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
        if quoted.len() <= 8 { quoted.join(" | ") } else { format!("\n    | {}", quoted.join("\n    | ")) }
    },
};

const PYTHON: Language = Language {
    plain: [("string", "str"), ("integer", "int"), ("number", "float"), ("boolean", "bool"), ("null", "None")],
    list: |item| format!("list[{item}]"),
    map: |value| format!("dict[str, {value}]"),
    union: |types| match types {
        [one, none] if none == "None" => format!("Optional[{one}]"),
        types => format!("Union[{}]", types.join(", ")),
    },
    literals: |values| {
        let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        let (start, between, end) =
            if quoted.len() <= 8 { ("", ", ", "") } else { ("\n        ", ",\n        ", ",\n    ") };
        format!("Literal[{start}{}{end}]", quoted.join(between))
    },
};

impl Language {
    fn type_of(&self, rule: &Value) -> String {
        if let Some(reference) = rule["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            return if name == ERRORS.0 { ERRORS.1.into() } else { name.into() };
        }
        if let Some(choices) = rule["anyOf"].as_array() {
            return (self.union)(&choices.iter().map(|choice| self.type_of(choice)).collect::<Vec<_>>());
        }
        if let Some(only) = rule["const"].as_str() {
            return (self.literals)(&[only.to_owned()]);
        }
        if let Some(values) = rule["enum"].as_array() {
            return (self.literals)(&values.iter().map(|value| value.as_str().unwrap().into()).collect::<Vec<_>>());
        }
        let plain = |name: &str| {
            let (_, plain) = self.plain.iter().find(|(schema, _)| *schema == name).unwrap();
            (*plain).to_owned()
        };
        match &rule["type"] {
            Value::Array(names) => {
                let mut one = rule.clone();
                let types = names.iter().map(|name| {
                    one["type"].clone_from(name);
                    self.type_of(&one)
                });
                (self.union)(&types.collect::<Vec<_>>())
            }
            name if name == "array" => (self.list)(&self.type_of(&rule["items"])),
            name if name == "object" => (self.map)(&self.type_of(&rule["additionalProperties"])),
            name => plain(name.as_str().unwrap()),
        }
    }
}

/// The definitions that the packages need, those that others are made of first.
fn needed(schema: &Value) -> Vec<(String, Value)> {
    fn add(schema: &Value, rule: &Value, needed: &mut Vec<(String, Value)>) {
        match rule {
            Value::Object(fields) => fields.iter().for_each(|(key, field)| match field.as_str() {
                Some(reference) if key == "$ref" => name(schema, reference.rsplit('/').next().unwrap(), needed),
                _ => add(schema, field, needed),
            }),
            Value::Array(items) => items.iter().for_each(|item| add(schema, item, needed)),
            _ => {}
        }
    }
    fn name(schema: &Value, name: &str, needed: &mut Vec<(String, Value)>) {
        if needed.iter().all(|(known, _)| known != name) {
            let definition = &schema["$defs"][name];
            add(schema, definition, needed);
            needed.push((name.into(), definition.clone()));
        }
    }
    let mut all = Vec::new();
    RETURNED.iter().for_each(|root| name(schema, root, &mut all));
    all
}

/// The values that options of the packages can have. An overlay is a mount, which nobody would own.
fn options() -> [(&'static str, &'static str, &'static str, Vec<String>); 2] {
    let strategies = Strategy::ALL.iter().copied().filter(|strategy| *strategy != Strategy::Overlay);
    let requirements = Requirement::VARIANTS.iter().map(|name| (*name).to_owned());
    [
        ("STRATEGIES", "Strategy", "A way to clone.", strategies.map(|strategy| strategy.name().to_owned()).collect()),
        ("REQUIREMENTS", "Requirement", "A property without which no clone is made.", requirements.collect()),
    ]
}

/// The name, the rule, and whether the key is always there.
fn properties(definition: &Value) -> Option<Vec<(&str, &Value, bool)>> {
    let required = definition["required"].as_array();
    let is_required = |key: &str| required.is_some_and(|keys| keys.iter().any(|one| one == key));
    let properties = definition["properties"].as_object()?.iter();
    Some(properties.map(|(key, rule)| (key.as_str(), rule, is_required(key))).collect())
}

fn about(rule: &Value) -> &str {
    rule["description"].as_str().unwrap_or_default()
}

fn typescript(schema: &Value) -> String {
    let mut text = String::from(
        "// Generated from docs/schemas/receipts.json by `CALVE_REWRITE=1 cargo test -p calve-receipt`.\nimport type { CalveError } from './errors.js';\n",
    );
    for (name, definition) in needed(schema) {
        text += &format!("\n/** {} */\n", about(&definition));
        let Some(properties) = properties(&definition) else {
            let alias = format!("export type {name} = {};\n", TYPESCRIPT.type_of(&definition));
            text += &alias.replace(" \n", "\n").replace("\n    ", "\n  ");
            continue;
        };
        text += &format!("export interface {name} {{\n");
        for (key, rule, is_required) in properties {
            let mark = if is_required { "" } else { "?" };
            text += &format!("  /** {} */\n  {key}{mark}: {};\n", about(rule), TYPESCRIPT.type_of(rule))
                .replace(": \n", ":\n");
        }
        text += "}\n";
    }
    for (list, name, about, values) in options() {
        text += &format!("\n/** @internal */\nexport const {list} = ['{}'] as const;\n", values.join("', '"));
        text += &format!("/** {about} */\nexport type {name} = (typeof {list})[number];\n");
    }
    text
}

fn python(schema: &Value) -> String {
    let mut text = String::from(
        "\"\"\"The types of receipts: the same documents as those of the program.\"\"\"\n\n\
         # Generated from docs/schemas/receipts.json by `CALVE_REWRITE=1 cargo test -p calve-receipt`.\n\n\
         from __future__ import annotations\n\n\
         from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union, get_args\n\n\
         if TYPE_CHECKING:\n    from ._errors import CalveError\n",
    );
    for (name, definition) in needed(schema) {
        let described = about(&definition);
        let Some(properties) = properties(&definition) else {
            let alias = PYTHON.type_of(&definition).replace("\n    ", "\n");
            text += &format!("\n\n# {described}\n{name} = {alias}\n");
            continue;
        };
        // A keyword cannot be a field of a class.
        if properties.iter().any(|(key, ..)| *key == "from") {
            text += &format!("\n\n# {described}\n{name} = TypedDict(\n    \"{name}\",\n    {{\n");
            for (key, rule, _) in properties {
                text += &format!("        # {}\n        \"{key}\": {},\n", about(rule), PYTHON.type_of(rule));
            }
            text += "    },\n)\n";
            continue;
        }
        let (always, sometimes): (Vec<_>, Vec<_>) = properties.into_iter().partition(|(.., is_required)| *is_required);
        let split = !sometimes.is_empty();
        let hidden = if split { "_" } else { "" };
        text += &format!("\n\nclass {hidden}{name}(TypedDict):\n    \"\"\"{described}\"\"\"\n");
        text += &fields(&always);
        if split {
            text += &format!("\n\nclass {name}(_{name}, total=False):\n    \"\"\"{described}\"\"\"\n");
            text += &fields(&sometimes);
        }
    }
    for (list, name, about, values) in options() {
        text += &format!("\n\n# {about}\n{name} = {}\n{list} = get_args({name})\n", (PYTHON.literals)(&values));
    }
    text
}

fn fields(fields: &[(&str, &Value, bool)]) -> String {
    let field = |(key, rule, _): &(&str, &Value, bool)| {
        format!("    {key}: {}\n    \"\"\"{}\"\"\"\n", PYTHON.type_of(rule), about(rule))
    };
    format!("\n{}", fields.iter().map(field).collect::<String>())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Fails if a generated file has something else, or writes it anew.
#[track_caller]
fn has(file: &Path, text: &str) {
    if std::env::var_os("CALVE_REWRITE").is_some() {
        fs_err::write(file, text).unwrap();
    }
    let same = fs_err::read_to_string(file).unwrap() == text;
    assert!(same, "{}: run `CALVE_REWRITE=1 cargo test -p calve-receipt`", file.display());
}

#[test]
fn the_published_schema_is_that_of_the_structs_and_the_packages_have_its_types() {
    let schema = schemas::published();
    has(&repository().join("node/src/receipts.ts"), &typescript(&schema));
    has(&repository().join("python/calve/_receipts.py"), &python(&schema));
}
