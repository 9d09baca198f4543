//! Serves `/flagz` and `/statusz`, the pages about the server.
//!
//! kube-apiserver uses a random separator in the text to keep programs from depending on the format. admit always uses
//! a colon.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Response};
use jiff::{SignedDuration, Timestamp};
use kubernetes_types::status::Status;
use serde_json::{Map, Value, json};

use super::super::accept::{self, ZPageForm};
use super::super::answer;
use crate::apimachinery::query::Query;
use crate::endpoints::context::Server;
use crate::endpoints::options::Options;

/// The flags of kube-apiserver 1.37.1 and their default values, from its `/flagz`.
const FLAGS: &str = include_str!("flagz.txt");

const HEADER: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                      guarantees and is for debugging purposes only.\n";

/// The paths that `/statusz` lists.
const PATHS: [&str; 7] = ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];

/// A page about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZPage {
    /// `/flagz`: the flags and their values.
    Flags,
    /// `/statusz`: the versions and the uptime.
    Status,
}

impl ZPage {
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match path {
            "/flagz" => Some(Self::Flags),
            "/statusz" => Some(Self::Status),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Flags => "Flagz",
            Self::Status => "Statusz",
        }
    }

    /// Returns the page for any method.
    ///
    /// # Errors
    /// Returns 406 if the client does not accept plain text or a supported version of the page.
    ///
    /// Source: apiserver pkg/server/flagz/flagz.go and pkg/server/statusz/statusz.go.
    /// Rule: REQ-28.
    pub(crate) fn answer(
        self,
        server: &Server,
        headers: &HeaderMap,
        query: &Query,
    ) -> Result<Response<Bytes>, Box<Status>> {
        let form = accept::negotiate_z_page(headers, query, self.kind())?;
        let (content_type, body, is_deprecated) = match form {
            ZPageForm::Text => {
                ("text/plain; charset=utf-8".to_owned(), self.text(server).into_bytes(), false)
            }
            ZPageForm::Object(media_type, version) => {
                let text = serde_json::to_vec(&self.object(server, version)).unwrap_or_default();
                let mut body = answer::converted(&text, media_type);
                if media_type == accept::MediaType::Json {
                    body.push(b'\n');
                }
                let content_type = media_type.content_type();
                let kind = self.kind();
                let content_type = format!("{content_type};g=config.k8s.io;v={version};as={kind}");
                (content_type, body, version == "v1alpha1")
            }
        };
        let mut response = Response::new(Bytes::from(body));
        let found = response.headers_mut();
        let page = self.kind().to_lowercase();
        let warning = format!(
            "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
        );
        let lines = [(CONTENT_TYPE, Some(content_type)), (WARNING, is_deprecated.then_some(warning))];
        for (name, value) in lines {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                found.insert(name, value);
            }
        }
        found.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        Ok(response)
    }

    fn text(self, server: &Server) -> String {
        let head = format!("\napiserver {}\n{HEADER}", self.kind().to_lowercase());
        let body: String = match self {
            Self::Flags => flags(&server.options).fold(String::new(), |mut text, (name, value)| {
                let _ = writeln!(text, "{name}: {value}");
                text
            }),
            Self::Status => {
                let started = server.started.strftime("%a %b %e %H:%M:%S UTC %Y");
                let uptime = uptime(server);
                let (minutes, seconds) = (uptime.as_mins(), uptime.as_secs() % 60);
                let version = kubernetes_types::KUBERNETES_VERSION;
                format!(
                    "\nStarted: {started}\nUp: {} hr {:02} min {seconds:02} sec\nGo version: \n\
                     Binary version: {version}\nEmulation version: {}\nPaths: {}\n",
                    minutes / 60,
                    minutes % 60,
                    minor(version),
                    PATHS.join(" "),
                )
            }
        };
        head + &body
    }

    fn object(self, server: &Server, version: &str) -> Value {
        let mut object = json!({
            "kind": self.kind(),
            "apiVersion": format!("config.k8s.io/{version}"),
            "metadata": {"name": "apiserver"},
        });
        let version = kubernetes_types::KUBERNETES_VERSION;
        let more = match self {
            Self::Flags => {
                let flags: Map<String, Value> =
                    flags(&server.options).map(|(name, value)| (name.to_owned(), value.into())).collect();
                json!({"flags": flags})
            }
            Self::Status => json!({
                "startTime": server.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                "uptimeSeconds": uptime(server).as_secs(),
                "goVersion": "",
                "binaryVersion": version,
                "emulationVersion": minor(version),
                "paths": PATHS,
            }),
        };
        if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
            members.extend(more);
        }
        object
    }
}

fn uptime(server: &Server) -> SignedDuration {
    Timestamp::now().duration_since(server.started)
}

/// Returns a version without its patch number.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _patch)| minor)
}

/// Returns the flags and their values, sorted by name.
fn flags(options: &Options) -> impl Iterator<Item = (&str, &str)> {
    FLAGS.lines().map(|line| {
        let (name, default) = line.split_once(' ').unwrap_or((line, ""));
        (name, options.flags.get(name).map_or(default, String::as_str))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn given_values_replace_defaults() {
        let given = BTreeMap::from([("secure-port".to_owned(), "1".to_owned())]);
        let options = Options { flags: given, ..Options::default() };
        let found: BTreeMap<&str, &str> = flags(&options).collect();
        assert_eq!((found["secure-port"], found["cert-dir"]), ("1", "/var/run/kubernetes"));
        assert_eq!(found["audit-log-path"], "");
    }
}
