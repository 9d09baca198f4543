Feature: Rules
  The rules of a webhook say for which requests it is called: by operation, API group, version, resource and scope. One
  rule that matches in all five is enough.

  Source: Dynamic admission control, "Matching requests: rules"; apiserver
  pkg/admission/plugin/webhook/predicates/rules/rules.go

  Rule: A request must match a rule in every part
    Scenario Outline: A rule for <other> does not match the creation of a config map
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

    Scenario: One of several rules is enough
      Given a validating webhook "policy" for deployments in apps/v1
      And "policy" is also registered for configmaps in v1
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is called once

    Scenario Outline: A rule may list several <things>
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
        | things        | object                                                                                                                                                                                                                  |
        | resources     | {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}                                                                                                                                                             |
        | groups        | {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web:1}]}}}} |

    Scenario: Two rules that match make one call
      Given a validating webhook "policy" for configmaps in v1
      And "policy" is also registered for configmaps in v1
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is called once

  Rule: Operations are CREATE, UPDATE, DELETE and CONNECT, or all of them
    Scenario Outline: A webhook for <operations> is <seen> a change
      Given a config map "settings" exists
      And a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        rules: [{operations: <operations>, apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        """
      When the configmap "settings" gets the label "team=blue"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | operations       | seen           | is called      |
        | [UPDATE]         | called for     | is called once |
        | [CREATE, UPDATE] | called for     | is called once |
        | ["*"]            | called for     | is called once |
        | [CREATE, DELETE] | not called for | is not called  |

  Rule: A subresource is matched by a resource with a slash, and by nothing else
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
    Scenario Outline: A change of the scale <matches> the resources <resources>
      Not on a cluster: there the controller of deployments writes, too, and the webhook is called for that.

      Given a validating webhook "policy" for deployments
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [<resources>]}]
        """
      When the scale of the deployment "web" is patched:
        """yaml
        spec: {replicas: 1}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | resources            | is called      |
        | matches        | deployments/scale    | is called once |
        | matches        | deployments/*        | is called once |
        | matches        | "*/scale"            | is called once |
        | matches        | "*/*"                | is called once |
        | does not match | deployments          | is not called  |
        | does not match | "*"                  | is not called  |
        | does not match | deployments/status   | is not called  |
        | does not match | "*/status"           | is not called  |

    @in-process @envtest
    Scenario Outline: A change of the deployment itself <matches> the resources <resources>
      Not on a cluster: there the controller of deployments writes, too, and the webhook is called for that.

      Given a validating webhook "policy" for deployments
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [apps], apiVersions: [v1], resources: [<resources>]}]
        """
      When the deployment "web" gets the label "team=blue"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | matches        | resources            | is called      |
        | matches        | deployments          | is called once |
        | matches        | "*"                  | is called once |
        | matches        | "*/*"                | is called once |
        | matches        | deployments/*        | is called once |
        | does not match | deployments/scale    | is not called  |
        | does not match | "*/status"           | is not called  |

  Rule: The review of a subresource names it, and its object is of the subresource's kind
    Scenario: A new scale
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
      When the scale of the deployment "web" is patched:
        """yaml
        spec: {replicas: 1}
        """
      Then the request is admitted
      And the first review of "policy" contains:
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

  Rule: A scope limits a rule to objects in namespaces, or to those outside
    Source: Dynamic admission control, "Matching requests: rules"; KEP-492, "Scope"

    Scenario Outline: A config map is <seen> with the scope <scope>
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
        | seen     | scope      | is called      |
        | seen     | Namespaced | is called once |
        | seen     | *          | is called once |
        | not seen | Cluster    | is not called  |

    @serial
    Scenario Outline: An ingress class is <seen> with the scope <scope>
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
        | seen     | scope      | is called      |
        | seen     | Cluster    | is called once |
        | seen     | *          | is called once |
        | not seen | Namespaced | is not called  |

    @serial
    Scenario Outline: A namespace is an object of the cluster: the scope <scope> <sees> it
      Given the webhooks are called for the namespace "<namespace>", too
      And a validating webhook "policy" for namespaces
      And "policy" is configured with:
        """yaml
        rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [namespaces], scope: <scope>}]
        """
      When the namespace "<namespace>" gets the label "team=blue"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | scope      | sees         | namespace        | is called      |
        | Cluster    | sees         | admit-cluster    | is called once |
        | Namespaced | does not see | admit-namespaced | is not called  |

  Rule: No rule matches reviews of tokens and of access
    Source: kubernetes pkg/kubeapiserver/admission/exclusion/resources.go

    Scenario: A rule for pods and SelfSubjectAccessReviews matches pods only
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

  Rule: Rules that contradict themselves are refused
    Source: Dynamic admission control, "Matching requests: rules"; KEP-492, "Validations"

    Scenario Outline: A rule with <what> is refused
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
      Then the request is refused with 422 Invalid
      And the message contains <because>

      Examples:
        | what                        | rule                                                                       | because                                               |
        | all operations and one more | operations: ["*", CREATE], apiGroups: [""], resources: [pods]              | "if '*' is present, must not specify other operations" |
        | an operation in lower case  | operations: [create], apiGroups: [""], resources: [pods]                   | 'operations[0]: Unsupported value: "create"' |
        | all groups and one more     | operations: [CREATE], apiGroups: ["*", apps], resources: [pods]            | "if '*' is present, must not specify other API groups" |
        | everything and one more     | operations: [CREATE], apiGroups: [""], resources: ["*/*", pods]            | "if '*/*' is present, must not specify other resources" |
        | no resources                | operations: [CREATE], apiGroups: [""], resources: []                       | "rules[0].resources: Required value" |
        | a scope of its own          | operations: [CREATE], apiGroups: [""], resources: [pods], scope: Global    | 'supported values: "*", "Cluster", "Namespaced"' |
