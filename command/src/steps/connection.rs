//! Defines steps that connect to Pods, Services, and Nodes: `exec`, `attach`, `portforward`, and `proxy`.

use cucumber::when;
use gherkin::Step;
use http::Method;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use super::world::World;
use super::{StepHelp, when as step};

pub(super) const HELP: StepHelp = step(
    "a client connects to the {word} subresource of the {word} {string} with:",
    "Sends the CONNECT request with these options, for example PodExecOptions, as `kubectl exec` does; no stream is opened",
    r#"When a client connects to the exec subresource of the pod "web" with:
  """yaml
  {command: [sh], stdin: true, tty: true}
  """"#,
);

/// Sends a GET request for a proxy, or a POST request for any other subresource.
///
/// The operation in the review is always CONNECT.
///
/// Source: kubernetes pkg/registry/core/pod/rest/subresources.go, `ConnectMethods`.
#[when(expr = "a client connects to the {word} subresource of the {word} {string} with:")]
async fn connects(
    world: &mut World,
    step: &Step,
    subresource: String,
    resource: String,
    name: String,
) -> Outcome {
    let options = world.yaml(step)?;
    let path = world.path_of_subresource(&resource, &name, &subresource).await?;
    let method = if subresource == "proxy" { Method::GET } else { Method::POST };
    world.request(step, method, &with_options(path, &options)?, None).await
}

/// Returns the path with the options: the `path` of a proxy is appended, and all other options become the query.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `getRequestOptions`.
fn with_options(mut path: String, options: &Value) -> Outcome<String> {
    let not_options =
        || StepFailure::new("invalid connection options: must be a map, for example `command: [sh]`");
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (field, value) in options.as_object().ok_or_else(not_options)? {
        match (field.as_str(), value) {
            ("apiVersion" | "kind", _) | (_, Value::Null) => {}
            ("path", Value::String(rest)) => path = format!("{path}/{}", rest.trim_start_matches('/')),
            (_, Value::Array(items)) => {
                for item in items {
                    query.append_pair(field, &text(item));
                }
            }
            (_, value) => {
                query.append_pair(field, &text(value));
            }
        }
    }
    let query = query.finish();
    Ok(if query.is_empty() { path } else { format!("{path}?{query}") })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_become_the_query_and_proxy_path_is_appended() {
        let check = |options: Value, expected: &str| {
            assert_eq!(with_options("/p".to_owned(), &options).expect("options"), expected);
        };
        check(json!({}), "/p");
        check(
            json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh", "-c x"], "tty": true}),
            "/p?command=sh&command=-c+x&tty=true",
        );
        check(json!({"ports": [8080, 9090]}), "/p?ports=8080&ports=9090");
        check(json!({"path": "/metrics"}), "/p/metrics");
        assert!(with_options(String::new(), &json!(["sh"])).is_err());
    }
}
