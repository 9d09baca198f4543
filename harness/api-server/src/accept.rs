//! Content negotiation: which form of a response the client accepts.

use http::HeaderMap;
use http::header::ACCEPT;

use kubernetes_types::status::{Status, Unsupported};

use super::route::Verb;
use super::tables::TableOptions;

/// The part of an object that a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    /// The whole object.
    Whole,
    /// Only the metadata of the object: `PartialObjectMetadata`.
    Metadata,
    /// A row of a Table.
    Table(TableOptions),
}

/// The kind of response, which determines the available representations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediaScope {
    /// One object, or the Status of an operation.
    Object,
    /// A list.
    List,
    /// The events of a collection.
    Watch,
}

impl MediaScope {
    /// Returns the scope of a request with this verb.
    pub(super) fn for_verb(verb: Verb, is_watch: bool) -> Self {
        match verb {
            Verb::List if is_watch => Self::Watch,
            Verb::List => Self::List,
            Verb::Get
            | Verb::Create
            | Verb::Update
            | Verb::Patch
            | Verb::Delete
            | Verb::DeleteCollection
            | Verb::Connect => Self::Object,
        }
    }
}

/// The media types that a 406 lists as supported.
const SUPPORTED_MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Returns the representation that the client accepts: whole objects, their metadata, or a Table.
///
/// `has_table` is true if the resource supports Tables.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateOutputMediaType`; go-restful for 406.
/// Rule: KND-10, TBL-04.
///
/// # Errors
/// 406 for a media type that kube-apiserver does not serve, 501 for one that admit does not support.
pub(super) fn check_accept(
    headers: &HeaderMap,
    asked: MediaScope,
    has_table: bool,
) -> Result<Representation, Box<Status>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let plain = ["*/*", "application/*", "application/json"];
    let other = ["application/yaml", "application/vnd.kubernetes.protobuf"];
    let partial =
        if asked == MediaScope::List { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
    let (mut is_known, mut is_unsupported) = (false, false);
    for accepted in accept.split(',').map(str::trim) {
        let (media_type, parameters) = accepted.split_once(';').unwrap_or((accepted, ""));
        let media_type = media_type.trim();
        let parameter = |name: &str| {
            let mut pairs = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let is_plain = media_type.is_empty() || plain.contains(&media_type);
        if !is_plain && !other.contains(&media_type) {
            continue;
        }
        is_known = true;
        let version = match (parameter("g"), parameter("v")) {
            (Some("meta.k8s.io"), Some("v1")) => Some("meta.k8s.io/v1"),
            (Some("meta.k8s.io"), Some("v1beta1")) => Some("meta.k8s.io/v1beta1"),
            _ => None,
        };
        match (parameter("as"), version) {
            (None, _) if is_plain => return Ok(Representation::Whole),
            (Some("Table"), Some(version)) if is_plain && has_table => {
                return Ok(Representation::Table(TableOptions::new(version)));
            }
            (Some("Table"), Some(_)) if !has_table || media_type == "application/vnd.kubernetes.protobuf" => {
            }
            (Some(kind), Some("meta.k8s.io/v1")) if is_plain && kind == partial => {
                return Ok(Representation::Metadata);
            }
            (None, _) | (Some("Table" | "PartialObjectMetadata" | "PartialObjectMetadataList"), Some(_)) => {
                is_unsupported = true;
            }
            (Some(_), _) => {}
        }
    }
    if is_unsupported {
        let what = format!("responses as {accept} (use application/json)");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let message = if is_known {
        format!("only the following media types are accepted: {SUPPORTED_MEDIA_TYPES}")
    } else {
        let streams = match asked {
            MediaScope::Object => "",
            MediaScope::List | MediaScope::Watch => {
                ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            }
        };
        format!("406: Not Acceptable\n\nAvailable representations: {SUPPORTED_MEDIA_TYPES}{streams}")
    };
    let mut status = Status::failure(406, "NotAcceptable", message);
    status.details = (!is_known).then(kubernetes_types::status::StatusDetails::default);
    Err(Box::new(status))
}

/// Returns whether the client accepts a media type in which errors can be encoded.
///
/// An error cannot be a Table or metadata. If the client accepts only those, the server still sends the error as JSON,
/// but the audit log does not contain it.
///
/// Source: apiserver pkg/endpoints/handlers/responsewriters/writers.go, `WriteObjectNegotiated`;
/// pkg/endpoints/handlers/negotiation/negotiate.go, `DefaultEndpointRestrictions`.
/// Rule: AUD-12.
pub(super) fn takes_errors(headers: &HeaderMap) -> bool {
    const KNOWN: [&str; 5] = [
        "*/*",
        "application/*",
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ];
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.is_empty()
        || accept.split(',').any(|accepted| {
            let mut parts = accepted.split(';').map(str::trim);
            let is_known = parts.next().is_some_and(|form| KNOWN.contains(&form));
            let converts =
                |part: &str| part.split_once('=').is_some_and(|(name, _)| ["as", "g", "v"].contains(&name));
            is_known && !parts.any(converts)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_accepted(accept: &str, code: Option<i32>) {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let found =
            check_accept(&headers, MediaScope::Object, true).err().map(|status| i64::from(status.code));
        assert_eq!(found, code.map(i64::from), "{accept}");
    }

    #[test]
    fn client_without_json_gets_406_or_501() {
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "application/vnd.kubernetes.protobuf,application/json",
            "text/html, application/xhtml+xml, */*;q=0.8",
        ] {
            check_accepted(accept, None);
        }
        check_accepted("application/json;as=Table;v=v1;g=meta.k8s.io", None);
        check_accepted("application/json;as=Table;v=v2;g=meta.k8s.io", Some(406));
        check_accepted("application/json;as=Chair;v=v1;g=meta.k8s.io", Some(406));
        check_accepted("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", Some(406));
        check_accepted("application/yaml;as=Table;v=v1;g=meta.k8s.io", Some(501));
        check_accepted("application/yaml", Some(501));
        check_accepted("text/html", Some(406));
    }

    #[test]
    fn error_format_is_negotiated() {
        for (accept, expected) in [
            ("", true),
            ("*/*", true),
            ("application/yaml", true),
            ("application/json; q=0.8", true),
            ("text/html", false),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", false),
            ("application/json;as=Table;v=v1;g=meta.k8s.io, application/json", true),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(takes_errors(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn partial_metadata_has_one_version_for_objects_and_lists() {
        use Representation::{Metadata, Whole};
        const OBJECT: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        const LIST: &str = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        for (accept, asked, expected) in [
            (format!("application/json;{OBJECT}"), MediaScope::Object, Some(Metadata)),
            (format!("application/json;{OBJECT}"), MediaScope::List, None),
            (format!("application/json;{LIST}"), MediaScope::List, Some(Metadata)),
            (format!("application/json;{LIST},application/json"), MediaScope::Object, Some(Whole)),
            (
                format!(
                    "application/vnd.kubernetes.protobuf;{OBJECT},application/json;{OBJECT},application/json"
                ),
                MediaScope::Watch,
                Some(Metadata),
            ),
            (format!("application/json,application/json;{OBJECT}"), MediaScope::Object, Some(Whole)),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1".to_owned(),
                MediaScope::Object,
                None,
            ),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(check_accept(&headers, asked, true).ok(), expected, "{accept} {asked:?}");
        }
    }

    #[test]
    fn tables_have_two_versions() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const TABLE_V1BETA1: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        let table = |version| Some(Representation::Table(TableOptions::new(version)));
        for (accept, has_table, expected) in [
            (TABLE.to_owned(), true, table("meta.k8s.io/v1")),
            (format!("{TABLE_V1BETA1},{TABLE}"), true, table("meta.k8s.io/v1beta1")),
            (format!("{TABLE},{TABLE_V1BETA1},application/json"), false, Some(Representation::Whole)),
            (TABLE.to_owned(), false, None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(
                check_accept(&headers, MediaScope::Object, has_table).ok(),
                expected,
                "{accept} {has_table}"
            );
        }
    }
}
