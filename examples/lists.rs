//! Measures 1,000 list requests of a `kube::Client` that uses the in-process API server as its transport.
//!
//! Run the example with `cargo run --example lists [COUNT]`. It prints one line.

use std::error::Error;
use std::io::Write as _;
use tokio::time::Instant;

use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(1_000), |count| count.parse())?;
    let router = ApiServer::new(Options::default()).router(Authentication::Always(UserInfo::default()));
    let namespaces: Api<Namespace> = Api::all(kube::Client::new(router, "default"));
    // The first request fills caches.
    namespaces.list(&ListParams::default()).await?;
    let started = Instant::now();
    for _ in 0..count {
        namespaces.list(&ListParams::default()).await?;
    }
    let took = started.elapsed();
    writeln!(
        std::io::stdout(),
        "{count} lists of 4 namespaces: {} ms, {} µs each",
        took.as_millis(),
        took.as_micros() / u128::from(count.max(1))
    )?;
    Ok(())
}
