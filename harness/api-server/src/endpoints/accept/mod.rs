//! Negotiates the media type and the representation of responses.

mod documents;

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use kubernetes_types::status::{Status, StatusDetails};

pub(crate) use self::documents::{ZPageForm, negotiate_z_page};
pub(crate) use crate::apimachinery::media_type::MediaType;
use crate::apimachinery::query::Query;
use crate::kinds::tables::TableOptions;
use crate::registry::request::Verb;

/// The part of an object that a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Whole,
    /// Only the metadata of the object, as a `PartialObjectMetadata`.
    Metadata(MetadataOptions),
    /// A row of a Table.
    Table(TableOptions),
}

/// The options of a response that contains only metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataOptions {
    /// The `apiVersion` of the `PartialObjectMetadata`.
    pub(crate) version: &'static str,
    /// Whether the client asks for a `PartialObjectMetadataList`.
    pub(crate) is_list: bool,
}

/// The encoding and the representation of a response that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) media_type: MediaType,
    pub(crate) representation: Representation,
}

/// The kind of response. It determines the available representations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaScope {
    /// One object, or the Status of an operation.
    Object,
    /// A list.
    List,
    /// The watch events of a collection.
    Watch,
}

impl MediaScope {
    /// Returns the scope of a request with this verb.
    pub(crate) fn for_verb(verb: Verb, is_watch: bool) -> Self {
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

/// The properties of a request that determine the available representations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AvailableForms {
    pub(crate) scope: MediaScope,
    /// Whether the server can convert the resource to a Table.
    pub(crate) has_table: bool,
    /// Whether the resource is a custom resource. Custom resources do not have a protobuf encoding.
    pub(crate) is_custom: bool,
}

/// The media types that the error message for a 406 lists as supported.
const SUPPORTED_MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media types of watches that the error message for a 406 lists as supported.
const SUPPORTED_STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The maximum number of media types that the server reads from an `Accept` header.
const MAX_CLAUSES: usize = 100;

/// One media type of an `Accept` header.
///
/// Source: github.com/munnerz/goautoneg, `ParseAccept`.
#[derive(Clone, Copy, Debug)]
struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    parameters: &'a str,
    quality: f64,
}

impl<'a> Clause<'a> {
    fn parse(part: &'a str) -> Option<Self> {
        let (media_type, parameters) = part.split_once(';').unwrap_or((part, ""));
        let media_type = media_type.trim_matches(' ');
        let (main, sub) = match media_type.split_once('/') {
            Some((main, sub)) if !sub.is_empty() && !sub.contains('/') => (main, sub),
            _ if media_type == "*" => ("*", "*"),
            _ => return None,
        };
        let clause =
            Self { main: main.trim_matches(' '), sub: sub.trim_matches(' '), parameters, quality: 1.0 };
        let quality = clause.parameter("q").map(|quality| quality.parse().unwrap_or_default());
        Some(Self { quality: quality.unwrap_or(1.0), ..clause })
    }

    fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.parameters.split(';').filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_valid = !value.is_empty() && !value.contains('=');
            is_valid.then_some((name.trim_matches(' '), value.trim_matches(' ')))
        })
    }

    /// Returns the last value of the parameter `name`.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters().filter(|(found, _)| *found == name).map(|(_, value)| value).last()
    }

    fn is_before(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.main != "*" && other.main == "*")
            || (self.sub != "*" && other.sub == "*")
    }

    fn accepts(&self, sub: &str) -> bool {
        let is_main = self.main == "application";
        (is_main && (self.sub == sub || self.sub == "*")) || (self.main == "*" && self.sub == "*")
    }

    /// Returns the `apiVersion` and the kind to which the client wants the response converted.
    ///
    /// The result is `None` if the client does not request a conversion. The `apiVersion` is `None` if it is not
    /// supported.
    fn conversion(&self) -> Option<(Option<&'static str>, &'a str)> {
        let (kind, group, version) = (self.parameter("as"), self.parameter("g"), self.parameter("v"));
        if kind.is_none() && group.is_none() && version.is_none() {
            return None;
        }
        let version = match (group, version) {
            (Some("meta.k8s.io"), Some("v1")) => Some("meta.k8s.io/v1"),
            (Some("meta.k8s.io"), Some("v1beta1")) => Some("meta.k8s.io/v1beta1"),
            _ => None,
        };
        Some((version, kind.unwrap_or_default()))
    }
}

/// Returns the clauses of an `Accept` header, the most preferred clause first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let parts = accept.split(',').take(MAX_CLAUSES);
    let mut clauses: Vec<Clause<'_>> =
        parts.filter_map(|part| Clause::parse(part.trim_matches(' '))).collect();
    // The comparison is not a consistent order, so the result depends on the algorithm. Go uses insertion sort.
    for end in 1..clauses.len() {
        let mut at = end;
        while at > 0
            && let (Some(one), Some(before)) = (clauses.get(at), clauses.get(at - 1))
            && one.is_before(before)
        {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

fn accept_header(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
}

/// Returns the first encoding and representation that the client accepts and `form` allows.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateMediaTypeOptions`.
fn first_accepted(
    headers: &HeaderMap,
    query: &Query,
    server_version: Option<&str>,
    form: impl Fn(MediaType, &Clause<'_>) -> Option<Representation>,
) -> Option<Accepted> {
    let accept = accept_header(headers);
    let json = if is_indented(headers, query) { MediaType::IndentedJson } else { MediaType::Json };
    if accept.is_empty() {
        return Some(Accepted { media_type: json, representation: Representation::Whole });
    }
    for clause in clauses(accept) {
        let known = [
            ("json", MediaType::Json),
            ("yaml", MediaType::Yaml),
            ("vnd.kubernetes.protobuf", MediaType::Protobuf),
        ];
        for (_, media_type) in known.into_iter().filter(|(sub, _)| clause.accepts(sub)) {
            let stream = clause.parameter("stream").unwrap_or_default();
            let version = clause.parameter("sv").unwrap_or_default();
            let is_allowed = (stream.is_empty() || (stream == "watch" && media_type != MediaType::Yaml))
                && (version.is_empty() || Some(version) == server_version);
            let Some(representation) = form(media_type, &clause).filter(|_| is_allowed) else { continue };
            let is_pretty = clause.parameter("pretty") == Some("1");
            let media_type = match media_type {
                MediaType::Json if is_pretty => MediaType::IndentedJson,
                MediaType::Json => json,
                other @ (MediaType::IndentedJson | MediaType::Yaml | MediaType::Protobuf) => other,
            };
            return Some(Accepted { media_type, representation });
        }
    }
    None
}

/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `isPrettyPrint`.
fn is_indented(headers: &HeaderMap, query: &Query) -> bool {
    if let Some(pretty) = query.first("pretty").filter(|pretty| !pretty.is_empty()) {
        return ["1", "t", "T", "true", "TRUE", "True"].contains(&pretty);
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|begin| agent.starts_with(begin))
}

/// Returns the encoding and the representation that the client accepts.
///
/// Source: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, `NegotiateOutputMediaType`; go-restful for 406.
/// Rule: KND-10, KND-21, TBL-04.
///
/// # Errors
/// Returns 406 if the client does not accept any media type in which the server can respond.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: &Query,
    forms: AvailableForms,
) -> Result<Accepted, Box<Status>> {
    let AvailableForms { scope, has_table, is_custom } = forms;
    if !is_custom {
        let produced: &[&str] = match scope {
            MediaScope::Object => &[SUPPORTED_MEDIA_TYPES],
            MediaScope::List | MediaScope::Watch => &[SUPPORTED_MEDIA_TYPES, SUPPORTED_STREAMS],
        };
        check_produced(headers, produced)?;
    }
    let form = |media_type: MediaType, clause: &Clause<'_>| match clause.conversion() {
        None => (!is_custom || media_type != MediaType::Protobuf).then_some(Representation::Whole),
        Some((Some(version), "Table")) => {
            let has_table = has_table && media_type != MediaType::Protobuf;
            has_table.then(|| Representation::Table(TableOptions::new(version)))
        }
        Some((Some(version), kind @ ("PartialObjectMetadata" | "PartialObjectMetadataList"))) => {
            let is_list = kind == "PartialObjectMetadataList";
            Some(Representation::Metadata(MetadataOptions { version, is_list }))
        }
        Some(_) => None,
    };
    let accepted = first_accepted(headers, query, Some("v1"), form);
    match (scope, accepted) {
        (MediaScope::Watch, Some(Accepted { media_type: MediaType::Yaml, .. })) => {
            Err(not_acceptable(SUPPORTED_STREAMS))
        }
        (_, Some(accepted)) => Ok(accepted),
        (_, None) => Err(not_acceptable(SUPPORTED_MEDIA_TYPES)),
    }
}

/// Returns the encoding of an aggregated discovery document; `None` if the client does not accept such a document.
///
/// Source: apiserver pkg/endpoints/discovery/aggregated/wrapper.go, `ServeHTTP`.
pub(crate) fn negotiate_aggregated(headers: &HeaderMap, query: &Query) -> Option<MediaType> {
    if accept_header(headers).is_empty() {
        return None;
    }
    let form = |_, clause: &Clause<'_>| {
        let is_aggregated = clause.parameter("as") == Some("APIGroupDiscoveryList")
            && clause.parameter("g") == Some("apidiscovery.k8s.io")
            && clause.parameter("v") == Some("v2");
        is_aggregated.then_some(Representation::Whole)
    };
    first_accepted(headers, query, None, form).map(|accepted| accepted.media_type)
}

/// Returns the encoding of a discovery document.
///
/// If `is_checked` is true, first checks the media types as [`check_produced`] does.
///
/// # Errors
/// Returns 406 for a media type that kube-apiserver does not serve.
pub(crate) fn negotiate_document(
    headers: &HeaderMap,
    query: &Query,
    is_checked: bool,
) -> Result<MediaType, Box<Status>> {
    if is_checked {
        check_produced(headers, &[SUPPORTED_MEDIA_TYPES])?;
    }
    error_media_type(headers, query).ok_or_else(|| not_acceptable(SUPPORTED_MEDIA_TYPES))
}

/// Rejects a request if the client does not accept any of the `produced` media types. Ignores their parameters.
///
/// Source: go-restful route.go, `matchesAccept`.
///
/// # Errors
/// Returns 406 with the message of go-restful.
pub(crate) fn check_produced(headers: &HeaderMap, produced: &[&str]) -> Result<(), Box<Status>> {
    let accept = accept_header(headers);
    let is_produced = |clause: &str| {
        let media_type = clause.split(';').next().unwrap_or_default().trim_matches(' ');
        media_type == "*/*"
            || produced.iter().flat_map(|types| types.split(", ")).any(|one| one == media_type)
    };
    if accept.is_empty() || accept.split(',').any(is_produced) {
        return Ok(());
    }
    let produced = produced.join(", ");
    let message = format!("406: Not Acceptable\n\nAvailable representations: {produced}");
    let mut status = Status::failure(406, "NotAcceptable", message);
    status.details = Some(StatusDetails::default());
    Err(Box::new(status))
}

/// Source: apiserver pkg/endpoints/handlers/negotiation/errors.go, `NewNotAcceptableError`.
fn not_acceptable(accepted: &str) -> Box<Status> {
    let message = format!("only the following media types are accepted: {accepted}");
    Box::new(Status::failure(406, "NotAcceptable", message))
}

/// Returns the encoding of an error; `None` if the client does not accept a media type that can encode errors.
///
/// An error cannot be encoded as a Table or as metadata only. If the client accepts only those representations, the
/// server sends the error as indented JSON, and the audit log does not contain the error.
///
/// Source: apiserver pkg/endpoints/handlers/responsewriters/writers.go, `WriteObjectNegotiated`;
/// pkg/endpoints/handlers/negotiation/negotiate.go, `DefaultEndpointRestrictions`.
/// Rule: AUD-12.
pub(crate) fn error_media_type(headers: &HeaderMap, query: &Query) -> Option<MediaType> {
    let form = |_, clause: &Clause<'_>| clause.conversion().is_none().then_some(Representation::Whole);
    first_accepted(headers, query, None, form).map(|accepted| accepted.media_type)
}

/// Returns whether the client accepts a media type that can encode errors.
///
/// Rule: AUD-12.
pub(crate) fn takes_errors(headers: &HeaderMap) -> bool {
    error_media_type(headers, &Query::default()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &str, scope: MediaScope, has_table: bool, is_custom: bool) -> Result<Accepted, i32> {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let forms = AvailableForms { scope, has_table, is_custom };
        negotiate(&headers, &Query::default(), forms).map_err(|status| status.code)
    }

    #[track_caller]
    fn check_media_type(accept: &str, expected: Result<MediaType, i32>) {
        let found = accepted(accept, MediaScope::Object, true, false);
        assert_eq!(found.map(|accepted| accepted.media_type), expected, "{accept}");
    }

    #[test]
    fn media_type_follows_the_accept_header() {
        use MediaType::{IndentedJson, Json, Protobuf, Yaml};
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            "application/json,application/vnd.kubernetes.protobuf",
            "application/vnd.kubernetes.protobuf;q=0.5,application/json",
            "application/vnd.kubernetes.protobuf;sv=v2,application/json",
            "text/html, application/xhtml+xml, */*;q=0.8",
            "application/json;sv=v1",
        ] {
            check_media_type(accept, Ok(Json));
        }
        check_media_type("application/json;pretty=1", Ok(IndentedJson));
        check_media_type("application/yaml", Ok(Yaml));
        check_media_type("application/json;q=0.1,application/yaml;q=0.5", Ok(Yaml));
        check_media_type("application/yaml;as=Table;v=v1;g=meta.k8s.io", Ok(Yaml));
        check_media_type("application/json;as=Table;v=v2;g=meta.k8s.io", Err(406));
        check_media_type("application/json;as=Chair;v=v1;g=meta.k8s.io", Err(406));
        check_media_type("application/json;g=meta.k8s.io;v=v1", Err(406));
        check_media_type("application/json;sv=v2", Err(406));
        check_media_type("application/*", Err(406));
        check_media_type("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", Err(406));
        check_media_type("application/vnd.kubernetes.protobuf", Ok(Protobuf));
        check_media_type("application/vnd.kubernetes.protobuf,application/json", Ok(Protobuf));
        check_media_type("application/vnd.kubernetes.protobuf;stream=watch", Ok(Protobuf));
        check_media_type("text/html", Err(406));
    }

    #[test]
    fn watches_are_not_served_as_yaml() {
        assert_eq!(accepted("application/yaml", MediaScope::Watch, true, false), Err(406));
    }

    #[test]
    fn custom_resources_are_not_served_as_protobuf() {
        assert_eq!(accepted("application/vnd.kubernetes.protobuf", MediaScope::Object, true, true), Err(406));
        assert_eq!(accepted("application/cbor", MediaScope::Object, true, true), Err(406));
        assert!(accepted("application/*", MediaScope::Object, true, true).is_ok());
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
    fn partial_metadata_has_two_versions() {
        for (version, name) in [("meta.k8s.io/v1", "v1"), ("meta.k8s.io/v1beta1", "v1beta1")] {
            for kind in ["PartialObjectMetadata", "PartialObjectMetadataList"] {
                let accept = format!("application/json;as={kind};g=meta.k8s.io;v={name},application/json");
                let is_list = kind == "PartialObjectMetadataList";
                let expected = Representation::Metadata(MetadataOptions { version, is_list });
                let found = accepted(&accept, MediaScope::List, true, false);
                assert_eq!(found.map(|accepted| accepted.representation), Ok(expected), "{accept}");
            }
        }
    }

    #[test]
    fn tables_have_two_versions() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const TABLE_V1BETA1: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        let table = |version| Ok(Representation::Table(TableOptions::new(version)));
        for (accept, has_table, expected) in [
            (TABLE.to_owned(), true, table("meta.k8s.io/v1")),
            (format!("{TABLE_V1BETA1},{TABLE}"), true, table("meta.k8s.io/v1beta1")),
            (format!("{TABLE},{TABLE_V1BETA1},application/json"), false, Ok(Representation::Whole)),
            (TABLE.to_owned(), false, Err(406)),
        ] {
            let found = accepted(&accept, MediaScope::Object, has_table, false);
            assert_eq!(found.map(|accepted| accepted.representation), expected, "{accept} {has_table}");
        }
    }
}
