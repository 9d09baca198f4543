//! Tests manifests. kube-apiserver 1.37.1 printed the expected errors after `error loading FILE: ` before it exited.

use serde_json::{Value, json};

use super::*;

fn webhook(more: &Value) -> Value {
    let mut webhook = json!({
        "name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    merge(&mut webhook, more);
    webhook
}

fn merge(object: &mut Value, more: &Value) {
    for (field, value) in more.as_object().unwrap() {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(field);
        } else {
            object[field] = value.clone();
        }
    }
}

fn configuration(more: &Value) -> Value {
    let mut configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "a.static.k8s.io"}, "webhooks": [webhook(&json!({}))],
    });
    merge(&mut configuration, more);
    configuration
}

fn with_webhook(more: &Value) -> Value {
    configuration(&json!({"webhooks": [webhook(more)]}))
}

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> ManifestFile {
    ManifestFile { path: format!("/d/{name}"), bytes: bytes.into() }
}

fn load_text(text: impl Into<Vec<u8>>) -> Result<Manifests, ManifestError> {
    load(Phase::Mutating, &[file("a.yaml", text)])
}

#[track_caller]
fn refused(text: impl Into<Vec<u8>>, expect: &str) {
    let error = load_text(text).unwrap_err();
    assert_eq!(error, ManifestError::Invalid(format!("error loading /d/a.yaml: {expect}")));
}

fn names(manifests: &Manifests) -> Vec<String> {
    manifests.webhooks.iter().map(|webhook| webhook.id.to_string()).collect()
}

const YAML: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n";

/// Rule: LOAD-11.
#[test]
fn a_document_of_another_kind_is_rejected() {
    for (text, expect) in [
        ("a: b\n", "Object 'Kind' is missing in 'a: b'"),
        ("# nothing\n", "Object 'Kind' is missing in '# nothing'"),
        ("---\n---\n", "Object 'Kind' is missing in '---'"),
        ("null\n", "Object 'Kind' is missing in 'null'"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        ("kind: x\n", "Object 'apiVersion' is missing in 'kind: x'"),
        ("apiVersion: a/b/c\nkind: x\n", "unexpected GroupVersion string: a/b/c"),
        (
            "apiVersion: v1\nkind: Pod\n",
            "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        ("apiVersion: v1\nkind: Status\n", "unsupported resource type *v1.Status"),
        (
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n",
            "unsupported resource type *v1.ValidatingAdmissionPolicy",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingWebhookConfiguration\n",
            "unsupported resource type *v1beta1.MutatingWebhookConfiguration",
        ),
        (
            "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: MutatingWebhookConfiguration\n",
            "no kind \"MutatingWebhookConfiguration\" is registered for version \
             \"admissionregistration.k8s.io/v1alpha1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "- a\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        ),
        (
            "{\"kind\": 5}",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of \
             type string",
        ),
        ("{\"a\": ", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (
            "{}\n{}",
            "couldn't get version/kind; json parse error: invalid character '{' after top-level value",
        ),
    ] {
        refused(text, expect);
    }
    let other = configuration(&json!({"kind": "ValidatingWebhookConfiguration"})).to_string();
    refused(other.as_str(), "unsupported resource type *v1.ValidatingWebhookConfiguration");
    assert_eq!(load(Phase::Validating, &[file("a.json", other)]).unwrap().configurations.len(), 1);
}

/// Rule: LOAD-12.
#[test]
fn unknown_and_duplicate_fields_are_rejected() {
    let text = configuration(&json!({})).to_string();
    let and = |more: &str| format!("{}, {more}}}", text.strip_suffix('}').unwrap());
    refused(
        and(r#""foo": 1, "bar": {"x": 1, "x": 2}, "foo": 2"#),
        "strict decoding error: unknown field \"foo\", unknown field \"bar\"",
    );
    refused(
        and(r#""kind": "MutatingWebhookConfiguration""#),
        "strict decoding error: duplicate field \"kind\"",
    );
    refused(
        text.replace("\"webhooks\"", "\"Webhooks\""),
        "strict decoding error: unknown field \"Webhooks\"",
    );
    refused(text.replace("\"kind\"", "\"Kind\""), "strict decoding error: unknown field \"Kind\"");
    refused(
        with_webhook(&json!({"foo": 1})).to_string(),
        "strict decoding error: unknown field \"webhooks[0].foo\"",
    );
    refused(
        configuration(&json!({"metadata": {"name": "a.static.k8s.io", "foo": 1}})).to_string(),
        "strict decoding error: unknown field \"metadata.foo\"",
    );
    refused(
        format!("{YAML}metadata: {{name: a.static.k8s.io}}\nzoo: 1\nfoo: 1\nfoo: 2\n"),
        "strict decoding error: yaml: unmarshal errors:\n  line 6: key \"foo\" already set in map, unknown field \
         \"foo\", unknown field \"zoo\"",
    );
    let validating = configuration(&json!({
        "kind": "ValidatingWebhookConfiguration", "webhooks": [webhook(&json!({"reinvocationPolicy": "Never"}))],
    }));
    let error = load(Phase::Validating, &[file("a.yaml", validating.to_string())]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error loading /d/a.yaml: strict decoding error: unknown field \"webhooks[0].reinvocationPolicy\""
    );
}

/// Rule: LOAD-12.
#[test]
fn fields_of_the_wrong_type_are_rejected_with_gos_error() {
    let number = "json: cannot unmarshal number into Go struct field";
    for (object, expect) in [
        (with_webhook(&json!({"name": 5})), format!("{number} MutatingWebhook.webhooks.name of type string")),
        (
            configuration(&json!({"metadata": 5})),
            format!("{number} MutatingWebhookConfiguration.metadata of type v1.ObjectMeta"),
        ),
        (
            configuration(&json!({"metadata": {"name": 5}})),
            format!("{number} ObjectMeta.metadata.name of type string"),
        ),
        (
            with_webhook(&json!({"clientConfig": {"url": "https://x/", "caBundle": "###"}})),
            "illegal base64 data at input byte 0".to_owned(),
        ),
    ] {
        refused(object.to_string(), &expect);
    }
    refused(
        format!("{YAML}metadata: {{name: 5}}\n"),
        &format!("{number} ObjectMeta.metadata.name of type string"),
    );
    refused(
        format!("{YAML}metadata: {{name: yes}}\n"),
        "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
    );
}

/// Rule: LOAD-12.
#[test]
fn a_manifest_must_be_valid_and_have_a_name_and_urls() {
    let of = |name: &str, what: &str| format!("MutatingWebhookConfiguration \"{name}\": {what}");
    let static_name = "a.static.k8s.io";
    for (object, expect) in [
        (
            configuration(&json!({"metadata": null})),
            of("", "metadata.name: Required value: name or generateName is required"),
        ),
        (
            configuration(&json!({"metadata": {"name": "a"}})),
            "\"a\" in file \"/d/a.yaml\" must have a name ending with \".static.k8s.io\"".to_owned(),
        ),
        (
            with_webhook(&json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}})),
            "webhook \"w.example.com\" in \"a.static.k8s.io\" (file \"/d/a.yaml\"): clientConfig.service is not \
             supported for static manifests; use clientConfig.url instead"
                .to_owned(),
        ),
        (
            with_webhook(&json!({"clientConfig": {}})),
            of(static_name, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
        ),
        (
            with_webhook(&json!({"sideEffects": null, "admissionReviewVersions": null})),
            of(
                static_name,
                "[webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun, \
                 webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1]",
            ),
        ),
        (
            with_webhook(&json!({"sideEffects": "Some"})),
            of(
                static_name,
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
        ),
        (
            with_webhook(&json!({"matchConditions": [{"name": "a", "expression": "nonsense"}]})),
            of(
                static_name,
                "webhooks[0].matchConditions[0].expression: Invalid value: \"nonsense\": compilation failed: ERROR: \
                 <input>:1:1: undeclared reference to 'nonsense' (in container '')\n | nonsense\n | ^",
            ),
        ),
    ] {
        refused(object.to_string(), &expect);
    }
    let twice = configuration(&json!({})).to_string();
    refused(
        format!("{twice}\n---\n{twice}\n"),
        "duplicate name \"a.static.k8s.io\" found in file \"/d/a.yaml\" (previously seen in \"/d/a.yaml\")",
    );
}

/// Rule: LOAD-11.
#[test]
fn lists_are_read() {
    let one = configuration(&json!({}));
    let other = configuration(&json!({"metadata": {"name": "b.static.k8s.io"}}));
    let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "items": items});
    let typed = |items: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList",
            "items": items,
        })
    };
    let ids = ["a.static.k8s.io/w.example.com/0", "b.static.k8s.io/w.example.com/0"];
    for both in [
        list(json!([other, one])),
        list(json!([list(json!([other])), typed(json!([one]))])),
        typed(json!([other, configuration(&json!({"kind": "Pod", "apiVersion": "v7"}))])),
    ] {
        assert_eq!(names(&load_text(both.to_string()).unwrap()), ids, "{both}");
    }
    for none in [list(json!([])), list(json!(null)), typed(json!([]))] {
        assert_eq!(load_text(none.to_string()).unwrap().webhooks, [], "{none}");
    }
    let number = "json: cannot unmarshal number into Go struct field";
    for (list, expect) in [
        (list(json!(5)), format!("{number} List.items of type []runtime.RawExtension")),
        (
            list(json!([null])),
            "failed to decode list item: Object 'Kind' is missing in ''".to_owned(),
        ),
        (
            list(json!([list(json!([{"apiVersion": "v1"}]))])),
            "failed to decode list item: Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'".to_owned(),
        ),
        (
            list(json!([configuration(&json!({"foo": 1}))])),
            "failed to decode list item: strict decoding error: unknown field \"foo\"".to_owned(),
        ),
        (
            list(json!([one, configuration(&json!({"kind": "ValidatingWebhookConfiguration"}))])),
            "unsupported resource type *v1.ValidatingWebhookConfiguration".to_owned(),
        ),
        (typed(json!(5)), format!("{number} MutatingWebhookConfigurationList.items of type []v1.MutatingWebhookConfiguration")),
        (typed(json!([5])), format!("{number} MutatingWebhookConfigurationList.items of type v1.MutatingWebhookConfiguration")),
        (typed(json!([with_webhook(&json!({"name": 5}))])), format!("{number} MutatingWebhook.items.webhooks.name of type string")),
        (
            typed(json!([configuration(&json!({"kind": 5}))])),
            format!("{number} MutatingWebhookConfiguration.items.TypeMeta.kind of type string"),
        ),
        (
            typed(json!([configuration(&json!({"metadata": {"labels": 5}}))])),
            format!("{number} ObjectMeta.items.metadata.labels of type map[string]string"),
        ),
        (
            typed(json!([configuration(&json!({"foo": 1}))])),
            "strict decoding error: unknown field \"items[0].foo\"".to_owned(),
        ),
        (
            typed(json!([null])),
            "MutatingWebhookConfiguration \"\": metadata.name: Required value: name or generateName is required"
                .to_owned(),
        ),
        // All configurations are validated before the name of the first one is checked.
        (
            typed(json!([configuration(&json!({"metadata": {"name": "a"}})), with_webhook(&json!({"sideEffects": null}))])),
            "MutatingWebhookConfiguration \"a.static.k8s.io\": webhooks[0].sideEffects: Required value: must specify \
             one of None, NoneOnDryRun"
                .to_owned(),
        ),
    ] {
        refused(list.to_string(), &expect);
    }
}

/// Rule: LOAD-11, LOAD-13.
#[test]
fn files_are_read_in_order_and_configurations_sorted_by_name() {
    let of = |name: &str| {
        configuration(&json!({"metadata": {"name": format!("{name}.static.k8s.io")}})).to_string()
    };
    let files = [
        file("1.json", of("c")),
        file("2.yaml", ""),
        file("3.yml", format!("\n{}\n---\n{}", of("b"), of("a"))),
    ];
    let manifests = load(Phase::Mutating, &files).unwrap();
    let ids = ["a", "b", "c"].map(|name| format!("{name}.static.k8s.io/w.example.com/0"));
    assert_eq!(names(&manifests), ids);
    assert!(manifests.webhooks.iter().all(|webhook| webhook.source == config::Source::Manifest));
    let again = load(Phase::Mutating, &[file("1.json", of("a")), file("2.json", of("a"))]).unwrap_err();
    assert_eq!(
        again.to_string(),
        "error loading /d/2.json: duplicate name \"a.static.k8s.io\" found in file \"/d/2.json\" (previously seen in \
         \"/d/1.json\")"
    );
}

#[test]
fn documents_are_read_as_go_reads_them() {
    let yaml = format!("{YAML}metadata: {{name: a.static.k8s.io}}\n");
    for text in [
        format!("{yaml}...\n"),
        format!("{yaml}...\n{}", yaml.replace("a.static", "b.static")),
        format!("\u{feff}{yaml}"),
        yaml.replace('\n', "\r\n"),
    ] {
        assert_eq!(load_text(text.as_str()).unwrap().configurations.len(), 1, "{text:?}");
    }
    let mut bytes =
        configuration(&json!({"metadata": {"name": "a.static.k8s.io", "annotations": {"a": "X"}}}))
            .to_string()
            .into_bytes();
    bytes.iter_mut().filter(|byte| **byte == b'X').for_each(|byte| *byte = 0xff);
    assert_eq!(load_text(bytes).unwrap().configurations.len(), 1);
}

/// Rule: LOAD-14.
#[test]
fn the_hash_is_of_the_contents() {
    // printf 'x\0' | sha256sum
    let x = "sha256:14f825b2bbc32dd8d196367fa8776873069c12a8954d8da7513aa7704ddd09eb";
    assert_eq!(hash(&[]), "");
    assert_eq!(hash(&[file("a", "")]), "");
    assert_eq!(hash(&[file("a", "x")]), x);
    assert_eq!(hash(&[file("a", "x")]), hash(&[file("b", "x"), file("c", "")]));
    assert_ne!(hash(&[file("a", "xy")]), hash(&[file("a", "x"), file("b", "y")]));
}

#[test]
fn unsupported_manifests_are_reported() {
    for (text, expect) in [
        ("k8s\0\n".to_owned(), "/d/a.yaml: a manifest in protobuf: write it as YAML or JSON"),
        (
            configuration(&json!({"metadata": {"name": "a.static.k8s.io", "managedFields": [{}]}}))
                .to_string(),
            "/d/a.yaml: metadata.managedFields in a manifest",
        ),
    ] {
        let error = load_text(text).unwrap_err();
        let ManifestError::Unsupported(Unsupported { what }) = error else { panic!("{error}") };
        assert_eq!(what, expect);
    }
}

/// Rule: LOAD-11.
#[test]
fn manifests_are_recognized_by_extension() {
    for (name, expect) in [
        ("a.yaml", true),
        ("a.YmL", true),
        ("a.JSON", true),
        (".yaml", true),
        ("..data.yaml", true),
        ("a.yaml.bak", false),
        ("yaml", false),
        ("a.txt", false),
    ] {
        assert_eq!(is_manifest(name), expect, "{name}");
    }
}
