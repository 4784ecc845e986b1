use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/schemas/receipts.json");

/// Panics unless `document` has the published schema's keys, in the same order, and types. Skips one without a
/// `schema`.
#[track_caller]
pub fn assert_document(document: &Value) {
    let Some(kind) = document["schema"].as_str() else { return };
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let mut definitions = schema["$defs"].as_object().into_iter().flatten();
    let is_kind =
        |rule: &Value| rule["const"] == kind || rule["enum"].as_array().is_some_and(|all| all.contains(&kind.into()));
    let found = definitions.find(|(_, definition)| is_kind(&definition["properties"]["schema"]));
    let Some((name, definition)) = found else {
        panic!("docs/schemas/receipts.json has no document {kind}");
    };
    if let Err(why) = (Checker { schema: &schema }).check(definition, document, name) {
        panic!("{kind} is not as docs/schemas/receipts.json says: {why}\n{document:#}");
    }
}

struct Checker<'s> {
    schema: &'s Value,
}

impl Checker<'_> {
    fn check(&self, rule: &Value, value: &Value, at: &str) -> Result<(), String> {
        if let Some(reference) = rule["$ref"].as_str() {
            let target = self.schema.pointer(reference.trim_start_matches('#'));
            return self.check(target.ok_or_else(|| format!("{reference} does not exist"))?, value, at);
        }
        if let Some(choices) = rule["anyOf"].as_array().or(rule["oneOf"].as_array()) {
            let fails = |choice: &Value| self.check(&self.with(rule, choice), value, at).err();
            let fails: Vec<String> = choices.iter().map_while(fails).collect();
            return if fails.len() < choices.len() { Ok(()) } else { Err(fails.join("; ")) };
        }
        let is_choice = rule["enum"].as_array().is_none_or(|choices| choices.contains(value));
        if !is_choice || rule.get("const").is_some_and(|only| only != value) {
            return Err(format!("{at} is {value}"));
        }
        let types = rule["type"].as_array().cloned().unwrap_or_else(|| vec![rule["type"].clone()]);
        if !types.iter().any(|name| name.as_str().is_some_and(|name| has_type(value, name))) {
            return Err(format!("{at} is {value}, not {}", rule["type"]));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let of_pair = rule["prefixItems"].get(index);
            self.check(of_pair.unwrap_or(&rule["items"]), item, &format!("{at}[{index}]"))?;
        }
        let has_any_keys = rule["additionalProperties"] == true;
        if value.is_object() && !has_any_keys { self.check_keys(rule, value, at) } else { Ok(()) }
    }

    /// Merges the keys that all choices share into one choice of `rule`, sorted by name.
    fn with(&self, rule: &Value, choice: &Value) -> Value {
        let named = choice["$ref"].as_str().and_then(|name| self.schema.pointer(name.trim_start_matches('#')));
        let mut whole = named.unwrap_or(choice).clone();
        let Some(common) = rule["properties"].as_object() else { return whole };
        let own = whole["properties"].as_object().cloned().unwrap_or_default();
        let properties: std::collections::BTreeMap<_, _> = common.clone().into_iter().chain(own).collect();
        let required = [&rule["required"], &whole["required"]].into_iter().filter_map(Value::as_array).flatten();
        whole["required"] = required.cloned().collect();
        whole["properties"] = properties.into_iter().collect::<serde_json::Map<_, _>>().into();
        whole["flattened"] = true.into();
        whole
    }

    fn check_keys(&self, rule: &Value, value: &Value, at: &str) -> Result<(), String> {
        let is_required = |key: &str| rule["required"].as_array().is_some_and(|keys| keys.iter().any(|one| one == key));
        // In a map, every key without a rule of its own has the same kind of value.
        let (own, others) = (&rule["properties"], &rule["additionalProperties"]);
        let entries = || value.as_object().into_iter().flatten();
        let expected = own.as_object().into_iter().flatten().map(|(key, _)| key);
        let expected: Vec<_> = expected.filter(|key| is_required(key) || value.get(key).is_some()).collect();
        let keys = entries().map(|(key, _)| key).filter(|key| !others.is_object() || own.get(key).is_some());
        let mut keys: Vec<_> = keys.collect();
        if rule["flattened"] == true {
            keys.sort();
        }
        if keys != expected {
            return Err(format!("the keys of {at} are {keys:?}, not {expected:?}"));
        }
        let rule_of = |key: &str| own.get(key).unwrap_or(others);
        entries().try_for_each(|(key, value)| self.check(rule_of(key), value, &format!("{at}.{key}")))
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
