//! Evaluates comprehensions.
//!
//! Source: cel-go interpreter/interpretable.go, `evalFold` and `folder`.

use std::mem;

use crate::function::Error;
use crate::value::Value;

use super::evaluate::{Frame, Machine, Outcome, Stop, broken};
use super::plan::Fold;

/// Whether a comprehension continues with the next element.
enum Turn {
    Next,
    Last,
    Interrupted,
}

impl<'a> Machine<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let Some(frame) = self.frames.get_mut(fold.slot) else { return Ok(Err(broken())) };
        let outer = mem::replace(frame, Frame { initial: Some(fold.initial), ..Frame::default() });
        let result = self.turns(fold);
        let range = self.id(fold.range);
        self.tracker.drop([range]);
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            *frame = outer;
        }
        result
    }

    fn turns(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = match self.evaluate(fold.range)? {
            Ok(range) => range,
            Err(error) => return Ok(Err(error)),
        };
        let mut turn = Turn::Next;
        match &range {
            Value::List(list) if fold.two_variables => {
                for (index, element) in (0..).zip(list) {
                    turn = self.turn(fold, Value::Int(index), Some(element))?;
                    if !matches!(turn, Turn::Next) {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for element in list {
                    turn = self.turn(fold, element, None)?;
                    if !matches!(turn, Turn::Next) {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in map.turns() {
                    turn = self.turn(fold, key, fold.two_variables.then_some(value))?;
                    if !matches!(turn, Turn::Next) {
                        break;
                    }
                }
            }
            other if fold.two_variables => {
                let found = other.go_type();
                return Ok(Err(Error::new(format!("unsupported comprehension range type: {found}"))));
            }
            other => {
                let found = other.go_type();
                return Ok(Err(Error::new(format!("got '{found}', expected iterable type"))));
            }
        }
        if matches!(turn, Turn::Interrupted) {
            return Ok(Err(Error::new("operation interrupted".to_owned())));
        }
        self.evaluate(fold.result)
    }

    fn turn(&mut self, fold: &'a Fold, first: Value<'a>, second: Option<Value<'a>>) -> Result<Turn, Stop> {
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            frame.first = Some(first);
            frame.second = second;
        }
        if matches!(self.evaluate(fold.condition)?, Ok(Value::Bool(false))) {
            return Ok(Turn::Last);
        }
        let accumulator = self.evaluate(fold.step)?;
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            frame.accumulator = Some(accumulator);
        }
        Ok(if self.is_interrupted() { Turn::Interrupted } else { Turn::Next })
    }
}
