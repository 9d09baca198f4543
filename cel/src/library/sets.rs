//! Implements the functions that treat lists as sets.
//!
//! Source: cel-go ext/sets.go.

use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{self, List, Value};

use super::costs;

pub(crate) fn library() -> Vec<Function> {
    vec![
        function("sets.contains", "list_sets_contains_list", contains).with_cost(COST),
        function("sets.equivalent", "list_sets_equivalent_list", equivalent).with_cost(COST_OF_BOTH),
        function("sets.intersects", "list_sets_intersects_list", intersects).with_cost(COST),
    ]
}

fn function(name: &'static str, id: &'static str, implementation: Implementation) -> Function {
    let list = Type::list(Type::Parameter("T"));
    Function::new(name, vec![Overload::global(id, vec![list.clone(), list], Type::Bool, implementation)])
}

const COST: CallCost = |_, arguments, _| Some(1 + pairs(arguments));
const COST_OF_BOTH: CallCost =
    |_, arguments, _| Some(1_u64.saturating_add(costs::share_rounded_down(pairs(arguments), 2.0)));

/// Returns the number of pairs that consist of one element from each list.
fn pairs(arguments: &[Value<'_>]) -> u64 {
    arguments.iter().map(Value::size_or_one).fold(1, u64::wrapping_mul)
}

fn holds_all(list: &Value<'_>, others: &List<'_>) -> Result<bool, Error> {
    for other in others {
        if !value::contains(&other, list)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(holds_all(call.argument(0)?, call.list(1)?)?))
}

fn equivalent<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let contained = holds_all(call.argument(0)?, call.list(1)?)?;
    Ok(Value::Bool(contained && holds_all(call.argument(1)?, call.list(0)?)?))
}

fn intersects<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    for element in call.list(0)? {
        // Incomparable elements are not contained.
        if value::contains(&element, call.argument(1)?) == Ok(true) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
