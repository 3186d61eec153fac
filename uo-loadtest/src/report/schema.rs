//! Keeps `docs/report.schema.json` true: it has every name of the report, at its depth and of its type, and no other.

use std::path::PathBuf;

use serde_json::Value;

use super::Report;
use super::sample::sample;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/report.schema.json")
}

fn published() -> Value {
    let text = std::fs::read_to_string(path()).expect("the schema is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// A report in which no list and no map is empty.
fn full() -> Report {
    let mut report = sample();
    report.invariants.violations.push("two holders".into());
    report.failures.push("a bar".into());
    report
}

/// What is wrong with `value` by `schema`, as far as ours goes: a keyword that is not known here is told too, so that
/// nothing passes unread. (A full validator is 25 crates, and changes how the whole workspace reads numbers.)
fn wrong(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let Some(rules) = schema.as_object() else {
        return errors; // `true`: anything goes.
    };
    let mut fail = |why: String| errors.push(format!("{at}: {why}"));
    let mut below = Vec::new();
    let children = value.as_object().into_iter().flatten();
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "format" | "$defs" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|name| name.strip_prefix('#'));
                let target = name.and_then(|name| root.pointer(name));
                below.extend(wrong(root, target.expect("it is defined"), value, at));
            }
            "type" => {
                let kinds: Vec<&Value> = rule
                    .as_array()
                    .map_or(vec![rule], |all| all.iter().collect());
                if !kinds.iter().any(|kind| is_of(kind, value)) {
                    fail(format!("{value} is not {rule}"));
                }
            }
            "minimum" => {
                let least = rule.as_f64().expect("a number");
                if value.as_f64().is_some_and(|number| number < least) {
                    fail(format!("{value} is below {rule}"));
                }
            }
            "required" => {
                let named = rules.get("properties").and_then(Value::as_object);
                let named = named.map_or(0, |properties| properties.len());
                if rule.as_array().map_or(0, Vec::len) != named {
                    fail("not every name of the schema is required".into());
                }
                for name in rule.as_array().into_iter().flatten() {
                    if value.get(name.as_str().expect("a name")).is_none() {
                        fail(format!("{name} is not there"));
                    }
                }
            }
            "properties" => {
                for (name, value) in children.clone() {
                    if let Some(rule) = rule.get(name) {
                        below.extend(wrong(root, rule, value, &format!("{at}.{name}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = rules.get("properties");
                for (name, value) in children.clone() {
                    if known.is_some_and(|known| known.get(name).is_some()) {
                    } else if rule == false {
                        fail(format!("{name} is not known"));
                    } else {
                        below.extend(wrong(root, rule, value, &format!("{at}.{name}")));
                    }
                }
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    below.extend(wrong(root, rule, value, &format!("{at}[]")));
                }
            }
            other => fail(format!("nobody here knows `{other}`")),
        }
    }
    errors.extend(below);
    errors
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

/// Every name, one after the other, taken out of a value, at any depth.
fn without_one(value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (name, child) in value.as_object().into_iter().flatten() {
        let mut less = value.clone();
        less.as_object_mut().expect("an object").remove(name);
        all.push((name.clone(), less));
        for (below, child) in without_one(child) {
            let mut less = value.clone();
            less[name] = child;
            all.push((format!("{name}.{below}"), less));
        }
    }
    all
}

/// Seen to fail with a field left out of the schema, and with one renamed.
#[test]
fn a_report_validates_and_one_with_a_name_more_or_less_does_not() {
    let schema = published();
    for report in [Report::default(), full()] {
        let report = serde_json::to_value(report).expect("it is JSON");
        assert_eq!(wrong(&schema, &schema, &report, "report"), [""; 0]);
        for (name, less) in without_one(&report) {
            // Notes are a list of what happened: none must be there.
            let is_free = name.starts_with("swarm.notes.");
            let errors = wrong(&schema, &schema, &less, "report");
            assert_eq!(errors.is_empty(), is_free, "without {name}: {errors:?}");
        }
        let mut more = report.clone();
        more["fencez"] = 1.into();
        assert!(!wrong(&schema, &schema, &more, "report").is_empty());
        let mut other = report;
        other["sessions"]["lost"] = (-1).into();
        assert!(!wrong(&schema, &schema, &other, "report").is_empty());
    }
}
