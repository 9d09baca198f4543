//! Lists the resources that decide about admission.

/// A resource that `admit pull` lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    /// The API group; empty for the core group.
    pub(super) group: &'static str,
    /// The API versions, preferred first. Older servers do not serve the first one.
    pub(super) versions: &'static [&'static str],
    /// The name of the resource in URLs.
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    /// What is unknown about admission if the resource cannot be read.
    pub(super) uncertain: &'static str,
}

impl Resource {
    /// Returns the name with the group, such as `roles.rbac.authorization.k8s.io`.
    pub(super) fn name(&self) -> String {
        resource_name(self.group, self.plural)
    }
}

/// Returns the name of a resource with its group; without a dot for the core group.
pub(super) fn resource_name(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// Returns the URL path of an API version.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

const V1: &[&str] = &["v1"];
const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

const fn cluster(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    uncertain: &'static str,
) -> Resource {
    Resource { group, versions: V1, plural, kind, namespaced: false, uncertain }
}

const fn namespaced(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    uncertain: &'static str,
) -> Resource {
    Resource { namespaced: true, ..cluster(group, plural, kind, uncertain) }
}

/// The namespaces, which are read first.
pub(super) const NAMESPACES: Resource = cluster(
    "",
    "namespaces",
    "Namespace",
    "which namespaces exist, and which webhooks, policies, and Pod Security levels apply to them",
);

/// The Services that webhooks name. Only these are read.
pub(super) const SERVICES: Resource = namespaced(
    "",
    "services",
    "Service",
    "whether the API server can route calls to the webhooks of this Service",
);

/// The endpoints of [`SERVICES`].
pub(super) const ENDPOINT_SLICES: Resource = namespaced(
    "discovery.k8s.io",
    "endpointslices",
    "EndpointSlice",
    "whether the webhooks of this Service have endpoints",
);

/// What is unknown about admission if the params of a policy cannot be read.
pub(super) const PARAMS_UNCERTAIN: &str = "what the policies with these params decide";

const MUTATING_POLICY: &[&str] = &["v1", "v1beta1", "v1alpha1"];
const VALIDATING_POLICY: &[&str] = &["v1", "v1beta1"];
const DECIDED: &str = "what mutating admission policies change";
const CHECKED: &str = "what validating admission policies deny";
const ACCESS: &str = "what expressions of conditions and policies that use `authorizer` return";

/// The resources to list in addition to [`NAMESPACES`], in order.
pub(super) const RESOURCES: &[Resource] = &[
    cluster(
        ADMISSION,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        "which mutating webhooks the API server calls",
    ),
    cluster(
        ADMISSION,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "which validating webhooks the API server calls",
    ),
    Resource {
        versions: MUTATING_POLICY,
        ..cluster(ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", DECIDED)
    },
    Resource {
        versions: MUTATING_POLICY,
        ..cluster(ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", DECIDED)
    },
    Resource {
        versions: VALIDATING_POLICY,
        ..cluster(ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", CHECKED)
    },
    Resource {
        versions: VALIDATING_POLICY,
        ..cluster(ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", CHECKED)
    },
    cluster(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "which custom resources exist, with their schemas and conversion webhooks",
    ),
    cluster(RBAC, "clusterroles", "ClusterRole", ACCESS),
    cluster(RBAC, "clusterrolebindings", "ClusterRoleBinding", ACCESS),
    namespaced(RBAC, "roles", "Role", ACCESS),
    namespaced(RBAC, "rolebindings", "RoleBinding", ACCESS),
    namespaced(
        "",
        "limitranges",
        "LimitRange",
        "default, minimum, and maximum resources of containers, Pods, and claims",
    ),
    namespaced("", "resourcequotas", "ResourceQuota", "whether an object exceeds a quota"),
    namespaced("", "serviceaccounts", "ServiceAccount", "whether the service account of a Pod exists"),
    cluster(
        "scheduling.k8s.io",
        "priorityclasses",
        "PriorityClass",
        "whether the priority class of a Pod exists, and its default priority",
    ),
    cluster(
        "storage.k8s.io",
        "storageclasses",
        "StorageClass",
        "the default storage class of claims, and whether a claim can be resized",
    ),
    cluster(
        "node.k8s.io",
        "runtimeclasses",
        "RuntimeClass",
        "whether the runtime class of a Pod exists, and its overhead",
    ),
    cluster("networking.k8s.io", "ingressclasses", "IngressClass", "the default class of Ingresses"),
];
