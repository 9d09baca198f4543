//! Handles the W3C trace context of a request. The API server propagates it to webhooks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::Span;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// The flags that are propagated: sampled, and random trace ID.
const FLAGS: u8 = 0b11;
/// The maximum number of members in a `tracestate`.
const STATES: usize = 32;
/// The maximum number of members in a `baggage`.
const MEMBERS: usize = 64;
/// The maximum length, in bytes, of a `baggage`.
const BAGGAGE_BYTES: usize = 8192;

/// Exports the spans of `tracing` and assigns each of them to a trace.
pub trait SpanContexts: Send + Sync {
    /// Starts the span of a request.
    ///
    /// For a trusted user, the span joins the trace in the headers; otherwise it starts a new trace with a link to
    /// that trace.
    fn begin(&self, request: &Span, headers: &HeaderMap, is_trusted: bool);

    /// Returns `traceparent` and `tracestate` for a call within `span`; empty if the span is not part of a trace.
    fn headers(&self, span: &Span) -> HeaderMap;
}

/// The trace headers for calls to webhooks; empty if the request does not have any valid headers.
///
/// Source: component-base `tracing/utils.go`, `WrapperFor` and `Propagators`.
#[derive(Clone, Default)]
pub struct TraceContext {
    headers: HeaderMap,
    spans: Option<Arc<dyn SpanContexts>>,
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext").field("headers", &self.headers).finish_non_exhaustive()
    }
}

impl TraceContext {
    /// Reads the headers of the request to the API server.
    ///
    /// Unless [`Self::with_spans`] sets an exporter, `traceparent` names the client's span.
    ///
    /// Source: go.opentelemetry.io/otel `propagation/{trace_context,baggage}.go`, `Extract` and `Inject`.
    /// Rule: HTTP-24.
    #[must_use]
    pub fn from_request(request: &HeaderMap) -> Self {
        let text = |name: HeaderName| request.get(name)?.to_str().ok();
        let mut headers = HeaderMap::new();
        if let Some(parent) = text(TRACEPARENT).and_then(parent) {
            insert(&mut headers, TRACEPARENT, &parent);
            if let Some(state) = text(TRACESTATE).and_then(state) {
                insert(&mut headers, TRACESTATE, &state);
            }
        }
        let baggage: Vec<&str> =
            request.get_all(BAGGAGE).iter().filter_map(|value| value.to_str().ok()).collect();
        insert(&mut headers, BAGGAGE, &handed_on(&baggage));
        Self { headers, spans: None }
    }

    /// Sets the exporter of the server's spans, so that `traceparent` and `tracestate` name the span of the call.
    #[must_use]
    pub fn with_spans(self, spans: Option<Arc<dyn SpanContexts>>) -> Self {
        Self { spans, ..self }
    }

    /// Returns the headers for a call in the current span.
    pub fn headers(&self) -> Cow<'_, HeaderMap> {
        let Some(spans) = &self.spans else { return Cow::Borrowed(&self.headers) };
        let mut headers = spans.headers(&Span::current());
        if let Some(baggage) = self.headers.get(BAGGAGE) {
            headers.insert(BAGGAGE, baggage.clone());
        }
        Cow::Owned(headers)
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}

/// Parses a `traceparent` and returns it in version 00; `None` if it is invalid.
///
/// Source: go.opentelemetry.io/otel `propagation/trace_context.go`, `extract`.
fn parent(text: &str) -> Option<String> {
    let mut parts = text.splitn(5, '-');
    let mut hex = |length: usize| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex))
    };
    let (version, trace, span) = (hex(2)?, hex(32)?, hex(16)?);
    let flags = u8::from_str_radix(hex(2)?, 16).ok()?;
    let is_zero = |id: &str| id.bytes().all(|digit| digit == b'0');
    if version == "ff" || is_zero(trace) || is_zero(span) {
        return None;
    }
    // Version 00 has no further parts and no other flags.
    if version == "00" && (parts.next().is_some_and(|rest| !rest.is_empty()) || flags > FLAGS) {
        return None;
    }
    Some(format!("00-{trace}-{span}-{:02x}", flags & FLAGS))
}

/// Parses a `tracestate`; returns `None` if a member is invalid.
///
/// Source: go.opentelemetry.io/otel/trace `tracestate.go`, `ParseTraceState`.
fn state(text: &str) -> Option<String> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    for member in text.split(',').filter(|member| !member.is_empty()) {
        let (key, value) = member.split_once('=')?;
        let (key, value) = (key.trim_start_matches([' ', '\t']), value.trim_end_matches([' ', '\t']));
        let is_new = !members.iter().any(|(known, _)| *known == key);
        if !is_new || members.len() == STATES || !is_state_key(key) || !is_state_value(value) {
            return None;
        }
        members.push((key, value));
    }
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(members.join(","))
}

/// Returns whether `key` is a valid key of a `tracestate` member.
///
/// Source: go.opentelemetry.io/otel/trace `tracestate.go`, `checkKey`.
fn is_state_key(key: &str) -> bool {
    let is_of = |part: &str, longest: usize, first: fn(&u8) -> bool| {
        let is_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
        part.len() <= longest && part.as_bytes().first().is_some_and(first) && part.bytes().all(is_key)
    };
    match key.split_once('@') {
        None => is_of(key, 256, u8::is_ascii_lowercase),
        Some((tenant, system)) => {
            is_of(tenant, 241, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                && is_of(system, 14, u8::is_ascii_lowercase)
        }
    }
}

/// Returns whether `value` is a valid value of a `tracestate` member.
///
/// Source: go.opentelemetry.io/otel/trace `tracestate.go`, `checkValue`.
fn is_state_value(value: &str) -> bool {
    let is_value = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b',' && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_value) && !value.ends_with(' ')
}

/// Returns the valid members of all `baggage` headers, in the order in which the request contains them.
///
/// Returns an empty string if the headers are too long. kube-apiserver sends the members in random order.
///
/// Source: go.opentelemetry.io/otel `propagation/baggage.go`, `extractMultiBaggage`; `baggage/baggage.go`, `Parse`.
fn handed_on(headers: &[&str]) -> String {
    let bytes = headers.iter().map(|header| header.len() + 1).sum::<usize>().saturating_sub(1);
    if bytes > BAGGAGE_BYTES {
        return String::new();
    }
    let mut members: Vec<(String, String)> = Vec::new();
    for (key, member) in headers.iter().flat_map(|header| header.split(',')).filter_map(member) {
        let count = members.len();
        match members.iter_mut().find(|(known, _)| *known == key) {
            // The last member with a key wins.
            Some(known) => known.1 = member,
            None if count == MEMBERS => break,
            None => members.push((key, member)),
        }
    }
    members.into_iter().map(|(_, member)| member).collect::<Vec<_>>().join(",")
}

/// Returns the key of a `baggage` member and the whole member, re-escaped; `None` if the member is invalid.
///
/// Source: go.opentelemetry.io/otel `baggage/baggage.go`, `parseMember`.
fn member(text: &str) -> Option<(String, String)> {
    let mut parts = text.split(';');
    let (key, value) = parts.next()?.split_once('=')?;
    let key = key.trim();
    let mut member = pair(key, value)?;
    for property in parts.filter(|property| !property.is_empty()) {
        let property = match property.split_once('=') {
            Some((key, value)) => pair(key.trim(), value)?,
            None if is_baggage_key(property.trim()) => property.trim().to_owned(),
            None => return None,
        };
        member.push(';');
        member.push_str(&property);
    }
    Some((key.to_owned(), member))
}

fn pair(key: &str, value: &str) -> Option<String> {
    let value = value.trim();
    if !is_baggage_key(key) || !value.bytes().all(is_baggage_value) {
        return None;
    }
    let value = go_std::url::path_unescape(value).ok()?;
    Some(format!("{key}={}", escaped(&String::from_utf8_lossy(&value))))
}

fn is_baggage_key(key: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !key.is_empty() && key.bytes().all(is_token)
}

fn is_baggage_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

/// Percent-encodes a `baggage` value.
///
/// Source: go.opentelemetry.io/otel `baggage/baggage.go`, `valueEscape`.
fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'%' => "%25".to_owned(),
        byte if is_baggage_value(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

    #[track_caller]
    fn check(request: &[(&'static str, &str)], expect: &[(&str, &str)]) {
        let request =
            request.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        request.for_each(|(name, value)| {
            headers.append(name, value);
        });
        let context = TraceContext::from_request(&headers);
        let found: Vec<(&str, &str)> =
            context.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, expect, "{headers:?}");
    }

    #[test]
    fn only_a_valid_traceparent_is_propagated() {
        for (parent, expect) in [
            ("00-TRACE-01", Some("00-TRACE-01")),
            ("00-TRACE-03", Some("00-TRACE-03")),
            ("00-TRACE-04", None),
            ("00-TRACE-01-", Some("00-TRACE-01")),
            ("00-TRACE-01-more", None),
            ("01-TRACE-0f-more", Some("00-TRACE-03")),
            ("ff-TRACE-01", None),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", None),
            ("", None),
        ] {
            let expect = expect.map(|text| text.replace("TRACE", TRACE));
            let expect: Vec<(&str, &str)> =
                expect.iter().map(|text| ("traceparent", text.as_str())).collect();
            check(&[("traceparent", &parent.replace("TRACE", TRACE))], &expect);
        }
    }

    #[test]
    fn a_tracestate_needs_a_traceparent_and_valid_members() {
        let parent = format!("00-{TRACE}-00");
        for (state, expect) in [
            ("a=1, t/2@sys=x y ,,", Some("a=1,t/2@sys=x y")),
            ("a=1,a=2", None),
            ("A=1", None),
            ("a=", None),
            ("a=b=c", None),
        ] {
            let mut headers = vec![("traceparent", parent.as_str())];
            headers.extend(expect.map(|state| ("tracestate", state)));
            check(&[("traceparent", &parent), ("tracestate", state)], &headers);
        }
        check(&[("tracestate", "a=1")], &[]);
    }

    #[test]
    fn valid_members_of_all_baggage_headers_are_propagated() {
        for (baggage, expect) in [
            (&["a = 1 , b=2;p;q = r ;"][..], "a=1,b=2;p;q=r"),
            (&["a=1", "b=2", "a=3"], "a=3,b=2"),
            (&["none,a b=1,c=%zz,d=%41%20%25"], "d=A%20%25"),
            (&["e=%c3%bc%ff"], "e=%C3%BC%EF%BF%BD"),
        ] {
            let request: Vec<_> = baggage.iter().map(|baggage| ("baggage", *baggage)).collect();
            check(&request, &[("baggage", expect)]);
        }
        check(&[("baggage", &format!("a={}", "b".repeat(BAGGAGE_BYTES)))], &[]);
        check(&[("baggage", "none")], &[]);
    }
}
