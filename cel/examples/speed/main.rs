//! Measures how long typical conditions take to compile and evaluate.
//!
//! Run it with `cargo run --release -p kubernetes-cel --example speed`. `just cel-speed` also measures Kubernetes' own
//! packages with the same conditions.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "that is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{Limits, Variables};
use serde_json::Value as Json;

/// The conditions, one per line.
const CONDITIONS: &str = include_str!("conditions.txt");
/// The values of `object` and `request` for the evaluations.
const CONTEXTS: &str = include_str!("contexts.json");

struct Pod {
    object: Json,
    request: Json,
}

impl<'a> Variables<'a> for &'a Pod {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        match name {
            "object" => Some(Value::from_json_of(&self.object, Origin::Typed)),
            "request" => Some(Value::from_json_of(&self.request, Origin::Request)),
            _ => None,
        }
    }
}

/// Returns the average duration of a call in nanoseconds: the minimum over 20 rounds.
fn nanoseconds(mut call: impl FnMut()) -> u128 {
    const CALLS: u32 = 2_000;
    (0..20)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            start.elapsed().as_nanos() / u128::from(CALLS)
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let contexts: Json = serde_json::from_str(CONTEXTS).unwrap_or_default();
    let part = |pointer: &str| contexts.pointer(pointer).cloned().unwrap_or_default();
    let pod = Pod { object: part("/pod/object"), request: part("/pod/request") };
    let admission = Admission { params: false, authorizer: true };
    let environment = with_admission_variables(environment_at(Version::new(1, 37)), admission);
    println!("{:>12} {:>12} {:>6}  condition", "compile (ns)", "evaluate", "cost");
    for condition in CONDITIONS.lines() {
        let Ok(program) = environment.compile(condition) else {
            println!("does not compile: {condition}");
            continue;
        };
        let limits = Limits::default();
        let cost = program.evaluate(&&pod, &limits).cost;
        let compile = nanoseconds(|| drop(black_box(environment.compile(black_box(condition)))));
        let evaluate = nanoseconds(|| drop(black_box(program.evaluate(&black_box(&pod), &limits))));
        println!("{compile:>12} {evaluate:>12} {cost:>6}  {condition}");
    }
}
