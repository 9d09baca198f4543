//! Measures requests that go through the dispatcher to webhooks that respond over HTTPS.

use std::sync::Arc;

use admission_webhook_client::{HttpsCaller, NoServices};
use futures::future::join_all;
use kubernetes_admission::config::Webhook as Configured;
use kubernetes_admission::dispatcher::Dispatcher;
use kubernetes_admission::matching::WebhookIndex;
use kubernetes_api_server::ClusterFixture;
use serde_json::json;

use crate::fixtures::{Entry, chain, create, webhooks};
use crate::meter::Meter;
use crate::webhook::Webhook;

/// The minimum size of the Pod, in bytes. The resulting review has about 1 KiB.
const SMALL: usize = 700;

struct Bench {
    cluster: ClusterFixture,
    dispatcher: Dispatcher<HttpsCaller>,
    server: Webhook,
}

pub(crate) fn run(meter: &mut Meter) {
    if !meter.wants("dispatch/") {
        return;
    }
    let bench = Bench {
        cluster: ClusterFixture::new([]),
        dispatcher: Dispatcher::new(HttpsCaller::new(Arc::new(NoServices))),
        server: Webhook::start(),
    };
    let other = || Entry { resource: "services", ..Entry::default() };
    for count in [1, 10, 100, 1000] {
        let webhooks = webhooks(&bench.server, count, &other());
        bench.mutate(meter, &format!("dispatch/no match/{count}"), SMALL, &webhooks);
    }
    let mut one_of_them = webhooks(&bench.server, 999, &other());
    one_of_them.extend(webhooks(&bench.server, 1, &Entry::default()));
    bench.mutate(meter, "dispatch/1 match/1000", SMALL, &one_of_them);
    for count in [10, 100, 1000] {
        let all = webhooks(&bench.server, count, &Entry::default());
        bench.mutate(meter, &format!("dispatch/{count} match/{count}"), SMALL, &all);
    }

    let one = |entry: &Entry<'_>| webhooks(&bench.server, 1, entry);
    for (name, bytes) in [("1 KiB", SMALL), ("32 KiB", 32 << 10), ("1 MiB", 1 << 20)] {
        bench.mutate(meter, &format!("dispatch/allow/{name}"), bytes, &one(&Entry::default()));
        let patching = Entry { path: "/patch", ..Entry::default() };
        bench.mutate(meter, &format!("dispatch/patch/{name}"), bytes, &one(&patching));
    }
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let mut ten = webhooks(&bench.server, 9, &Entry { members: again, ..Entry::default() });
    ten.extend(one(&Entry { path: "/patch", ..Entry::default() }));
    bench.mutate(meter, "dispatch/reinvocation/10", SMALL, &ten);
    let conditions = json!({"matchConditions": [
        {"name": "a", "expression": "request.userInfo.username != 'nobody'"},
        {"name": "b", "expression": "object.spec.containers.all(c, c.image.startsWith('other'))"},
    ]});
    let conditional = one(&Entry { members: conditions, ..Entry::default() });
    bench.mutate(meter, "dispatch/conditions false", SMALL, &conditional);

    let validating =
        |count| webhooks(&bench.server, count, &Entry { phase: "Validating", ..Entry::default() });
    for (name, bytes) in [("1 KiB", SMALL), ("1 MiB", 1 << 20)] {
        for count in [1, 10] {
            bench.validate(meter, &format!("dispatch/validating/{count}/{name}"), bytes, &validating(count));
        }
    }
    for count in [4, 16, 64] {
        let name = format!("dispatch/allow, {count} at once");
        bench.at_once(meter, &name, count, &one(&Entry::default()));
    }
}

impl Bench {
    fn mutate(&self, meter: &mut Meter, name: &str, bytes: usize, webhooks: &[Arc<Configured>]) {
        let request = create(&self.cluster, bytes);
        let prepare = || self.cluster.run(request.clone());
        let (webhooks, none) = (WebhookIndex::new(webhooks.to_vec()), WebhookIndex::default());
        meter.measure(name, prepare, async |run| {
            self.dispatcher.mutate(run, &chain(&webhooks, &none)).await.unwrap();
        });
    }

    fn validate(&self, meter: &mut Meter, name: &str, bytes: usize, webhooks: &[Arc<Configured>]) {
        let request = create(&self.cluster, bytes);
        let prepare = || self.cluster.run(request.clone());
        let (webhooks, none) = (WebhookIndex::new(webhooks.to_vec()), WebhookIndex::default());
        meter.measure(name, prepare, async |run| {
            self.dispatcher.validate(run, &chain(&none, &webhooks)).await.unwrap();
        });
    }

    fn at_once(&self, meter: &mut Meter, name: &str, count: u32, webhooks: &[Arc<Configured>]) {
        let request = create(&self.cluster, SMALL);
        let prepare = || (0..count).map(|_| self.cluster.run(request.clone())).collect::<Vec<_>>();
        let (webhooks, none) = (WebhookIndex::new(webhooks.to_vec()), WebhookIndex::default());
        meter.measure_several(name, count, prepare, async |runs| {
            let chain = &chain(&webhooks, &none);
            let done = join_all(runs.iter_mut().map(|run| self.dispatcher.mutate(run, chain))).await;
            assert!(done.iter().all(Result::is_ok));
        });
    }
}
