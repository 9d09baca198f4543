//! What to change when a check reports a finding, and where the check is documented.

/// The folder of the documentation in the repository and in the book.
const DOCUMENTATION: &str = "docs/reference";

/// Returns the place of a check of `admit verify` in the documentation.
pub(crate) fn verify_docs(id: &str) -> String {
    format!("{DOCUMENTATION}/checks.md#{}", id.to_lowercase())
}

/// Returns the place of a check of `admit lint` in the documentation.
pub(crate) fn lint_docs(id: &str) -> String {
    format!("{DOCUMENTATION}/lint-checks.md#{}", id.to_lowercase())
}

/// Returns what to change in the webhook or in its configuration.
pub(crate) fn help(id: &str) -> Option<&'static str> {
    HELP.iter().find(|(known, _)| known.eq_ignore_ascii_case(id)).map(|(_, help)| *help)
}

const HELP: &[(&str, &str)] = &[
    ("L01", "change the field as the message says"),
    ("L02", "correct or remove the field; `kubectl explain` lists the fields of the kind"),
    (
        "L03",
        "set apiVersion to admissionregistration.k8s.io/v1, and set the fields whose defaults differ explicitly",
    ),
    ("L04", "use the group, version, and plural name that `kubectl api-resources` lists"),
    (
        "L05",
        "list the operations, groups, and resources that the webhook handles, and exclude namespaces with a \
         namespaceSelector",
    ),
    ("L06", "set timeoutSeconds to 10 or less"),
    (
        "L07",
        "set caBundle to the PEM certificate of the CA that issued the serving certificate, encoded as Base64",
    ),
    ("L08", "correct the name, the namespace, or the port of clientConfig.service"),
    ("L09", "set reinvocationPolicy: IfNeeded if the webhook depends on what later webhooks change"),
    ("L10", "give each configuration its own name"),
    ("V01", "look for the webhook's own changes first, and return no patch if the object already has them"),
    (
        "V02",
        "handle every container and volume on each call; do not return early because one of them is the webhook's own",
    ),
    ("V03", "patch single items, such as `add /spec/containers/-`, instead of replacing a whole list or map"),
    (
        "V04",
        "accept and keep the fields that the API server and its controllers set, such as nodeName, tolerations, and \
         the volume with the service account token",
    ),
    ("V05", "make the webhooks agree on the fields that they share, so that none changes the final object"),
    ("V06", "make the patch independent of what other webhooks add"),
    ("V07", "keep the values that other webhooks set once the webhook's own change is in place"),
    ("V08", "set reinvocationPolicy: IfNeeded"),
    (
        "V09",
        "handle updates like creations, and return no patch if the stored object already has the changes",
    ),
    ("V10", "set a field only if it is absent, instead of overwriting what its owner writes"),
    (
        "V11",
        "derive generated values from the object, not from random numbers, the time, or the request's uid",
    ),
    ("V12", "keep the state of each request in local variables, and share nothing that is written"),
    (
        "V13",
        "do not decide by the user, managedFields, creationTimestamp, or the order of members, unless that is the \
         purpose of the webhook",
    ),
    (
        "V14",
        "patch the raw JSON of the object instead of encoding typed structs again, and ignore unknown fields",
    ),
    (
        "V15",
        "add the missing map or list first, such as `add /metadata/annotations {}`, and then the entry in it",
    ),
    ("V16", "use replace and remove only for paths that exist, and give each add and replace a value"),
    ("V17", "write one patch operation for each field or item that the webhook changes"),
    ("V18", "leave the identity, managedFields, and status of the object as they are"),
    ("V19", "return only objects that the API server accepts: known fields, and each key once in a list"),
    ("V20", "return no patch if nothing changes"),
    ("V21", "allow pods with the annotation kubernetes.io/config.mirror, without a patch"),
    (
        "V22",
        "set apiVersion, kind, response.uid, and response.allowed in every response, including those for errors",
    ),
    (
        "V23",
        "list only supported versions in admissionReviewVersions, and answer in the version of the request",
    ),
    (
        "V24",
        "return patch, in standard Base64, together with patchType: JSONPatch, and only from mutating webhooks",
    ),
    (
        "V25",
        "set status.message to a sentence for users and status.code to the code of an error, such as 403, without \
         internal details",
    ),
    ("V26", "return few and short warnings, without control characters and without the prefix `Warning:`"),
    ("V27", "use keys without a domain: the API server adds the name of the webhook"),
    ("V28", "answer at the configured URL itself, without a redirect and without Retry-After"),
    ("V29", "read oldObject for DELETE, where object is null, and return no patch"),
    ("V30", "decode the options that CONNECT carries, such as PodExecOptions, and accept missing options"),
    (
        "V31",
        "decode the kind that each subresource carries, such as Scale or Eviction, and change only the status on /status",
    ),
    ("V32", "accept objects without a name: creations may have only generateName"),
    (
        "V33",
        "handle all served versions alike, or set matchPolicy: Equivalent and list one version in the rules",
    ),
    ("V34", "allow updates that only remove a finalizer from an object with a deletionTimestamp"),
    ("V35", "ignore unknown fields of the review"),
    ("V36", "raise the limit for request bodies of the server, and of proxies in front of it"),
    ("V37", "answer what cannot be decoded with HTTP status 400 or a denial, and recover from panics"),
    ("V38", "skip all writes if request.dryRun is true, and answer as in a real run"),
    ("V39", "set sideEffects: NoneOnDryRun and skip writes on dry runs, or do not write"),
    ("V40", "derive the names of created objects from the request, so that a repeated call finds them"),
    ("V41", "do less work per call: cache lookups, keep connections open, or add replicas"),
    ("V42", "cancel the work of a request when its client disconnects or the time in ?timeout= has passed"),
    (
        "V43",
        "serve for some seconds after SIGTERM (a preStop hook that sleeps is enough), and finish the requests in flight",
    ),
    ("V44", "limit the number of concurrent requests, and answer 429 or 503 beyond the limit"),
    (
        "V45",
        "issue a certificate for SERVICE.NAMESPACE.svc from the CA in the caBundle, and renew it in time",
    ),
    ("V46", "reload the certificate when its file changes, and keep both CAs in the caBundle until then"),
    ("V47", "enable TLS 1.2 or later, and HTTP/1.1"),
    ("V48", "exclude the namespace of the webhook with a namespaceSelector"),
    (
        "V49",
        "exclude the namespaces of the other webhooks and of the certificate issuer with a namespaceSelector",
    ),
    (
        "V50",
        "exclude kube-system, kube-node-lease, and leases with a namespaceSelector or with narrower rules",
    ),
    ("V51", "remove the rule"),
    ("V52", "set timeoutSeconds so that the sum is below 30 seconds"),
    ("V53", "name the resources and subresources that the rule is meant to match"),
    (
        "V54",
        "select by namespaceSelector, which the author of an object cannot change, instead of objectSelector",
    ),
    (
        "V55",
        "guard fields that can be absent or null, and try the condition with `admit cel -c FILE -f OBJECT`",
    ),
    ("V56", "make the selectors of the webhooks exclude each other"),
    ("V57", "set the field explicitly"),
    ("V58", "set reinvocationPolicy: IfNeeded, once the webhook is idempotent (V01) and complete (V02)"),
    (
        "V59",
        "keep fields that the other version lacks, for example in an annotation, and restore them on the way back",
    ),
    ("V60", "use new variables for each object of the review"),
    ("V61", "leave the metadata as it is, except for valid labels and annotations"),
    (
        "V62",
        "return the uid of the request, a result, and all objects in their order and in the desired version",
    ),
    ("V63", "do not use the time, random values, or the order of a map in a conversion"),
    ("V64", "return the result Failure with a message for a version that is not supported"),
    ("V65", "return objects that already have the desired version as they are"),
    ("V66", "raise the limit for request bodies, and convert large lists in less than 30 seconds"),
    ("V67", "return the result Failure with a message for an object that cannot be converted"),
];

#[cfg(test)]
mod tests {
    use harness::verify::checks;

    use super::*;

    #[test]
    fn every_check_has_help() {
        let all = checks::ALL.iter().copied().chain(checks::STATIC.iter().map(|(check, _)| *check));
        let without: Vec<&str> = all.map(|check| check.id).filter(|id| help(id).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
    }
}
