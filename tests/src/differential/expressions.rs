//! Generates random boolean expressions about everything that a match condition can use.
//!
//! The types of all parts match, so that a server accepts the expressions.
//!
//! Not covered: results that vary between runs or are not supported, such as the order of map keys, `managedFields`,
//! and therefore whole objects.

use serde_json::json;

use super::situation::{GROUP, Generator};

/// The paths to string fields of some kinds.
const TEXTS: [&str; 16] = [
    "metadata.name",
    "metadata.name",
    "metadata.namespace",
    "metadata.labels.env",
    "metadata.labels.team",
    "metadata.labels[\"example.com/tier\"]",
    "metadata.annotations.k",
    "metadata.annotations[\"env\"]",
    "metadata.generateName",
    "kind",
    "apiVersion",
    "data.k",
    "data[\"k\"]",
    "spec.k",
    "spec.holderIdentity",
    "status.seen",
];
/// The paths to number fields of some kinds.
const NUMBERS: [&str; 9] = [
    "spec.size",
    "spec.replicas",
    "spec.maxReplicas",
    "spec.minReplicas",
    "spec.maxUnavailable",
    "spec.targetCPUUtilizationPercentage",
    "metadata.generation",
    "status.observedGeneration",
    "metadata.labels.env",
];
/// The paths to lists and maps of some kinds.
const COLLECTIONS: [&str; 8] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "metadata.ownerReferences",
    "data",
    "spec.containers",
    "spec.template.spec.containers",
    "command",
];
/// The paths to fields that expressions compare as a whole.
const PARTS: [&str; 7] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.finalizers",
    "data",
    "spec",
    "spec.template",
    "spec.metrics",
];
/// The paths to fields that are not strings, numbers, or collections, and to fields that no object has.
const OTHERS: [&str; 10] = [
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.resourceVersion",
    "metadata.uid",
    "metadata.labels.env",
    "spec.paused",
    "spec.selector.matchLabels.app",
    "status",
    "none",
    "spec.none.none",
];
const VERBS: [&str; 6] = ["get", "create", "update", "patch", "delete", "breakglass"];
const RESOURCES: [&str; 4] = ["configmaps", "widgets", "deployments", "pods"];

/// Returns a boolean expression with `&&`, `||`, `!`, and `? :`, nested up to `depth`.
pub(crate) fn boolean(generator: &mut Generator<'_>, depth: usize) -> String {
    if depth > 0 {
        let mut part = || boolean(generator, depth - 1);
        let (one, other, third) = (part(), part(), part());
        return match generator.random.below(10) {
            0..=3 => format!("({one}) && ({other})"),
            4..=6 => format!("({one}) || ({other})"),
            7 | 8 => format!("!({one})"),
            _ => format!("({one}) ? ({other}) : ({third})"),
        };
    }
    match generator.random.below(100) {
        0..=24 => of_texts(generator),
        25..=36 => of_presence(generator),
        37..=46 => of_the_request(generator),
        47..=54 => of_numbers(generator),
        55..=66 => of_collections(generator),
        67..=74 => of_nulls_and_parts(generator),
        75..=82 => of_the_user(generator),
        83..=90 => of_the_authorizer(generator),
        91..=94 => of_types(generator),
        _ => of_conversions(generator),
    }
}

fn object(generator: &mut Generator<'_>) -> &'static str {
    generator.random.weighted(&[(75, "object"), (25, "oldObject")])
}

/// Returns an expression for a member of an object. In some cases, it uses `?`, and its value is optional.
fn optional(object: &str, member: &str) -> String {
    match member.split_once('[') {
        Some((members, key)) => format!("{object}.?{}[?{key}", members.replace('.', ".?")),
        None => format!("{object}.?{}", member.replace('.', ".?")),
    }
}

/// Returns an expression that is or may be a string.
pub(crate) fn text(generator: &mut Generator<'_>) -> String {
    match generator.random.below(20) {
        0..=11 => {
            let (object, member) = (object(generator), generator.random.one_of(&TEXTS));
            if generator.random.chance(40) {
                format!("{}.orValue(\"\")", optional(object, member))
            } else {
                format!("{object}.{member}")
            }
        }
        12..=16 => generator
            .random
            .one_of(&[
                "request.name",
                "request.namespace",
                "request.operation",
                "request.kind.kind",
                "request.kind.group",
                "request.kind.version",
                "request.resource.resource",
                "request.resource.version",
                "request.requestKind.version",
                "request.requestResource.resource",
                "request.subResource",
                "request.requestSubResource",
                "request.userInfo.username",
                "request.userInfo.uid",
                "request.options.fieldManager",
                "request.options.kind",
            ])
            .to_owned(),
        17 => {
            let inner = text(generator);
            let function = generator.random.one_of(&[
                "lowerAscii()",
                "upperAscii()",
                "trim()",
                "charAt(0)",
                "substring(1)",
                "replace(\"a\", \"b\")",
                "split(\"-\")[0]",
            ]);
            format!("{inner}.{function}")
        }
        18 => format!("string({})", text(generator)),
        _ => format!("({} + {})", text(generator), literal(generator)),
    }
}

fn literal(generator: &mut Generator<'_>) -> String {
    let text = match generator.random.below(6) {
        0..=2 => generator.value(),
        3 => generator.random.one_of(&["x", "y", "z", "<ns>"]),
        4 => generator.random.one_of(&["ConfigMap", "Widget", "Pod", "v1", "v2", "CREATE", "status"]),
        _ => generator.random.one_of(&["admin", "jane", "somebody", "CreateOptions", "configmaps", GROUP]),
    };
    json!(text).to_string()
}

/// Returns an expression that is or may be a number.
pub(crate) fn number(generator: &mut Generator<'_>) -> String {
    match generator.random.below(10) {
        0..=4 => {
            let (object, member) = (object(generator), generator.random.one_of(&NUMBERS));
            if generator.random.chance(40) {
                format!("{}.orValue(0)", optional(object, member))
            } else {
                format!("{object}.{member}")
            }
        }
        5 | 6 => format!("size({}.{})", object(generator), generator.random.one_of(&COLLECTIONS)),
        7 => format!("{}.size()", text(generator)),
        8 => "size(request.userInfo.groups)".to_owned(),
        _ => {
            generator.random.one_of(&["request.options.gracePeriodSeconds", "request.name.size()"]).to_owned()
        }
    }
}

fn of_texts(generator: &mut Generator<'_>) -> String {
    let one = text(generator);
    match generator.random.below(12) {
        0..=3 => format!("{one} == {}", literal(generator)),
        4..=6 => format!("{one} != {}", literal(generator)),
        7 => format!("{one} in [{}, {}]", literal(generator), literal(generator)),
        8 => {
            let function = generator.random.one_of(&["startsWith", "endsWith", "contains", "matches"]);
            format!("{one}.{function}({})", literal(generator))
        }
        9 => format!("{one} == {}", text(generator)),
        10 => format!("{one}.matches(\"^[a-z]+$\")"),
        _ => format!("{one} < {}", literal(generator)),
    }
}

fn of_presence(generator: &mut Generator<'_>) -> String {
    let object = object(generator);
    let member = match generator.random.below(4) {
        0 => generator.random.one_of(&TEXTS),
        1 => generator.random.one_of(&COLLECTIONS),
        2 => generator.random.one_of(&NUMBERS),
        _ => generator.random.one_of(&OTHERS),
    };
    if member.contains('[') || generator.random.chance(40) {
        return format!("{}.hasValue()", optional(object, member));
    }
    match generator.random.below(4) {
        0 => format!("!has({object}.{member})"),
        1 => format!("has({object}.{member}) && {object}.{member} == {}", literal(generator)),
        _ => format!("has({object}.{member})"),
    }
}

fn of_the_request(generator: &mut Generator<'_>) -> String {
    let choices = [
        "request.operation in [\"CREATE\", \"UPDATE\"]",
        "request.operation != \"DELETE\"",
        "request.operation == \"CONNECT\" || object != null",
        "request.dryRun",
        "!request.dryRun",
        "has(request.subResource)",
        "has(request.name) && request.name == \"x\"",
        "has(request.namespace)",
        "request.kind == request.requestKind",
        "request.resource == request.requestResource",
        "request.kind.version == \"v1\"",
        "request.requestResource.version != request.kind.version",
        "request.options.dryRun == [\"All\"]",
        "has(request.options.dryRun)",
        "has(request.options.fieldManager)",
        "has(request.options.fieldValidation) && request.options.fieldValidation == \"Strict\"",
        "has(request.options.propagationPolicy) && request.options.propagationPolicy == \"Background\"",
        "has(request.options.preconditions.uid)",
        "request.options.kind.endsWith(\"Options\")",
        "request.options.apiVersion == \"meta.k8s.io/v1\"",
        "dyn(request.options) == null",
        "request.kind.group == \"\"",
    ];
    generator.random.one_of(&choices).to_owned()
}

fn of_numbers(generator: &mut Generator<'_>) -> String {
    let one = number(generator);
    let operator = generator.random.one_of(&["==", "!=", "<", ">", ">="]);
    match generator.random.below(8) {
        0 => format!("{one} + {} {operator} 3", number(generator)),
        1 => format!("{one} % 2 == 0"),
        2 => format!("{one} / {} {operator} 1", number(generator)),
        3 => format!("{one} > 1.5"),
        4 => format!("{one} {operator} {}", number(generator)),
        _ => format!("{one} {operator} {}", generator.random.below(4)),
    }
}

fn of_collections(generator: &mut Generator<'_>) -> String {
    let object = object(generator);
    let value = literal(generator);
    let key = json!(generator.key()).to_string();
    match generator.random.below(14) {
        0 => format!("{object}.metadata.labels.all(k, k.size() < 8)"),
        1 => format!("{object}.metadata.labels.exists(k, {object}.metadata.labels[k] == {value})"),
        2 => format!("{object}.metadata.?labels.orValue({{}}).exists_one(k, k != {key})"),
        3 => format!("{object}.metadata.labels.exists(k, v, v == {value})"),
        4 => format!("{object}.metadata.labels.filter(k, k.contains(\"e\")).size() > 0"),
        5 => format!("has({object}.metadata.labels) && {key} in {object}.metadata.labels"),
        6 => format!("{object}.metadata.?finalizers.orValue([]).exists(f, f.startsWith(\"example.com/\"))"),
        7 => format!("{object}.spec.containers.all(c, c.name.startsWith(\"c\"))"),
        8 => {
            format!("{object}.spec.template.spec.containers.exists(c, has(c.env) || has(c.resources.limits))")
        }
        9 => format!("{object}.spec.containers.map(c, c.name).join(\",\").contains(\"c1\")"),
        10 => format!(
            "{object}.{}.size() > {}",
            generator.random.one_of(&COLLECTIONS),
            generator.random.below(3)
        ),
        11 => format!("{object}.metadata.ownerReferences[0].kind == \"ConfigMap\""),
        12 => format!("sets.contains([\"env\", \"team\"], {object}.metadata.labels.map(k, k))"),
        _ => format!(
            "{object}.spec.containers[{}].image.startsWith(\"example.com/\")",
            generator.random.below(3)
        ),
    }
}

fn of_nulls_and_parts(generator: &mut Generator<'_>) -> String {
    let part = generator.random.one_of(&PARTS);
    match generator.random.below(12) {
        0 => "object == null".to_owned(),
        1 | 2 => "object != null".to_owned(),
        3 => "oldObject == null".to_owned(),
        4 => "oldObject != null".to_owned(),
        5 => "namespaceObject == null".to_owned(),
        6 => format!("namespaceObject.metadata.name == {}", literal(generator)),
        7 => format!("oldObject == null || object.{part} != oldObject.{part}"),
        8 => format!("{} == {}", optional("object", part), optional("oldObject", part)),
        9 => format!("object.{part} == oldObject.{part}"),
        10 => format!("{}.{} == null", object(generator), generator.random.one_of(&OTHERS)),
        _ => "object.metadata.name == oldObject.metadata.name".to_owned(),
    }
}

fn of_the_user(generator: &mut Generator<'_>) -> String {
    let choices = [
        "request.userInfo.username == \"admin\"",
        "request.userInfo.username != \"admin\"",
        "request.userInfo.username.startsWith(\"system:serviceaccount:\")",
        "request.userInfo.username == \"alice-<id>\"",
        "\"system:masters\" in request.userInfo.groups",
        "!(\"system:masters\" in request.userInfo.groups)",
        "request.userInfo.groups.exists(g, g.startsWith(\"devs\"))",
        "request.userInfo.groups.all(g, g.startsWith(\"system:\"))",
        "request.userInfo.groups[0] == \"system:masters\"",
        "request.userInfo.uid == \"admin\"",
        "has(request.userInfo.uid)",
        "has(request.userInfo.extra)",
        "request.userInfo.extra.scopes == [\"one\"]",
        "\"scopes\" in request.userInfo.extra",
        "request.userInfo.extra[\"scopes\"][0].size() == 3",
        "request.userInfo.?extra[?\"scopes\"].hasValue()",
        "size(request.userInfo.groups) == 2",
    ];
    generator.random.one_of(&choices).to_owned()
}

/// Returns an authorizer check. Its type is the decision type of the authorizer library.
pub(crate) fn check(generator: &mut Generator<'_>) -> String {
    let verb = generator.random.one_of(&VERBS);
    if generator.random.chance(45) {
        return format!("authorizer.requestResource.check(\"{verb}\")");
    }
    let mut who = "authorizer".to_owned();
    if generator.random.chance(15) {
        let name = generator.random.one_of(&["robot", "other"]);
        who = format!("{who}.serviceAccount(\"<ns>\", \"{name}\")");
    }
    if generator.random.chance(15) {
        let path = generator.random.one_of(&["/healthz", "/metrics", "/no/such", ""]);
        return format!("{who}.path(\"{path}\").check(\"get\")");
    }
    let resource = generator.random.one_of(&RESOURCES);
    let group = match resource {
        "widgets" => GROUP,
        "deployments" => "apps",
        _ => "",
    };
    let mut what = format!("{who}.group(\"{group}\").resource(\"{resource}\")");
    for (percent, part) in [
        (15, ".subresource(\"status\")"),
        (60, ".namespace(\"<ns>\")"),
        (10, ".namespace(request.namespace)"),
        (20, ".name(\"x\")"),
        (8, ".fieldSelector(\"metadata.name=x\")"),
        (8, ".labelSelector(\"env in (a\")"),
    ] {
        if generator.random.chance(percent) {
            what.push_str(part);
        }
    }
    format!("{what}.check(\"{verb}\")")
}

fn of_the_authorizer(generator: &mut Generator<'_>) -> String {
    let check = check(generator);
    match generator.random.below(12) {
        0..=4 => format!("{check}.allowed()"),
        5..=7 => format!("!{check}.allowed()"),
        8 => format!("{check}.reason() == \"\""),
        9 => format!("{check}.reason().contains(\"Role\")"),
        10 => format!("{check}.errored()"),
        _ => format!("{check}.error() == \"\""),
    }
}

fn of_types(generator: &mut Generator<'_>) -> String {
    let object = object(generator);
    let choices = [
        format!("type({object}.metadata.creationTimestamp) == google.protobuf.Timestamp"),
        format!("type({object}.metadata.creationTimestamp) == string"),
        format!("{object}.metadata.creationTimestamp < timestamp(\"2100-01-01T00:00:00Z\")"),
        format!("{object}.metadata.creationTimestamp.getFullYear() > 2000"),
        format!("string({object}.metadata.creationTimestamp).startsWith(\"20\")"),
        format!("type({object}.spec.size) == int"),
        format!("type({object}.spec.maxUnavailable) == int"),
        format!("type({object}.data.k) == bytes"),
        format!("string({object}.data.k) == \"value\""),
        format!("{object}.data.k == b\"value\""),
        format!("type({object}.metadata.labels) == map"),
        format!("type({object}.metadata.finalizers) == list"),
        format!("type({object}.spec.paused) == bool && {object}.spec.paused"),
        format!(
            "quantity({object}.spec.template.spec.containers[0].resources.requests.cpu).isLessThan(quantity(\"1\"))"
        ),
        format!("{object}.spec.maxUnavailable == \"1\""),
        format!("{object}.spec.size == dyn(\"1\")"),
    ];
    generator.random.one_of(&choices)
}

fn of_conversions(generator: &mut Generator<'_>) -> String {
    let text = text(generator);
    let choices = [
        format!("int({text}) > 0"),
        format!("double({text}) > 0.5"),
        format!("bool({text})"),
        format!("timestamp({text}) > timestamp(\"2020-01-01T00:00:00Z\")"),
        format!("duration({text}) > duration(\"1s\")"),
        format!("quantity({text}).isInteger()"),
        format!("isQuantity({text})"),
        format!("url({text}).getHost() == \"\""),
        format!("isURL({text})"),
        format!("ip({text}).family() == 4"),
        format!("isSemver({text})"),
        format!("\"a\".matches({text})"),
        format!("!format.dns1123Label().validate({text}).hasValue()"),
        format!("\"%s-%d\".format([{text}, 1]) == \"x-1\""),
    ];
    generator.random.one_of(&choices)
}
