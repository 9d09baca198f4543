//! Tests V46: the certificates that a webhook presents during their rotation.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_webhooks::{Certificate, Fake, FakeWebhook};
use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Bundle, Intervention, Rotation, Settings};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::environment::{
    TestedWebhook, configuration, entry, finds, only, passes, pods, run, verdict, verify,
};

async fn fake() -> Arc<FakeWebhook> {
    Arc::new(FakeWebhook::start(Fake::default()).await.expect("the fake starts"))
}

/// Returns the result of V46 for a webhook at `url`.
async fn check(url: &str, trusted: &str, command: Intervention, new: Option<&str>) -> CheckReport {
    let new = new.map(|new| new.as_bytes().to_vec());
    let ca_bundle = new.map(|new| Bundle::new(move || Some(new.clone())));
    check_with(url, trusted, Rotation { command, ca_bundle, patience: Duration::from_secs(1) }).await
}

async fn check_with(url: &str, trusted: &str, rotation: Rotation) -> CheckReport {
    let settings = Settings { rotation: Some(rotation), ..Settings::default() };
    let webhook = entry("w", url, trusted);
    let configurations = [configuration("ValidatingWebhookConfiguration", "c", &[webhook])];
    only(run("V46", &configurations, pods(), settings).await)
}

/// Returns an intervention that makes the fake present a different certificate.
fn renewing(fake: &Arc<FakeWebhook>, certificate: &str) -> Intervention {
    let fake = Arc::clone(fake);
    let certificate: Certificate = certificate.parse().expect("a certificate");
    Intervention::new(move || {
        let renewed = fake.rotate(certificate).map_err(|error| error.to_string());
        async move { renewed }
    })
}

#[tokio::test]
async fn v46_finds_a_webhook_that_keeps_the_old_certificate() {
    let fake = fake().await;
    let check = check(&fake.url(), fake.ca_bundle(), Intervention::new(async || Ok(())), None).await;
    finds(&check, &["keeps the old certificate"]);
}

#[tokio::test]
async fn v46_finds_calls_that_fail_during_the_rotation() {
    for (defect, words) in [("expired", "has expired"), ("unknown-issuer", "unknown authority")] {
        let fake = fake().await;
        let check = check(&fake.url(), fake.ca_bundle(), renewing(&fake, defect), None).await;
        finds(&check, &["fails during the certificate renewal"]);
        let message = &check.findings[0].message;
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn v46_passes_a_webhook_that_reloads_its_certificate() {
    let fake = fake().await;
    let check = check(&fake.url(), fake.ca_bundle(), renewing(&fake, "valid"), None).await;
    passes(&check);
    assert!(check.results[0].notes[0].ends_with(", 0 failed"), "{check:#?}");
}

#[tokio::test]
async fn v46_trusts_the_new_authority_in_addition_to_the_old_one() {
    let (old, new) = (fake().await, fake().await);
    let (url, lead) = switch(old.address()).await;
    let there = new.address();
    let command = Intervention::new(move || {
        *lead.lock().expect("nobody panicked") = there;
        std::future::ready(Ok(()))
    });
    let trusting = check(&url, old.ca_bundle(), command.clone(), Some(new.ca_bundle())).await;
    passes(&trusting);

    let (url, lead) = switch(old.address()).await;
    let command = Intervention::new(move || {
        *lead.lock().expect("nobody panicked") = there;
        std::future::ready(Ok(()))
    });
    let check = check(&url, old.ca_bundle(), command, None).await;
    finds(&check, &["fails during the certificate renewal"]);
}

#[tokio::test]
async fn v46_passes_a_change_of_the_bundle_right_before_the_certificate() {
    let (old, new) = (fake().await, fake().await);
    let (url, lead) = switch(old.address()).await;
    let there = new.address();
    let begun = Arc::new(AtomicBool::new(false));
    let changed = Arc::new(Notify::new());
    let (starting, ending) = (Arc::clone(&begun), Arc::clone(&changed));
    let command = Intervention::new(move || {
        let ending = Arc::clone(&ending);
        starting.store(true, Ordering::SeqCst);
        async move {
            ending.notified().await;
            Ok(())
        }
    });
    // The new bundle and the new certificate are installed after the bundle was first read and found unchanged.
    let bundle = new.ca_bundle().as_bytes().to_vec();
    let is_there = AtomicBool::new(false);
    let ca_bundle = Bundle::new(move || {
        if is_there.load(Ordering::SeqCst) {
            return Some(bundle.clone());
        }
        if begun.load(Ordering::SeqCst) {
            is_there.store(true, Ordering::SeqCst);
            *lead.lock().expect("nobody panicked") = there;
            changed.notify_one();
        }
        None
    });
    let rotation = Rotation { command, ca_bundle: Some(ca_bundle), patience: Duration::from_secs(5) };
    passes(&check_with(&url, old.ca_bundle(), rotation).await);
}

/// Starts a proxy that forwards to an address. Returns its URL, and the address, so that the test can change it.
async fn switch(first: SocketAddr) -> (String, Arc<Mutex<SocketAddr>>) {
    let lead = Arc::new(Mutex::new(first));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    let leading = Arc::clone(&lead);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let to = *leading.lock().expect("nobody panicked");
            tokio::spawn(async move {
                let mut to = TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut from, &mut to).await
            });
        }
    });
    (url, lead)
}

#[tokio::test]
async fn v46_is_not_passed_when_nothing_is_renewed() {
    let fake = fake().await;
    let failing = Intervention::new(async || Err("exit status: 7".to_owned()));
    let (found, reasons) = verdict(&check(&fake.url(), fake.ca_bundle(), failing, None).await);
    assert_eq!(found, Tally::NotChecked);
    assert!(reasons.contains_key("--rotate-command: exit status: 7"), "{reasons:?}");

    let absent = Rotation {
        command: Intervention::new(async || Ok(())),
        ca_bundle: Some(Bundle::new(|| None)),
        patience: Duration::from_secs(1),
    };
    let (found, reasons) = verdict(&check_with(&fake.url(), fake.ca_bundle(), absent).await);
    assert_eq!(found, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.contains("--rotated-ca-bundle")), "{reasons:?}");

    let refused = fake_webhooks::RefusingPort::bind().expect("a port").address();
    let never = Intervention::new(|| async { unreachable!("nothing is renewed of what is not there") });
    let check = check(&format!("https://{refused}/"), fake.ca_bundle(), never, None).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);

    let check = verify("V46", vec![TestedWebhook::mutating("allow")]).await;
    assert!(
        check.results[0].unequipped
            && verdict(&check).1.keys().all(|reason| reason.contains("--rotate-command"))
    );
}
