//! Implements the functions for URLs.
//!
//! Source: apiserver pkg/cel/library/urls.go and pkg/cel/url.go.

use std::fmt;
use std::sync::Arc;

use go_std::url::Url;

use super::costs::{NOMINAL, ONE_PASS};
use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Map, Opaque, Value};

const TYPE: &str = "kubernetes.URL";

pub(crate) fn functions() -> Vec<Function> {
    vec![
        Function::new("url", vec![Overload::global("string_to_url", vec![Type::String], url(), parse)])
            .with_cost(ONE_PASS),
        accessor("getScheme", "url_get_scheme", Type::String, |call| {
            Ok(Value::text(receiver(call)?.scheme.as_str()))
        }),
        accessor("getHost", "url_get_host", Type::String, |call| unescaped(&receiver(call)?.host)),
        accessor("getHostname", "url_get_hostname", Type::String, |call| {
            unescaped(receiver(call)?.hostname())
        }),
        accessor("getPort", "url_get_port", Type::String, |call| unescaped(receiver(call)?.port())),
        accessor("getEscapedPath", "url_get_escaped_path", Type::String, |call| {
            Ok(Value::text(receiver(call)?.escaped_path()))
        }),
        accessor("getQuery", "url_get_query", Type::map(Type::String, Type::list(Type::String)), query),
        // Calls of `isURL` have the default cost.
        Function::new(
            "isURL",
            vec![Overload::global("is_url_string", vec![Type::String], Type::Bool, is_url)],
        ),
    ]
}

#[derive(Debug)]
struct UrlValue(Url);

impl Opaque for UrlValue {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "URL"
    }

    fn is_text(&self) -> bool {
        true
    }

    fn go_type(&self) -> &'static str {
        "cel.URL"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        Some(self.0.to_string() == other.0.to_string())
    }
}

impl fmt::Display for UrlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn url() -> Type {
    Type::Object(TYPE.into())
}

fn accessor(name: &'static str, id: &'static str, result: Type, implementation: Implementation) -> Function {
    Function::new(name, vec![Overload::member(id, vec![url()], result, implementation)]).with_cost(NOMINAL)
}

fn receiver<'c>(call: &Call<'c, '_>) -> Result<&'c Url, Error> {
    call.opaque::<UrlValue>(0).map(|url| &url.0)
}

/// Parses a URL twice, as kube-apiserver does, because the parser that requires an absolute URL treats a
/// fragment as part of the path or query.
fn parse<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let text = call.text(0)?.as_str();
    let url = Url::parse_request_uri(text)
        .and_then(|_| Url::parse(text))
        .map_err(|message| Error::new(format!("URL parse error during conversion from string: {message}")))?;
    Ok(Value::Opaque(Arc::new(UrlValue(url))))
}

fn is_url<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(Url::parse_request_uri(call.text(0)?.as_str()).is_ok()))
}

fn query<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let parameters = receiver(call)?.parameters();
    let entries = parameters.iter().map(|(key, values)| {
        let values = values.iter().map(|value| unescaped(value)).collect::<Result<Vec<_>, _>>()?;
        Ok((unescaped(key)?, Value::list(values)))
    });
    Ok(Value::Map(entries.collect::<Result<Map<'a>, Error>>()?))
}

/// Converts bytes to a string value.
///
/// # Errors
///
/// Returns an error if the bytes are not UTF-8; unlike in Go, strings here cannot contain arbitrary bytes.
fn unescaped<'a>(bytes: &[u8]) -> Result<Value<'a>, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::text(text)),
        Err(_) => Err(Error::new("URLs with escaped bytes that are not UTF-8 are not supported".to_owned())),
    }
}
