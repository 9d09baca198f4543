//! Evaluates list, map, and object literals.
//!
//! Source: cel-go interpreter/interpretable.go, `evalList`, `evalMap`, `evalObj`.

use std::sync::Arc;

use crate::function::Error;
use crate::value::{Map, Value};

use super::cost;
use super::evaluate::{Machine, Outcome, check_hash};
use super::message::message;
use super::plan::{Element, Entry, StepId};

impl<'a> Machine<'a, '_> {
    pub(super) fn list(&mut self, elements: &'a [Element]) -> Outcome<'a> {
        let result = self.elements(elements)?;
        self.charge_literal(elements.iter().map(|element| element.value), cost::LIST);
        Ok(result)
    }

    fn elements(&mut self, elements: &'a [Element]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            let value = match self.evaluate(element.value)? {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            match value {
                Value::Optional(None) if element.optional => {}
                Value::Optional(Some(value)) if element.optional => values.push(Value::clone(&value)),
                value if element.optional => {
                    return Ok(Err(not_optional_element(&value)));
                }
                value => values.push(value),
            }
        }
        Ok(Ok(Value::list(values)))
    }

    pub(super) fn map(&mut self, entries: &'a [Entry<StepId>]) -> Outcome<'a> {
        let result = self.entries(entries)?;
        self.charge_literal(entries.iter().flat_map(|entry| [entry.key, entry.value]), cost::MAP);
        Ok(result)
    }

    fn entries(&mut self, entries: &'a [Entry<StepId>]) -> Outcome<'a> {
        let mut map = Map::default();
        for entry in entries {
            let key = match self.evaluate(entry.key)? {
                Ok(key) => key,
                Err(error) => return Ok(Err(error)),
            };
            let value = match self.evaluate(entry.value)? {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            check_hash(&key)?;
            match (entry.optional, value) {
                (false, value) => map.insert(key, value),
                (true, Value::Optional(None)) => map.remove(&key),
                (true, Value::Optional(Some(value))) => map.insert(key, Value::clone(&value)),
                (true, value) => return Ok(Err(not_optional_entry(&key, &value))),
            }
        }
        Ok(Ok(Value::Map(map)))
    }

    /// Evaluates an object literal. Kubernetes object types are read-only: only protocol buffer messages can
    /// be created.
    pub(super) fn object(&mut self, name: &str, fields: &'a [Entry<Arc<str>>]) -> Outcome<'a> {
        let result = self.fields(name, fields)?;
        self.charge_literal(fields.iter().map(|field| field.value), cost::OBJECT);
        Ok(result)
    }

    fn fields(&mut self, name: &str, fields: &'a [Entry<Arc<str>>]) -> Outcome<'a> {
        let mut values: Vec<(&str, Value<'a>)> = Vec::with_capacity(fields.len());
        for field in fields {
            let value = match self.evaluate(field.value)? {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            match value {
                Value::Optional(None) if field.optional => values.retain(|(known, _)| *known != &*field.key),
                Value::Optional(Some(value)) if field.optional => {
                    values.push((&field.key, Value::clone(&value)));
                }
                value if field.optional => {
                    return Ok(Err(not_optional_entry(&Value::from(&*field.key), &value)));
                }
                value => values.push((&field.key, value)),
            }
        }
        Ok(message(name, &values))
    }

    /// Charges the cost of a literal, even if one of its parts is an error.
    fn charge_literal(&mut self, parts: impl DoubleEndedIterator<Item = StepId>, price: u64) {
        let plan = self.plan;
        self.tracker.forget(parts.map(|step| plan.step(step).map_or(u32::MAX, |step| step.id)));
        self.tracker.charge(price);
    }
}

/// Creates the error for an element `?element` whose value is not optional.
pub(super) fn not_optional_element(value: &Value<'_>) -> Error {
    Error::new(format!("cannot initialize optional list element from non-optional value {value}"))
}

/// Creates the error for an entry `?key: value` whose value is not optional.
pub(super) fn not_optional_entry(key: &Value<'_>, value: &Value<'_>) -> Error {
    Error::new(format!("cannot initialize optional entry '{key}' from non-optional value {value}"))
}
