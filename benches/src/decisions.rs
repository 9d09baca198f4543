//! Measures pure functions of a request: matching, encoding, patching, and comparing.

use kubernetes_admission::admission_run::EncodedObjects;
use kubernetes_admission::matching::{self, Decision};
use kubernetes_admission::patch::Patch;
use kubernetes_admission::review::ReviewVersion;
use kubernetes_admission::review::request::encode;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::equality::semantically_equal;
use serde_json::json;

use crate::fixtures::{Entry, create, webhooks};
use crate::meter::Meter;
use crate::webhook::Webhook;

pub(crate) fn run(meter: &mut Meter) {
    if !["match", "encode", "patch", "equality"].iter().any(|group| meter.wants(group)) {
        return;
    }
    let server = Webhook::start();
    let cluster = ClusterFixture::new([]);
    let request = create(&cluster, 700);
    let selector = json!({"objectSelector": {"matchLabels": {"app": "web"}}});
    for (name, entry) in [
        ("match/yes", Entry::default()),
        ("match/other resource", Entry { resource: "services", ..Entry::default() }),
        ("match/object selector", Entry { members: selector, ..Entry::default() }),
    ] {
        let webhooks = webhooks(&server, 1, &entry);
        let webhook = webhooks.first().unwrap();
        meter.measure(
            name,
            || cluster.run(request.clone()),
            async |run| {
                std::hint::black_box(matching::is_called(webhook, run));
            },
        );
    }

    let webhooks = webhooks(&server, 1, &Entry::default());
    let webhook = webhooks.first().unwrap();
    for (name, bytes) in [("1 KiB", 700), ("1 MiB", 1 << 20)] {
        let request = create(&cluster, bytes);
        let mut run = cluster.run(request.clone());
        let Decision::Call(invocation) = matching::decide(webhook, &mut run).decision else { unreachable!() };
        meter.measure(
            &format!("encode/{name}"),
            || (),
            async |()| {
                let text = serde_json::to_vec(&request.object).unwrap();
                let objects = EncodedObjects { object: Some(&text), old_object: None };
                encode(ReviewVersion::V1, "705ab4f5", &request, &invocation, objects).unwrap();
            },
        );
        let object = request.object.as_ref().unwrap();
        let patch = br#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#;
        meter.measure(
            &format!("patch/{name}"),
            || (),
            async |()| {
                Patch::decode(patch).unwrap().apply(object).unwrap();
            },
        );
        let same = object.clone();
        meter.measure(
            &format!("equality/{name}"),
            || (),
            async |()| {
                assert!(semantically_equal(object, &same, &request.kind));
            },
        );
    }
}
