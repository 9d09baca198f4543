//! Tests the creation, update, and deletion of objects.

use http::Method;
use serde_json::{Value, json};

use super::client::*;

#[tokio::test]
async fn unknown_group_is_plain_text_and_unknown_resource_is_a_status() {
    let server = server();
    for path in ["/nope", "/apis/nope", "/apis/nope/v1"] {
        assert_eq!(get(&server, path).await, (404, json!("404 page not found\n")), "{path}");
    }
    for path in [
        "/apis/apps/v9/deployments",
        "/api/v1/bogus",
        "/api/v1/namespaces/default/bogus",
        "/api/v1/namespaces/default/pods/x/bogus",
        "/api/v1/pods/x",
        "/api/v1/namespaces/default/nodes",
    ] {
        check(get(&server, path).await, 404, "NotFound", "the server could not find the requested resource");
    }
}

#[tokio::test]
async fn unsupported_method_returns_405() {
    let server = server();
    let message = "the server does not allow this method on the requested resource";
    let object = config_map("q");
    for answer in [
        post(&server, &format!("{CONFIG_MAPS}/foo"), &object).await,
        put(&server, CONFIG_MAPS, &object).await,
        post(&server, "/api/v1/configmaps", &object).await,
    ] {
        check(answer, 405, "MethodNotAllowed", message);
    }
}

#[tokio::test]
async fn rejected_create_has_upstream_errors() {
    let server = with_config_map().await;
    let with = |change: Value| {
        let mut object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}});
        for (key, value) in change.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let required =
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    let cases = [
        (json!({}), 422, "Invalid", required),
        (with(json!({"metadata": {}})), 422, "Invalid", required),
        (
            with(json!({"kind": "Pod"})),
            400,
            "BadRequest",
            "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): \
             unknown conversion",
        ),
        (
            with(json!({"apiVersion": "v2"})),
            400,
            "BadRequest",
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for \
             version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            with(json!({"metadata": {"name": "x", "namespace": "other"}})),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            with(json!({"metadata": {"name": "X_"}})),
            422,
            "Invalid",
            "ConfigMap \"X_\" is invalid: metadata.name: Invalid value: \"X_\": a lowercase RFC 1123 subdomain must \
             consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
             character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            with(json!({"metadata": {"name": "x", "resourceVersion": "5"}})),
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
        (config_map("a"), 409, "AlreadyExists", "configmaps \"a\" already exists"),
    ];
    for (object, code, reason, message) in cases {
        check(post(&server, CONFIG_MAPS, &object).await, code, reason, message);
    }
    let nowhere = post(&server, "/api/v1/namespaces/nons/configmaps", &config_map("a")).await;
    check(nowhere, 404, "NotFound", "namespaces \"nons\" not found");
    let text = send(&server, Method::POST, CONFIG_MAPS, "text/plain", "x".to_owned()).await;
    check(
        text,
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );
    let dry_run = post(&server, &format!("{CONFIG_MAPS}?dryRun=Foo"), &config_map("q")).await;
    check(
        dry_run,
        422,
        "Invalid",
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"",
    );
}

#[tokio::test]
async fn server_sets_metadata_on_create() {
    let server = server();
    let object =
        json!({"metadata": {"generateName": "x-", "uid": "mine", "labels": {}, "creationTimestamp": null}});
    let (code, created) = post(&server, CONFIG_MAPS, &object).await;
    assert_eq!(code, 201);
    let name = created["metadata"]["name"].as_str().unwrap();
    assert_eq!((name.len(), name.starts_with("x-")), (7, true));
    assert_ne!(created["metadata"]["uid"], "mine");
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"].get("labels"), None);
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}/{name}")).await, (200, created));
}

#[tokio::test]
async fn dry_run_stores_nothing() {
    let server = server();
    let (code, _) = post(&server, &format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a")).await;
    assert_eq!(code, 201);
    let path = format!("{CONFIG_MAPS}/a");
    check(get(&server, &path).await, 404, "NotFound", "configmaps \"a\" not found");
}

#[tokio::test]
async fn yaml_is_decoded_like_json() {
    let server = server();
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n".to_owned();
    let (code, created) = send(&server, Method::POST, CONFIG_MAPS, "application/yaml", body).await;
    assert_eq!((code, &created["data"]), (201, &json!({"k": "v"})));
}

#[tokio::test]
async fn rejected_update_has_upstream_errors() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let with = |metadata: Value| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata});
    let modified = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply \
                    your changes to the latest version and try again";
    let cases = [
        (
            with(json!({"name": "b"})),
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            with(json!({})),
            400,
            "BadRequest",
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (with(json!({"name": "a", "resourceVersion": "1"})), 409, "Conflict", modified),
        (
            with(json!({"name": "a", "resourceVersion": "x"})),
            500,
            "",
            "strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
    ];
    for (object, code, reason, message) in cases {
        check(put(&server, &path, &object).await, code, reason, message);
    }
    let missing = put(&server, &format!("{CONFIG_MAPS}/zz"), &config_map("zz")).await;
    check(missing, 404, "NotFound", "configmaps \"zz\" not found");
}

#[tokio::test]
async fn rejected_patch_has_upstream_errors() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let modified = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply \
                    your changes to the latest version and try again";
    let cases = [
        ("application/json", json!({}), 415, "UnsupportedMediaType", "415: Unsupported Media Type"),
        (
            MERGE_PATCH,
            json!("x"),
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            JSON_PATCH,
            json!([{"op": "remove", "path": "/x"}]),
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        (
            MERGE_PATCH,
            json!({"metadata": {"name": "b"}}),
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            MERGE_PATCH,
            json!({"metadata": {"uid": "b"}}),
            422,
            "Invalid",
            "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"b\": field is immutable",
        ),
        (MERGE_PATCH, json!({"metadata": {"resourceVersion": "1"}}), 409, "Conflict", modified),
    ];
    for (content_type, body, code, reason, message) in cases {
        check(patch(&server, &path, content_type, &body).await, code, reason, message);
    }
}

#[tokio::test]
async fn patch_changes_the_stored_object() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (code, merged) = patch(&server, &path, MERGE_PATCH, &json!({"data": {"k": null, "l": "w"}})).await;
    assert_eq!((code, &merged["data"]), (200, &json!({"l": "w"})));
    let operations = json!([{"op": "add", "path": "/data/m", "value": "x"}]);
    let (code, patched) = patch(&server, &path, JSON_PATCH, &operations).await;
    assert_eq!((code, &patched["data"]), (200, &json!({"l": "w", "m": "x"})));
    assert_eq!(get(&server, &path).await, (200, patched));
}

#[tokio::test]
async fn no_op_update_keeps_the_resource_version() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (_, before) = get(&server, &path).await;
    assert_eq!(put(&server, &path, &config_map("a")).await, (200, before));
}

#[tokio::test]
async fn delete_preconditions_are_checked() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (_, stored) = get(&server, &path).await;
    let uid = stored["metadata"]["uid"].as_str().unwrap();
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (xx) does not match the UID in \
         record ({uid}). The object might have been deleted and then recreated"
    );
    let answer = delete(&server, &path, Some(json!({"preconditions": {"uid": "xx"}}))).await;
    check(answer, 409, "Conflict", &message);
    let (code, answer) = delete(&server, &path, Some(json!({"preconditions": {"uid": uid}}))).await;
    assert_eq!(
        (code, answer),
        (
            200,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": "a", "kind": "configmaps", "uid": uid},
            })
        )
    );
    check(get(&server, &path).await, 404, "NotFound", "configmaps \"a\" not found");
}

#[tokio::test]
async fn finalizers_delay_deletion() {
    let server = with_config_map().await;
    let path = format!("{CONFIG_MAPS}/a");
    let finalizers = |value: Value| json!({"metadata": {"finalizers": value}});
    patch(&server, &path, MERGE_PATCH, &finalizers(json!(["example.com/wait"]))).await;
    let (code, deleted) = delete(&server, &path, None).await;
    assert_eq!((code, &deleted["kind"]), (200, &json!("ConfigMap")));
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(get(&server, &path).await, (200, deleted));
    let (code, _) = patch(&server, &path, MERGE_PATCH, &finalizers(Value::Null)).await;
    assert_eq!(code, 200);
    assert_eq!(get(&server, &path).await.0, 404);
}

#[tokio::test]
async fn delete_collection_uses_selectors() {
    let server = with_config_map().await;
    let mut labeled = config_map("b");
    labeled["metadata"]["labels"] = json!({"tier": "web"});
    post(&server, CONFIG_MAPS, &labeled).await;
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("labelSelector=tier%3Dweb", vec!["b"]),
        ("labelSelector=tier%21%3Dweb", vec!["a"]),
        ("labelSelector=tier%20in%20%28web%2Cdb%29", vec!["b"]),
        ("labelSelector=%21tier", vec!["a"]),
        ("fieldSelector=metadata.name%3Da", vec!["a"]),
        ("", vec!["a", "b"]),
    ] {
        let (_, list) = get(&server, &format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(names(&list), expected, "{query}");
    }
    let (code, deleted) = delete(&server, &format!("{CONFIG_MAPS}?labelSelector=tier"), None).await;
    assert_eq!((code, names(&deleted)), (200, vec!["b".to_owned()]));
    assert_eq!(names(&get(&server, CONFIG_MAPS).await.1), ["a"]);
}

#[tokio::test]
async fn a_deleted_namespace_is_terminating_until_it_is_finalized() {
    let server = server();
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}});
    let (code, created) = post(&server, "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201);
    assert_eq!(created["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "team"}));
    assert_eq!(
        (&created["spec"], &created["status"]),
        (&json!({"finalizers": ["kubernetes"]}), &json!({"phase": "Active"}))
    );
    post(&server, "/api/v1/namespaces/team/configmaps", &config_map("a")).await;
    let (code, deleted) = delete(&server, "/api/v1/namespaces/team", None).await;
    assert_eq!((code, &deleted["status"]["phase"]), (200, &json!("Terminating")));
    assert_eq!(get(&server, "/api/v1/namespaces/team/configmaps/a").await.0, 200);
    let (_, mut terminating) = get(&server, "/api/v1/namespaces/team").await;
    assert_eq!(terminating["status"]["phase"], "Terminating");
    terminating["spec"]["finalizers"] = json!([]);
    assert_eq!(put(&server, "/api/v1/namespaces/team/finalize", &terminating).await.0, 200);
    assert_eq!(get(&server, "/api/v1/namespaces/team").await.0, 404);
    let refused = delete(&server, "/api/v1/namespaces/default", None).await;
    check(
        refused,
        403,
        "Forbidden",
        "namespaces \"default\" is forbidden: this namespace may not be deleted",
    );
}
