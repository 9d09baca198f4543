//! How long typical conditions take: `cargo run --release -p kubernetes-cel --example speed`.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "that is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value};
use kubernetes_cel::{Limits, Variables};
use serde_json::{Value as Json, json};

const CONDITIONS: [&str; 8] = [
    "object.metadata.name == 'web-1'",
    "object.metadata.namespace != 'kube-system' && request.operation == 'UPDATE' && object.metadata.name.startsWith('web-')",
    "!('system:nodes' in request.userInfo.groups)",
    "!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')",
    "has(object.metadata.labels) && 'app' in object.metadata.labels && object.metadata.labels['app'] in ['web', 'db']",
    "object.spec.containers.all(c, c.image.startsWith('registry.k8s.io/') && c.name.matches('^[a-z0-9]+$'))",
    "object.spec.containers.exists(c, c.resources.?limits.?cpu.orValue('0') == '500m')",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(b, a + b > 0))",
];

struct Pod {
    object: Json,
    request: Json,
}

impl<'a> Variables<'a> for &'a Pod {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        match name {
            "object" => Some(Value::from_json_of(&self.object, Origin::Typed)),
            "request" => Some(Value::from_json_of(&self.request, Origin::Typed)),
            _ => None,
        }
    }
}

/// Nanoseconds of one call: the least of several rounds.
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
    let pod = Pod {
        object: json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
            "spec": {"containers": [
                {"name": "c1", "image": "registry.k8s.io/nginx:1.25", "resources": {"limits": {"cpu": "500m"}}},
                {"name": "c2", "image": "registry.k8s.io/pause:3.10", "resources": {}},
            ]},
        }),
        request: json!({
            "operation": "UPDATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": "alice", "groups": ["dev", "system:authenticated"]},
        }),
    };
    let admission = Admission { params: false, authorizer: true };
    let environment = with_admission_variables(environment_at(Version::new(1, 37)), admission);
    println!("{:>12} {:>12} {:>6}  condition", "compile (ns)", "evaluate", "cost");
    for condition in CONDITIONS {
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
