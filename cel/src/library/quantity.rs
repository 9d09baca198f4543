//! Implements the functions for quantities.
//!
//! Source: apiserver pkg/cel/library/quantity.go and pkg/cel/quantity.go.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use super::costs::{NOMINAL, ONE_PASS};
use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::quantity::{Quantity, QuantityError};
use crate::types::Type;
use crate::value::{Opaque, Value};

const TYPE: &str = "kubernetes.Quantity";

pub(crate) fn functions() -> Vec<Function> {
    vec![
        function("quantity", "string_to_quantity", Type::String, quantity(), parse).with_cost(ONE_PASS),
        function("isQuantity", "is_quantity_string", Type::String, Type::Bool, is_quantity)
            .with_cost(ONE_PASS),
        function("sign", "quantity_sign", quantity(), Type::Int, sign).with_cost(NOMINAL),
        comparison("isGreaterThan", "quantity_is_greater_than", Type::Bool, |call| {
            Ok(Value::Bool(compare(call)?.is_gt()))
        }),
        comparison("isLessThan", "quantity_is_less_than", Type::Bool, |call| {
            Ok(Value::Bool(compare(call)?.is_lt()))
        }),
        comparison("compareTo", "quantity_compare_to", Type::Int, |call| {
            Ok(Value::Int(compare(call)? as i64))
        }),
        accessor("asApproximateFloat", "quantity_get_float", Type::Double, |call| {
            Ok(Value::Double(receiver(call)?.quantity.as_approximate_float()))
        }),
        accessor("asInteger", "quantity_get_int", Type::Int, as_integer),
        accessor("isInteger", "quantity_is_integer", Type::Bool, |call| {
            Ok(Value::Bool(receiver(call)?.current().as_integer().is_some()))
        }),
        arithmetic("add", ["quantity_add", "quantity_add_int"], [add, add_int]),
        arithmetic("sub", ["quantity_sub", "quantity_sub_int"], [subtract, subtract_int]),
    ]
}

/// A quantity as a value of an expression.
#[derive(Debug)]
struct QuantityValue {
    quantity: Quantity,
    /// Whether the quantity was compared with a decimal number. If so, kube-apiserver stores the quantity as a decimal
    /// instead of an integer.
    decimal: AtomicBool,
    /// Whether the quantity is the result of a calculation. kube-apiserver cannot compare such a quantity with others.
    calculated: bool,
}

impl QuantityValue {
    fn current(&self) -> Quantity {
        if self.is_decimal() { self.quantity.as_decimal() } else { self.quantity.clone() }
    }

    fn is_decimal(&self) -> bool {
        self.quantity.is_decimal() || self.decimal.load(Memory::Relaxed)
    }
}

impl Opaque for QuantityValue {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "Quantity"
    }

    fn is_text(&self) -> bool {
        true
    }

    fn go_type(&self) -> &'static str {
        if self.calculated { "*cel.Quantity" } else { "cel.Quantity" }
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        (!other.calculated).then(|| self.quantity == other.quantity)
    }
}

impl fmt::Display for QuantityValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.quantity.fmt(f)
    }
}

pub(crate) fn quantity() -> Type {
    Type::Object(TYPE.into())
}

fn value<'a>(quantity: Quantity, calculated: bool) -> Value<'a> {
    Value::Opaque(Arc::new(QuantityValue { quantity, decimal: AtomicBool::new(false), calculated }))
}

fn function(
    name: &'static str,
    id: &'static str,
    parameter: Type,
    result: Type,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![Overload::global(id, vec![parameter], result, implementation)])
}

fn accessor(name: &'static str, id: &'static str, result: Type, implementation: Implementation) -> Function {
    Function::new(name, vec![Overload::member(id, vec![quantity()], result, implementation)])
        .with_cost(NOMINAL)
}

fn comparison(
    name: &'static str,
    id: &'static str,
    result: Type,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![Overload::member(id, vec![quantity(), quantity()], result, implementation)])
        .with_cost(NOMINAL)
}

fn arithmetic(name: &'static str, ids: [&'static str; 2], implementations: [Implementation; 2]) -> Function {
    let [id, id_int] = ids;
    let [implementation, implementation_int] = implementations;
    Function::new(
        name,
        vec![
            Overload::member(id, vec![quantity(), quantity()], quantity(), implementation),
            Overload::member(id_int, vec![quantity(), Type::Int], quantity(), implementation_int),
        ],
    )
    .with_cost(NOMINAL)
}

fn receiver<'c>(call: &Call<'c, '_>) -> Result<&'c QuantityValue, Error> {
    call.opaque(0)
}

fn parse<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(value(Quantity::parse(call.text(0)?.as_str()).map_err(error)?, false))
}

fn is_quantity<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(Quantity::parse(call.text(0)?.as_str()).is_ok()))
}

fn sign<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Int(receiver(call)?.quantity.sign()))
}

fn as_integer<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match receiver(call)?.current().as_integer() {
        Some(integer) => Ok(Value::Int(integer)),
        None => Err(Error::new("cannot convert value to integer".to_owned())),
    }
}

fn compare(call: &Call<'_, '_>) -> Result<Ordering, Error> {
    let left = receiver(call)?;
    let right = call.opaque::<QuantityValue>(1)?;
    if right.is_decimal() {
        left.decimal.store(true, Memory::Relaxed);
    }
    Ok(left.quantity.cmp(&right.quantity))
}

fn add<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let other = call.opaque::<QuantityValue>(1)?.current();
    Ok(value(receiver(call)?.current().plus(&other).map_err(error)?, true))
}

fn add_int<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(value(receiver(call)?.current().plus(&call.int(1)?.into()).map_err(error)?, true))
}

fn subtract<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let other = call.opaque::<QuantityValue>(1)?.current();
    Ok(value(receiver(call)?.current().minus(&other).map_err(error)?, true))
}

fn subtract_int<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(value(receiver(call)?.current().minus(&call.int(1)?.into()).map_err(error)?, true))
}

fn error(error: QuantityError) -> Error {
    Error::new(error.to_string())
}
