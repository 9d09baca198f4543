//! Measures `admit run` and `admit verify` as separate processes.
#![expect(clippy::cast_precision_loss, reason = "no figure is as large as 2^52")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::meter::Meter;
use crate::results::Measured;
use crate::webhook::Webhook;

/// The number of scenarios. Each calls a webhook once.
const SCENARIOS: usize = 1000;

pub(crate) fn run(meter: &mut Meter, admit: &Path) {
    let folder = std::env::temp_dir().join(format!("benches-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    if meter.is_wanted("commands/run, 1000 calls") {
        let file = folder.join("calls.feature");
        std::fs::write(&file, feature()).unwrap();
        let (wall, cpu, succeeded) = start(admit, &["run"], &file);
        assert!(succeeded, "admit run");
        record(meter, "commands/run, 1000 calls", SCENARIOS, wall, cpu);
    }
    if meter.is_wanted("commands/verify, 1000 calls") {
        let webhook = Webhook::start();
        let file = folder.join("configuration.json");
        std::fs::write(&file, configuration(&webhook)).unwrap();
        // Findings about this webhook do not matter here.
        let (wall, cpu, _) = start(admit, &["verify", "-c"], &file);
        let calls = webhook.calls.load(Ordering::Relaxed);
        assert!(calls > 1000, "admit verify called {calls} times");
        record(meter, "commands/verify, 1000 calls", calls, wall, cpu);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn record(meter: &mut Meter, name: &str, calls: usize, wall: Duration, cpu: Duration) {
    let each = |time: Duration| time.as_secs_f64() * 1e9 / calls as f64 * 1000.0;
    let (wall, cpu) = (each(wall), each(cpu));
    meter.record(
        name,
        Measured {
            samples: 1,
            wall_p50: wall,
            wall_p99: wall,
            cpu_p10: cpu,
            cpu_p50: cpu,
            ..Measured::default()
        },
    );
}

fn feature() -> String {
    let scenario = |index| {
        format!(
            "  Scenario: call {index}\n    Given a validating webhook \"policy\" for configmaps\n    When this object is \
             created:\n      \"\"\"yaml\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {{name: settings}}\n      \
             \"\"\"\n    Then the request is admitted\n"
        )
    };
    let scenarios: Vec<String> = (0..SCENARIOS).map(scenario).collect();
    format!("Feature: calls\n{}", scenarios.join(""))
}

fn configuration(webhook: &Webhook) -> String {
    let url = format!("https://{}/allow", webhook.address);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "benches"},
        "webhooks": [{
            "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
            "clientConfig": {"url": url, "caBundle": BASE64_STANDARD.encode(&webhook.ca_bundle)},
            "rules": [{
                "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
            }],
        }],
    })
    .to_string()
}

/// Runs a command, and returns its wall time, its CPU time, and whether it succeeded.
fn start(admit: &Path, arguments: &[&str], file: &Path) -> (Duration, Duration, bool) {
    let (started, before) = (Instant::now(), time_of_children());
    let status = Command::new(admit)
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    (started.elapsed(), time_of_children().saturating_sub(before), status.success())
}

/// Returns the CPU time of all finished child processes, with a precision of 10 ms.
///
/// Source: proc(5), `/proc/self/stat`, `cutime` and `cstime`.
fn time_of_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_the_name) = text.rsplit_once(") ").unwrap();
    let ticks: u64 =
        after_the_name.split(' ').skip(13).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
