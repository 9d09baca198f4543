//! Records the OpenAPI documents of a kube-apiserver for admit, and compares them with the documents that admit serves.

mod pack;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use certs::CertificateAuthority;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::pack::Document;
use crate::case::Plugins;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::transport::Message;

/// The definitions whose documents are templates for the documents of other definitions.
const SAMPLES: &str = include_str!("../../openapi/samples.yaml");
/// The definitions whose documents are compared.
const DEFINITIONS: &str = include_str!("../../openapi/definitions.yaml");
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The paths and request headers of the requests whose response status and headers are compared.
const REQUESTS: [(&str, &[(&str, &str)]); 12] = [
    ("/openapi/v3", &[("accept", "application/json")]),
    ("/openapi/v3", &[("accept", "text/html")]),
    ("/openapi/v3/version", &[("accept", "application/json")]),
    ("/openapi/v3/version", &[("accept", "application/json"), ("accept-encoding", "gzip")]),
    ("/openapi/v3/version", &[("accept", "text/html")]),
    ("/openapi/v3/version?hash=other", &[("accept", "application/json")]),
    ("/openapi/v3/none", &[("accept", "application/json")]),
    ("/openapi/v2", &[("accept", "application/json")]),
    ("/openapi/v2", &[("accept", "application/json"), ("accept-encoding", "gzip")]),
    ("/openapi/v2", &[("accept", "text/html")]),
    ("/openapi/v2", &[("accept", PROTOBUF)]),
    ("/openapi/v2", &[("accept", PROTOBUF), ("accept-encoding", "gzip")]),
];
/// The media type that kubectl requests.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The response headers that are compared.
const HEADERS: [&str; 6] = ["content-type", "content-encoding", "etag", "location", "cache-control", "vary"];
/// The maximum time to wait until a server publishes the documents of a definition.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The reason why documents cannot be recorded or compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server does not start, or rejects a required request.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A server does not answer a request.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// A request is invalid.
    #[error(transparent)]
    Http(#[from] http::Error),
    /// A document is not valid JSON.
    #[error("{what}: {source}")]
    Json {
        /// The name of the document.
        what: String,
        /// The parse error.
        source: serde_json::Error,
    },
    /// A file of definitions cannot be read.
    #[error("definitions: {0}")]
    Definitions(String),
    /// The file of documents cannot be written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The documents of some definitions are not published in time. Contains their names.
    #[error("the server publishes only {0:?}")]
    Unpublished(BTreeSet<String>),
}

/// The documents as a server sent them, by name: `v2`, and for v3, names such as `v3/api/v1`.
type Documents = BTreeMap<String, String>;

/// Records the documents of a kube-apiserver from `KUBEBUILDER_ASSETS` for admit. Returns the path of the file.
///
/// # Errors
/// Returns any [`Error`].
pub async fn record() -> Result<PathBuf, Error> {
    let server = Server::apiserver().await?;
    let mut documents = Vec::new();
    let own = fetch(&server).await?.into_iter().filter(|(name, _)| name != "index");
    documents.extend(own.map(|(name, text)| Document { name, text }));
    define(&server, SAMPLES, &["v3/apis/gggg.example/v9"]).await?;
    let with_samples = fetch(&server).await?;
    let sample = |name: &str| with_samples.get(name).cloned().unwrap_or_default();
    documents.push(Document { name: "sample/v3".to_owned(), text: sample("v3/apis/gggg.example/v9") });
    documents.push(Document { name: "sample/v2".to_owned(), text: pack::only(&sample("v2"), "gggg")? });
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../harness/api-server/src/endpoints/openapi/documents.gz");
    std::fs::write(&path, pack::packed(&documents)?)?;
    Ok(path)
}

/// Compares the documents of a kube-apiserver from `KUBEBUILDER_ASSETS` with the documents of admit.
///
/// The comparison is done with and without custom resource definitions. Returns the number of documents, and the names
/// of the documents that differ.
///
/// # Errors
/// Returns any [`Error`].
pub async fn compare() -> Result<(usize, Vec<String>), Error> {
    let (mut compared, mut differences) = (0, Vec::new());
    let real = Server::apiserver().await?;
    let authority = CertificateAuthority::new("admit judge CA").map_err(ServerError::from)?;
    let own = Server::in_process(Arc::new(authority), &Plugins::default()).await?;
    for definitions in [None, Some(DEFINITIONS)] {
        if let Some(definitions) = definitions {
            let published = [
                "v3/apis/shop.example/v1",
                "v3/apis/shop.example/v2beta1",
                "v3/apis/a-b.x1.example.k8s.io/v1beta1",
            ];
            define(&real, definitions, &published).await?;
            define(&own, definitions, &published).await?;
        }
        for (path, headers) in REQUESTS {
            let (real, own) = (answer(&real, path, headers).await?, answer(&own, path, headers).await?);
            compared += 1;
            if real != own {
                differences
                    .push(format!("{path} {headers:?}: kube-apiserver has {real:?}, admit has {own:?}"));
            }
        }
        compared += 1;
        if protobuf(&real).await? != protobuf(&own).await? {
            differences.push("v2 as protobuf".to_owned());
        }
        let (real, own) = (fetch(&real).await?, fetch(&own).await?);
        let names: BTreeSet<&String> = real.keys().chain(own.keys()).collect();
        for name in names {
            compared += 1;
            match (real.get(name), own.get(name)) {
                (Some(real), Some(own)) if real == own => {}
                (Some(real), Some(own)) => {
                    let (real, own) = (parse(name, real)?, parse(name, own)?);
                    let mut found = Vec::new();
                    different(name, &real, &own, &mut found);
                    if found.is_empty() {
                        found.push(format!("{name}: the same values in another order or with other spaces"));
                    }
                    differences.extend(found);
                }
                (Some(_), None) => differences.push(format!("{name}: only kube-apiserver has it")),
                (None, _) => differences.push(format!("{name}: only admit has it")),
            }
        }
    }
    Ok((compared, differences))
}

fn parse(what: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|source| Error::Json { what: what.to_owned(), source })
}

/// Adds descriptions of the differences between two values to `found`.
fn different(path: &str, real: &Value, own: &Value, found: &mut Vec<String>) {
    match (real, own) {
        (Value::Object(real), Value::Object(own)) => {
            let keys: BTreeSet<&String> = real.keys().chain(own.keys()).collect();
            for key in keys {
                let null = Value::Null;
                let (real, own) = (real.get(key).unwrap_or(&null), own.get(key).unwrap_or(&null));
                different(&format!("{path} > {key}"), real, own, found);
            }
        }
        (real, own) if real == own => {}
        (real, own) => found.push(format!("{path}: kube-apiserver has {real}, admit has {own}")),
    }
}

async fn fetch(server: &Server) -> Result<Documents, Error> {
    let index = text(server, "/openapi/v3").await?;
    let mut documents = Documents::new();
    let paths = parse("/openapi/v3", &index)?;
    for (name, entry) in paths["paths"].as_object().into_iter().flatten() {
        let url = entry["serverRelativeURL"].as_str().unwrap_or_default();
        documents.insert(format!("v3/{name}"), text(server, url).await?);
    }
    documents.insert("v2".to_owned(), text(server, "/openapi/v2").await?);
    documents.insert("index".to_owned(), index);
    Ok(documents)
}

/// Returns the status and headers of an answer, and the status of a repeated request with the returned `ETag`.
async fn answer(
    server: &Server,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(u16, Vec<Option<String>>, Option<u16>), Error> {
    let send = async |tag: Option<&str>| {
        let mut request = Request::builder().method(Method::GET).uri(path);
        for (name, value) in headers.iter().copied().chain(tag.map(|tag| ("if-none-match", tag))) {
            request = request.header(name, value);
        }
        Ok::<_, Error>(server.client().send(request.body(kube::client::Body::empty())?).await?)
    };
    let first = send(None).await?;
    let header =
        |name: &str| first.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into());
    let seen: Vec<Option<String>> = HEADERS.iter().map(|name| header(name)).collect();
    let again = match header("etag") {
        Some(tag) => Some(send(Some(&tag)).await?.status().as_u16()),
        None => None,
    };
    Ok((first.status().as_u16(), seen, again))
}

async fn text(server: &Server, path: &str) -> Result<String, Error> {
    let request = Request::builder().method(Method::GET).uri(path).header("accept", "application/json");
    Ok(server.client().request_text(request.body(Vec::new())?).await?)
}

/// Fetches the v2 document as protobuf.
async fn protobuf(server: &Server) -> Result<Vec<u8>, Error> {
    let request = Request::builder().method(Method::GET).uri("/openapi/v2").header("accept", PROTOBUF);
    let response = server.client().send(request.body(kube::client::Body::empty())?).await?;
    Ok(response.into_body().collect().await?.to_bytes().to_vec())
}

/// Creates definitions, and waits until their v3 documents and their parts of the v2 document are published.
async fn define(server: &Server, definitions: &str, published: &[&str]) -> Result<(), Error> {
    let definitions: Vec<Value> =
        serde_saphyr::from_str(definitions).map_err(|error| Error::Definitions(error.to_string()))?;
    for definition in &definitions {
        let message = Message::new(Method::POST, DEFINITION, Some(definition.clone()));
        let answer = server.ask(message).await.map_err(ServerError::from)?;
        if !answer.is_success() {
            return Err(Error::Definitions(answer.recorded().to_string()));
        }
    }
    let schemas = |definition: &Value| {
        let spec = &definition["spec"];
        let (group, plural) = (spec["group"].clone(), spec["names"]["plural"].clone());
        let path = |name: &Value| match (group.as_str(), plural.as_str(), name.as_str()) {
            (Some(group), Some(plural), Some(version)) => format!("/apis/{group}/{version}/{plural}"),
            _ => String::new(),
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        versions
            .filter(|version| version["served"] == json!(true))
            .map(|it| path(&it["name"]))
            .collect::<Vec<_>>()
    };
    let paths: Vec<String> = definitions.iter().flat_map(schemas).collect();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let documents = fetch(server).await?;
        let of_version = |path: &str| {
            let (version, _plural) = path.rsplit_once('/').unwrap_or_default();
            format!("v3{version}")
        };
        let has = |document: &str, path: &str| {
            documents.get(document).is_some_and(|text| text.contains(&format!("\"{path}\":")))
        };
        let all = paths.iter().all(|path| has("v2", path) && has(&of_version(path), path));
        if all && published.iter().all(|name| documents.contains_key(*name)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::Unpublished(documents.into_keys().collect()));
        }
        sleep(Duration::from_millis(200)).await;
    }
}
