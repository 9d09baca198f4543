//! Negotiates the media type of the pages about the server.

use http::HeaderMap;
use kubernetes_types::status::Status;

use super::{MediaType, accept_header, clauses, is_indented, not_acceptable};
use crate::apimachinery::query::Query;

/// The format of a page about the server, such as `/statusz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZPageForm {
    /// Plain text.
    Text,
    /// An object in a version of the group `config.k8s.io`.
    Object(MediaType, &'static str),
}

/// Returns the format of a page about the server; `kind` is the kind of its object.
///
/// Source: apiserver pkg/server/flagz/negotiate/negotiation.go, `AllowsMediaTypeTransform`.
/// Rule: REQ-28.
///
/// # Errors
/// Returns 406 if the client does not accept any of the formats.
pub(crate) fn negotiate_z_page(
    headers: &HeaderMap,
    query: &Query,
    kind: &str,
) -> Result<ZPageForm, Box<Status>> {
    let accept = accept_header(headers);
    if accept.trim().is_empty() {
        return Ok(ZPageForm::Text);
    }
    for clause in clauses(accept) {
        if ["sv", "stream"].iter().any(|name| clause.parameter(name).is_some()) {
            continue;
        }
        let is_converted = ["g", "v", "as"].iter().any(|name| clause.parameter(name).is_some());
        let is_text = (clause.main == "text" && ["plain", "*"].contains(&clause.sub))
            || (clause.main == "*" && clause.sub == "*");
        if is_text && !is_converted {
            return Ok(ZPageForm::Text);
        }
        let is_page = clause.parameter("as") == Some(kind) && clause.parameter("g") == Some("config.k8s.io");
        let version =
            ["v1alpha1", "v1beta1"].into_iter().find(|&version| clause.parameter("v") == Some(version));
        let Some(version) = version.filter(|_| is_page) else { continue };
        if clause.accepts("json") {
            let is_pretty = clause.parameter("pretty") == Some("1") || is_indented(headers, query);
            let media_type = if is_pretty { MediaType::IndentedJson } else { MediaType::Json };
            return Ok(ZPageForm::Object(media_type, version));
        }
        if clause.accepts("yaml") {
            return Ok(ZPageForm::Object(MediaType::Yaml, version));
        }
    }
    Err(not_acceptable("application/json, application/yaml, text/plain"))
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])
    }

    #[test]
    fn pages_are_text_unless_their_kind_is_requested() {
        const PAGE: &str = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz";
        for (accept, expected) in [
            ("", Ok(ZPageForm::Text)),
            ("*/*", Ok(ZPageForm::Text)),
            ("text/*", Ok(ZPageForm::Text)),
            ("application/json, text/plain;q=0.1", Ok(ZPageForm::Text)),
            (PAGE, Ok(ZPageForm::Object(MediaType::Json, "v1beta1"))),
            (
                "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz",
                Ok(ZPageForm::Object(MediaType::Yaml, "v1alpha1")),
            ),
            ("application/json", Err(406)),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", Err(406)),
            ("text/plain;v=v1beta1", Err(406)),
        ] {
            let found = negotiate_z_page(&headers(accept), &Query::default(), "Statusz");
            assert_eq!(found.map_err(|status| status.code), expected, "{accept}");
        }
    }
}
