//! Implements the functions used by the expansions of `transformMap` and `transformMapEntry`.
//!
//! Source: cel-go ext/comprehensions.go and common/types/map.go, `InsertMapKeyValue`.

use crate::function::{Call, Error, Function, Overload};
use crate::types::Type;
use crate::value::{Map, Value};

/// Returns the functions that the macros expand to.
pub(crate) fn library() -> Vec<Function> {
    let (key, value) = (Type::Parameter("K"), Type::Parameter("V"));
    let map = Type::map(key.clone(), value.clone());
    let entry = vec![map.clone(), key, value];
    let entries = vec![map.clone(), map.clone()];
    vec![Function::new(
        "cel.@mapInsert",
        vec![
            Overload::global("@mapInsert_map_key_value", entry, map.clone(), insert_entry),
            Overload::global("@mapInsert_map_map", entries, map, insert_entries),
        ],
    )]
}

fn map_of<'a>(call: &Call<'_, 'a>, index: usize) -> Result<Map<'a>, Error> {
    let Value::Map(map) = call.argument(index)? else { return Err(Error::no_such_overload()) };
    Ok(map.clone())
}

/// Adds an entry to a map, and returns an error if the key exists.
pub(crate) fn insert<'a>(map: &mut Map<'a>, key: Value<'a>, value: Value<'a>) -> Result<(), Error> {
    if map.get(&key).is_some() {
        return Err(Error::new(format!("insert failed: key {key} already exists")));
    }
    map.insert(key, value);
    Ok(())
}

fn insert_entry<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let mut map = map_of(call, 0)?;
    insert(&mut map, call.argument(1)?.clone(), call.argument(2)?.clone())?;
    Ok(Value::Map(map))
}

fn insert_entries<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let mut map = map_of(call, 0)?;
    for (key, value) in &map_of(call, 1)? {
        insert(&mut map, key, value)?;
    }
    Ok(Value::Map(map))
}
