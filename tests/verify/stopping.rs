//! Tests V43: the results of calls while a webhook is shutting down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_webhooks::{Behavior, Fake, FakeWebhook};
use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Intervention, Settings, Stop};

use super::environment::{
    TestedWebhook, configuration, entry, finds, kinds, only, passes, pods, run, verdict, verify,
};

/// A webhook that runs until a check stops it.
struct StoppableServer {
    fake: Arc<Mutex<Option<FakeWebhook>>>,
    configuration: serde_json::Value,
}

impl StoppableServer {
    async fn with(behavior: &str) -> Self {
        let behavior: Behavior = serde_saphyr::from_str(behavior).expect("a behavior");
        let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts");
        let entry = entry("w", &fake.url(), fake.ca_bundle());
        let configuration = configuration("ValidatingWebhookConfiguration", "c", &[entry]);
        Self { fake: Arc::new(Mutex::new(Some(fake))), configuration }
    }

    /// Returns an intervention that stops the webhook after `after` calls and the additional delay `then`.
    fn ending(&self, after: usize, then: Duration) -> Intervention {
        let fake = Arc::clone(&self.fake);
        Intervention::new(move || {
            let fake = fake.lock().expect("nobody panicked").take().expect("it is ended once");
            async move {
                let came = fake.wait_for_calls(after, Duration::from_secs(60)).await;
                came.map_err(|error| error.to_string())?;
                tokio::time::sleep(then).await;
                fake.stop().await;
                Ok(())
            }
        })
    }

    /// Returns the result of V43 with two concurrent callers.
    async fn verify(&self, command: Intervention, drain: Duration) -> CheckReport {
        let stop = Stop { command, drain, patience: Duration::from_secs(2) };
        let settings = Settings { concurrency: 2, stop: Some(stop), ..Settings::default() };
        only(run("V43", std::slice::from_ref(&self.configuration), pods(), settings).await)
    }
}

/// The number of calls before the stop: one for the sample, two for the connections, and two in progress.
const UNDER_WAY: usize = 5;

#[tokio::test]
async fn v43_finds_a_webhook_that_aborts_calls() {
    // A fake takes half a second to stop.
    let stoppable = StoppableServer::with("delay: {for: {fixed: 1500ms}}").await;
    let check = stoppable.verify(stoppable.ending(UNDER_WAY, Duration::ZERO), Duration::ZERO).await;
    finds(&check, &["cuts off calls"]);
    assert!(check.findings[0].message.starts_with("of 2 calls that started "), "{check:#?}");
}

#[tokio::test]
async fn v43_finds_a_webhook_that_stops_listening_too_early() {
    let stoppable = StoppableServer::with("allow").await;
    let check = stoppable.verify(stoppable.ending(UNDER_WAY, Duration::ZERO), Duration::from_secs(1)).await;
    // A request is cut off if its connection closes.
    assert!(kinds(&check).contains(&"refuses calls that still arrive"), "{check:#?}");
}

#[tokio::test]
async fn v43_passes_a_webhook_that_drains_or_keeps_serving() {
    let stoppable = StoppableServer::with("delay: {for: {fixed: 50ms}}").await;
    passes(&stoppable.verify(stoppable.ending(UNDER_WAY, Duration::ZERO), Duration::ZERO).await);

    let stoppable = StoppableServer::with("allow").await;
    let drain = Duration::from_millis(300);
    let check = stoppable.verify(stoppable.ending(UNDER_WAY, drain * 5), drain).await;
    passes(&check);
    assert!(check.results[0].notes[0].contains("; stopped after "), "{check:#?}");
}

#[tokio::test]
async fn v43_is_not_passed_when_nothing_ends() {
    let stoppable = StoppableServer::with("allow").await;
    let check = stoppable.verify(Intervention::new(async || Ok(())), Duration::ZERO).await;
    let (found, reasons) = verdict(&check);
    assert_eq!((found, check.results[0].unequipped), (Tally::NotChecked, false));
    assert!(reasons.keys().all(|reason| reason.contains("check that the command stops it")), "{reasons:?}");

    let check =
        stoppable.verify(Intervention::new(async || Err("exit status: 7".to_owned())), Duration::ZERO);
    let (found, reasons) = verdict(&check.await);
    assert_eq!(found, Tally::NotChecked);
    assert!(reasons.contains_key("--stop-command: exit status: 7"), "{reasons:?}");

    let check = verify("V43", vec![TestedWebhook::mutating("allow")]).await;
    assert!(
        check.results[0].unequipped
            && verdict(&check).1.keys().all(|reason| reason.contains("--stop-command"))
    );
}
