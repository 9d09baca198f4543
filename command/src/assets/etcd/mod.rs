//! Runs admit as `etcd`.
//!
//! This etcd reports that it is healthy and stores nothing, because admit's API server stores the objects itself.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::flags::{self, Effect, Parsed, Syntax, Table, Values};
use crate::{Failure, exit_code, screen};

const FLAGS: &str = include_str!("flags.txt");
const DEFAULT_URL: &str = "http://localhost:2379";
/// The exit status of a Go program that is called with invalid flags.
const WRONG_FLAGS: u8 = 2;

/// Runs admit as etcd.
pub(super) fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let table = Table::read(FLAGS, Syntax::Go);
    let values = match table.parse(arguments) {
        Err(why) => {
            screen::status!("{}\nUsage of etcd:{}", output::lines(&why), flags::help(FLAGS));
            return WRONG_FLAGS.into();
        }
        Ok(Parsed::Help) => {
            let help = format!("Usage:\n\n  etcd [flags]\n{}", flags::help(FLAGS));
            return super::printed(&help);
        }
        Ok(Parsed::Run(values)) if values.is_set("version", false) => {
            return super::printed(&format!("etcd Version: 3.7.3 (admit {})\n", env!("CARGO_PKG_VERSION")));
        }
        Ok(Parsed::Run(values)) => values,
    };
    if let Some(argument) = values.arguments.first() {
        screen::status!("{:?} is not a valid flag", output::lines(argument));
        return ExitCode::FAILURE;
    }
    super::finish(exit_code::with_runtime(serve(&table, &values)))
}

async fn serve(table: &Table, values: &Values) -> Result<exit_code::ExitCode, Failure> {
    if let Some(name) = table.with_effect(values, Effect::Unsupported).first() {
        return Err(Failure::unsupported(format!("--{name}: admit's etcd serves /health over HTTP only")));
    }
    let ignored = table.with_effect(values, Effect::Ignored);
    if !ignored.is_empty() {
        screen::status!("admit, called as etcd: these flags have no effect: --{}", ignored.join(", --"));
    }
    let mut signals = exit_code::install_signal_handlers(1)?;
    let mut urls = values.list("listen-client-urls");
    if urls.is_empty() {
        urls.push(DEFAULT_URL.to_owned());
    }
    urls.extend(values.list("listen-client-http-urls"));
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    for url in &urls {
        let address = address(url)?;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::environment(format!("cannot listen on {address}: {error}")))?;
        let router = Router::new().fallback(answer);
        let stopped = stop.clone().cancelled_owned();
        serving.spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await });
    }
    signals.next().await;
    stop.cancel();
    // Clients make only short requests: close the remaining connections.
    serving.shutdown().await;
    Ok(exit_code::ExitCode::Ok)
}

/// Returns the address to listen on for the client URL `url`.
fn address(url: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: &str| Failure::usage(format!("--listen-client-urls {url}: {why}"));
    let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    if parsed.scheme() != "http" {
        return Err(Failure::unsupported(format!(
            "--listen-client-urls {url}: admit's etcd serves http:// only"
        )));
    }
    let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = parsed.port_or_known_default().unwrap_or_default();
    let found = (host, port).to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    // Like etcd, use the first IPv4 address of a name.
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| wrong("the name has no address"))
}

/// Responds to etcd's HTTP requests. Returns an error for gRPC requests, which are not supported.
async fn answer(request: axum::extract::Request) -> Response {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| value.starts_with("application/grpc")) {
        let headers = [
            ("content-type", "application/grpc"),
            ("grpc-status", "12"),
            ("grpc-message", "admit does not support this: etcd beyond /health"),
        ];
        return (StatusCode::OK, headers).into_response();
    }
    let text = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    let json = [(CONTENT_TYPE, "application/json")];
    match request.uri().path() {
        "/health" => (text, r#"{"health":"true","reason":""}"#).into_response(),
        "/version" => {
            (json, r#"{"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"}"#).into_response()
        }
        _ => (StatusCode::NOT_FOUND, text, "404 page not found\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_on_its_client_urls() {
        for (url, expected) in [
            ("http://127.0.0.1:2379", Some("127.0.0.1:2379")),
            ("http://[::1]:1", Some("[::1]:1")),
            ("http://127.0.0.1", Some("127.0.0.1:80")),
            ("https://127.0.0.1:1", None),
            ("127.0.0.1:1", None),
            ("", None),
        ] {
            let found = address(url).ok();
            assert_eq!(found, expected.map(|address| address.parse().unwrap()), "{url}");
        }
    }

    #[test]
    fn it_supports_the_flags_of_envtest() {
        let table = Table::read(FLAGS, Syntax::Go);
        let arguments = [
            "--advertise-client-urls=http://127.0.0.1:1",
            "--data-dir=/x",
            "--listen-client-urls=http://127.0.0.1:1",
            "--listen-peer-urls=http://127.0.0.1:2",
            "--unsafe-no-fsync=true",
        ];
        let Ok(Parsed::Run(values)) = table.parse(arguments.map(str::to_owned)) else { panic!("not taken") };
        assert_eq!(table.with_effect(&values, Effect::Unsupported), Vec::<&str>::new());
        assert_eq!(values.list("listen-client-urls"), ["http://127.0.0.1:1"]);
    }
}
