//! Resolves variables and values with their selections and indices.
//!
//! Source: cel-go interpreter/attributes.go; the costs of selections: interpreter/interpretable.go,
//! `evalWatchConstQual` and `evalWatchAttrQual`.

use crate::function::Error;
use crate::schema::unescape;
use crate::value::{List, Value};

use super::Members;
use super::constant::check_index;
use super::cost;
use super::evaluate::{Machine, Outcome, Stop, broken};
use super::plan::{AttributeId, Key, Local, Qualifier, Root};

/// The result of a selection.
enum Selected<'a> {
    Value(Value<'a>),
    Nothing,
}

impl<'a> Machine<'a, '_> {
    /// Resolves an attribute to its value. The value can be an invalid list element.
    pub(super) fn resolve(&mut self, id: AttributeId) -> Outcome<'a> {
        let plan = self.plan;
        let Some(attribute) = plan.attribute(id) else { return Ok(Err(broken())) };
        let object = match &attribute.root {
            Root::Global(name) => match self.variables.get(name) {
                Some(Value::Invalid(why)) => return Ok(Err(Error::new(&*why))),
                Some(value) => value,
                None => match self.variables.members(name) {
                    Some(members) => return self.select_member(name, members, &attribute.qualifiers),
                    None => return Ok(Err(Error::new(format!("no such attribute(s): {name}")))),
                },
            },
            Root::Local { slot, variable } => match self.local(*slot, *variable)?.and_then(Value::valid) {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            },
            Root::Operand(step) => match self.evaluate(*step)? {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            },
            Root::Conditional { condition, truthy, falsy } => {
                return match self.evaluate(*condition)? {
                    Ok(Value::Bool(true)) => self.resolve(*truthy),
                    Ok(Value::Bool(false)) => self.resolve(*falsy),
                    Ok(_) => Ok(Err(Error::no_such_overload())),
                    Err(error) => Ok(Err(error)),
                };
            }
        };
        self.qualify(object, &attribute.qualifiers)
    }

    /// Returns the value of a comprehension variable. The accumulator is initialized when it is first read.
    fn local(&mut self, slot: usize, variable: Local) -> Outcome<'a> {
        let Some(frame) = self.frames.get_mut(slot) else { return Ok(Err(broken())) };
        match variable {
            Local::First => Ok(frame.first.clone().ok_or_else(broken)),
            Local::Second => Ok(frame.second.clone().ok_or_else(broken)),
            Local::Accumulator => {
                if let Some(accumulator) = &frame.accumulator {
                    return Ok(accumulator.clone());
                }
                let Some(initial) = frame.initial else { return Ok(Err(broken())) };
                let value = self.evaluate(initial)?;
                if let Some(frame) = self.frames.get_mut(slot) {
                    frame.accumulator = Some(value.clone());
                }
                Ok(value)
            }
            Local::TakenAccumulator => match frame.accumulator.take() {
                Some(accumulator) => Ok(accumulator),
                None => match frame.initial {
                    Some(initial) => self.evaluate(initial),
                    None => Ok(Err(broken())),
                },
            },
        }
    }

    fn qualify(&mut self, object: Value<'a>, qualifiers: &'a [Qualifier]) -> Outcome<'a> {
        let (object, optional) = match object {
            Value::Optional(None) => return Ok(Ok(Value::Optional(None))),
            Value::Optional(Some(value)) => (Value::clone(&value), true),
            other => (other, false),
        };
        self.qualify_value(object, optional, qualifiers)
    }

    /// Selects a member of a composed variable, and applies the other selections to its value.
    ///
    /// Source: apiserver pkg/cel/lazy/lazy.go, `MapValue`.
    fn select_member(
        &mut self,
        variable: &str,
        members: &dyn Members<'a>,
        qualifiers: &'a [Qualifier],
    ) -> Outcome<'a> {
        let Some((first, rest)) = qualifiers.split_first() else {
            return Err(Stop::Unsupported(format!("the value of '{variable}' itself")));
        };
        let Key::Constant(Value::String(member)) = &first.key else {
            return Err(Stop::Unsupported(format!("an index of '{variable}'")));
        };
        let tests = first.test && !first.optional;
        let known = unescape(member.as_str()).and_then(|name| members.get(&name));
        let found = match known {
            Some(Ok(_)) if tests => Ok(Value::Bool(true)),
            None if first.optional => return Ok(Ok(Value::Optional(None))),
            None if tests => Ok(Value::Bool(false)),
            None => Err(Error::new(format!("no such key: {}", member.as_str()))),
            // An optional selection that fails costs nothing.
            Some(Err(error)) if first.optional => return Ok(Err(error)),
            Some(value) => value,
        };
        if let Some(stop) = found.as_ref().err().and_then(Stop::from_error) {
            return Err(stop);
        }
        self.charge_selection(first)?;
        match found {
            Ok(value) => self.qualify_value(value, first.optional, rest),
            Err(error) => Ok(Err(error)),
        }
    }

    fn qualify_value(
        &mut self,
        mut object: Value<'a>,
        mut optional: bool,
        qualifiers: &'a [Qualifier],
    ) -> Outcome<'a> {
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            let found = match self.select(&object, qualifier, optional || qualifier.test)? {
                // An optional selection that finds nothing costs nothing.
                Ok(Selected::Nothing) if optional => return Ok(Ok(Value::Optional(None))),
                Err(error) if optional => return Ok(Err(error)),
                Ok(Selected::Value(_)) if qualifier.test && !optional => {
                    Ok(Selected::Value(Value::Bool(true)))
                }
                Ok(Selected::Nothing) => Ok(Selected::Value(Value::Bool(false))),
                found => found,
            };
            self.charge_selection(qualifier)?;
            match found {
                Ok(Selected::Value(value)) => object = value,
                Ok(Selected::Nothing) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(if optional { Value::some(object) } else { object }))
    }

    #[inline]
    fn charge_selection(&mut self, qualifier: &Qualifier) -> Result<(), Stop> {
        if matches!(qualifier.key, Key::Step(_)) {
            self.tracker.drop([qualifier.id]);
        }
        self.tracker.charge(cost::SELECT);
        self.tracker.push(qualifier.id, || Value::Null);
        if self.tracker.is_exhausted() { Err(Stop::Cost) } else { Ok(()) }
    }

    /// Applies one selection. If `presence` is set, a missing value is not an error.
    fn select(
        &mut self,
        object: &Value<'a>,
        qualifier: &'a Qualifier,
        presence: bool,
    ) -> Result<Result<Selected<'a>, Error>, Stop> {
        let dynamic = match &qualifier.key {
            Key::Constant(key) => return Ok(find(object, key, presence)),
            Key::Attribute { attribute, .. } => match self.resolve(*attribute)? {
                Ok(Value::Invalid(_)) => Err(Error::new("invalid qualifier type: *types.Err")),
                resolved => resolved,
            },
            Key::Step(step) => self.evaluate(*step)?,
        };
        let key = match dynamic {
            Ok(key) => key,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = check_index(&key) {
            // In cel-go, a null variable without selections is Go's `nil`, for which the message is different.
            let missing = matches!((&key, &qualifier.key), (Value::Null, Key::Attribute { bare: true, .. }));
            return Ok(Err(if missing {
                Error::new("invalid qualifier type: <nil>".to_owned())
            } else {
                error
            }));
        }
        Ok(find(object, &key, presence))
    }
}

/// Returns the value at a key or index of a map, list, object, or optional.
#[inline]
fn find<'a>(object: &Value<'a>, key: &Value<'_>, presence: bool) -> Result<Selected<'a>, Error> {
    let missing = |error: String| if presence { Ok(Selected::Nothing) } else { Err(Error::new(error)) };
    match object {
        Value::Map(map) => match map.find(key)? {
            Some(value) => Ok(Selected::Value(value)),
            None => missing(format!("no such key: {key}")),
        },
        Value::List(list) => match element(list, key)? {
            Some(value) => Ok(Selected::Value(value)),
            None => missing(format!("index out of bounds: {key}")),
        },
        Value::Object(object) => match key.as_str().and_then(|name| object.select(name, presence)) {
            Some(value) => Ok(Selected::Value(value)),
            None => missing(format!("no such key: {key}")),
        },
        // An invalid element counts as a value until a selection is applied to it.
        Value::Invalid(why) => Err(Error::new(&**why)),
        _ => missing(format!("no such key: {key}")),
    }
}

fn element<'a>(list: &List<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
    let index = key.as_index()?;
    let Some(value) = usize::try_from(index).ok().and_then(|index| list.get(index)) else { return Ok(None) };
    // Some lists check the value of an index first, and only then whether the index is an int.
    let invalid = |why: String| Value::Invalid(why.into());
    Ok(Some(match key {
        Value::Int(_) => value,
        _ if list.is_structured() => invalid(format!("unsupported index: {key}")),
        _ if list.origin().is_typed() => invalid(format!("unsupported index type: {}", key.go_type())),
        _ => value,
    }))
}
