//! Provides the columns of tables. `harness/tools/columns.sh` writes `columns.json`.

use std::collections::HashMap;
use std::sync::LazyLock;

use kubernetes_types::json::at;
use serde_json::{Value, json};

/// The columns of the built-in kinds, by kind. The key `default` is for all other kinds.
pub(crate) static COLUMNS: LazyLock<HashMap<String, Value>> =
    LazyLock::new(|| match serde_json::from_str(include_str!("columns.json")) {
        Ok(columns) => columns,
        Err(error) => unreachable!("columns.json is part of the program: {error}"),
    });

pub(crate) fn described(kind: &str, index: usize) -> Value {
    let columns = COLUMNS.get(kind).and_then(|columns| columns.get(index));
    columns.map_or(Value::Null, |column| at(column, &["description"]).clone())
}

pub(crate) fn column(name: &str, kind: &str, description: impl Into<Value>, priority: i64) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": description.into(), "priority": priority})
}
