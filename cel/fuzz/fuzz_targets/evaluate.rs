//! Any text as an expression: it is refused or evaluated, without a panic, in bounded time.
//!
//! libFuzzer bounds the memory (`-rss_limit_mb`), and ends what never ends (`-timeout`).

#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use kubernetes_cel::Limits;
use kubernetes_cel::environment::Environment;
use kubernetes_cel::estimate::Unbounded;
use kubernetes_cel::function::Error;
use kubernetes_cel::kubernetes::{Variables as Admission, Version, environment_at, with_admission_variables};
use kubernetes_cel::value::{Origin, Value};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};

/// With the coverage of a fuzzer a step takes several times as long as without.
const LONGEST: Duration = Duration::from_secs(20);

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let admission = Admission { params: false, authorizer: true };
    with_admission_variables(environment_at(Version::new(1, 37)), admission)
});

static OBJECT: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "metadata": {"name": "web-1", "labels": {"app": "web", "a/b": "x"}, "annotations": {}},
        "spec": {
            "n": 3, "d": 1.5, "b": true, "z": null, "empty": [], "big": 9_007_199_254_740_993_u64,
            "list": [1, "two", 3.5, null, [4], {"five": 5}], "text": "añb😀c",
        },
    })
});

fuzz_target!(|text: &str| {
    let began = Instant::now();
    let Ok(program) = ENVIRONMENT.compile(text) else {
        assert!(began.elapsed() < LONGEST, "compiling takes {:?}", began.elapsed());
        return;
    };
    assert!(ENVIRONMENT.estimate(text, &Unbounded::default()).is_ok(), "compiles, and has no estimate");
    for origin in [Origin::Unstructured, Origin::Typed] {
        let variables = [
            ("object", Value::from_json_of(&OBJECT, origin)),
            ("oldObject", Value::Null),
            ("request", Value::from_json_of(&OBJECT, Origin::Request)),
        ];
        let limits = Limits::default();
        let first = program.evaluate(&variables, &limits);
        let (second, _) = program.observe(&variables, &limits);
        assert_eq!(first.cost, second.cost, "the cost depends on who looks");
        assert_eq!(first.value.is_ok(), second.value.is_ok(), "the outcome depends on who looks");
        match &first.value {
            // Texts of values end, too.
            Ok(value) => drop((value.to_string(), value.native_text())),
            Err(Error::Language(text)) => assert!(!text.is_empty()),
            Err(_) => {}
        }
    }
    assert!(began.elapsed() < LONGEST, "it takes {:?}", began.elapsed());
});
