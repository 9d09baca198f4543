Feature: Rules
  The rules of a webhook choose requests by operation, API group, version, resource, and scope. A request matches if one
  rule matches in all five.

  Source: Dynamic admission control, "Matching requests: rules"; apiserver
  pkg/admission/plugin/webhook/predicates/rules/rules.go

  Rule: A request must match all parts of a rule
    Scenario Outline: A rule for <other> does not match the creation of a ConfigMap
      Given a validating webhook "policy" for configmaps in v1
      And "policy" is configured with:
        """yaml
        rules:
        - {operations: [<operation>], apiGroups: [<group>], apiVersions: [<version>], resources: [<resource>], scope: <scope>}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is not called

      Examples:
        | other             | operation | group | version | resource   | scope      |
        | another operation | UPDATE    | ""    | v1      | configmaps | Namespaced |
        | another group     | CREATE    | apps  | v1      | configmaps | Namespaced |
        | another version   | CREATE    | ""    | v2      | configmaps | Namespaced |
        | another resource  | CREATE    | ""    | v1      | secrets    | Namespaced |
        | another scope     | CREATE    | ""    | v1      | configmaps | Cluster    |

    Scenario: One matching rule is enough
      Given a validating webhook "policy" for deployments in apps/v1
      And "policy" also matches configmaps in v1
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is called once

    Scenario Outline: A rule can list several <things>
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        rules: [{operations: [CREATE, UPDATE], apiGroups: ["", apps], apiVersions: [v1, v1beta1], resources: [configmaps, deployments]}]
        """
      When this object is created:
        """yaml
        <object>
        """
      Then the request is admitted
      And "policy" is called once

      Examples:
        | things    | object                                                                                                                                                                                                                            |
        | resources | {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}                                                                                                                                                                     |
        | groups    | {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web:1}]}}}} |

    Scenario: Two matching rules cause one call
      Given a validating webhook "policy" for configmaps in v1
      And "policy" also matches configmaps in v1
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is called once

  Rule: An operation is CREATE, UPDATE, DELETE, CONNECT, or * for all of them
    Scenario Outline: A webhook for the operations <operations> is <matches> for an update
      Given a ConfigMap "settings" exists
      And a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        rules: [{operations: <operations>, apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        """
      When the label "team=blue" is added to the configmap "settings"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | operations       | matches    | is called      |
        | [UPDATE]         | called     | is called once |
        | [CREATE, UPDATE] | called     | is called once |
        | ["*"]            | called     | is called once |
        | [CREATE, DELETE] | not called | is not called  |

  Rule: A subresource matches only resources with a slash
    Background:
      Given this object exists:
        """yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 0
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: example.com/web:1}]}
        """

    @in-process @envtest
    Scenario Outline: An update of the scale subresource <matches> the resources <resources>
      Not on a cluster: there the deployment controller also writes, and the webhook is called for its requests.

      Given a validating webhook "policy" for deployments
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [<resources>]}]
        """
      When the scale subresource of the deployment "web" is patched:
        """yaml
        spec: {replicas: 1}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | resources          | is called      |
        | matches        | deployments/scale  | is called once |
        | matches        | deployments/*      | is called once |
        | matches        | "*/scale"          | is called once |
        | matches        | "*/*"              | is called once |
        | does not match | deployments        | is not called  |
        | does not match | "*"                | is not called  |
        | does not match | deployments/status | is not called  |
        | does not match | "*/status"         | is not called  |

    @in-process @envtest
    Scenario Outline: An update of the deployment <matches> the resources <resources>
      Not on a cluster: there the deployment controller also writes, and the webhook is called for its requests.

      Given a validating webhook "policy" for deployments
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [<resources>]}]
        """
      When the label "team=blue" is added to the deployment "web"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | resources         | is called      |
        | matches        | deployments       | is called once |
        | matches        | "*"               | is called once |
        | matches        | "*/*"             | is called once |
        | matches        | deployments/*     | is called once |
        | does not match | deployments/scale | is not called  |
        | does not match | "*/status"        | is not called  |

  Rule: The review of a subresource names it and contains an object of the subresource's kind
    Scenario: The review of a scale update contains a Scale
      Given this object exists:
        """yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 0
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: example.com/web:1}]}
        """
      And a validating webhook "policy" for deployments/scale in apps/v1
      When the scale subresource of the deployment "web" is patched:
        """yaml
        spec: {replicas: 1}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          kind: {group: autoscaling, version: v1, kind: Scale}
          resource: {group: apps, version: v1, resource: deployments}
          subResource: scale
          requestKind: {group: autoscaling, version: v1, kind: Scale}
          requestResource: {group: apps, version: v1, resource: deployments}
          requestSubResource: scale
          name: web
          operation: UPDATE
          object: {apiVersion: autoscaling/v1, kind: Scale, spec: {replicas: 1}}
          oldObject: {apiVersion: autoscaling/v1, kind: Scale, spec: {}}
        """

  Rule: A scope limits a rule to namespaced or to cluster-scoped objects
    Source: Dynamic admission control, "Matching requests: rules"; KEP-492, "Scope"

    Scenario Outline: A ConfigMap <matches> the scope <scope>
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["*"], scope: "<scope>"}]
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | scope      | is called      |
        | matches        | Namespaced | is called once |
        | matches        | *          | is called once |
        | does not match | Cluster    | is not called  |

    @serial
    Scenario Outline: An IngressClass <matches> the scope <scope>
      Given a validating webhook "policy" for ingressclasses
      And "policy" selects objects with the label "admit.example.com/seen=scope"
      And "policy" is configured with:
        """yaml
        rules: [{operations: [CREATE], apiGroups: [networking.k8s.io], apiVersions: [v1], resources: ["*"], scope: "<scope>"}]
        """
      When this object is created:
        """yaml
        apiVersion: networking.k8s.io/v1
        kind: IngressClass
        metadata: {name: admit-scope, labels: {admit.example.com/seen: scope}}
        spec: {controller: admit.example.com/none}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | scope      | is called      |
        | matches        | Cluster    | is called once |
        | matches        | *          | is called once |
        | does not match | Namespaced | is not called  |

    @serial
    Scenario Outline: A Namespace is cluster-scoped: it <matches> the scope <scope>
      Given webhooks are also called in the namespace "<namespace>"
      And a validating webhook "policy" for namespaces
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [namespaces], scope: <scope>}]
        """
      When the label "team=blue" is added to the namespace "<namespace>"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | scope      | matches        | namespace        | is called      |
        | Cluster    | matches        | admit-cluster    | is called once |
        | Namespaced | does not match | admit-namespaced | is not called  |

  Rule: Rules do not match token and access reviews
    Source: kubernetes pkg/kubeapiserver/admission/exclusion/resources.go

    Scenario: A rule for pods and SelfSubjectAccessReviews matches only pods
      Given a validating webhook "policy" for pods
      And "policy" is configured with:
        """yaml
        rules:
        - operations: [CREATE]
          apiGroups: ["", authorization.k8s.io]
          apiVersions: [v1]
          resources: [pods, selfsubjectaccessreviews]
        """
      When this object is created:
        """yaml
        apiVersion: authorization.k8s.io/v1
        kind: SelfSubjectAccessReview
        spec: {resourceAttributes: {verb: get, resource: pods}}
        """
      Then the request is admitted
      And "policy" is not called
      When a pod is created
      Then "policy" is called once

  Rule: Invalid rules are rejected
    Source: Dynamic admission control, "Matching requests: rules"; KEP-492, "Validations"

    Scenario Outline: A rule with <what> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: rules.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "https://127.0.0.1:9443/"}
          rules: [{apiVersions: [v1], <rule>}]
          namespaceSelector: {matchLabels: {admit.example.com/nowhere: ""}}
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is rejected with 422 Invalid
      And the message contains <because>

      Examples:
        | what                           | rule                                                                    | because                                                 |
        | all operations and another one | operations: ["*", CREATE], apiGroups: [""], resources: [pods]           | "if '*' is present, must not specify other operations"  |
        | an operation in lower case     | operations: [create], apiGroups: [""], resources: [pods]                | 'operations[0]: Unsupported value: "create"'            |
        | all groups and another one     | operations: [CREATE], apiGroups: ["*", apps], resources: [pods]         | "if '*' is present, must not specify other API groups"  |
        | all resources and another one  | operations: [CREATE], apiGroups: [""], resources: ["*/*", pods]         | "if '*/*' is present, must not specify other resources" |
        | no resources                   | operations: [CREATE], apiGroups: [""], resources: []                    | "rules[0].resources: Required value"                    |
        | an unknown scope               | operations: [CREATE], apiGroups: [""], resources: [pods], scope: Global | 'supported values: "*", "Cluster", "Namespaced"'        |
