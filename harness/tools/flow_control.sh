#!/bin/sh
# Writes api-server/src/kinds/flow-control.json from a running kube-apiserver of the supported version: the
# PriorityLevelConfigurations and FlowSchemas that it creates, without the fields that it sets when it stores them.
#
#   tools/flow_control.sh https://127.0.0.1:6443 TOKEN
#
# Needs curl and jq.
set -eu
server=$1
token=$2
cd "$(dirname "$0")/.."
list() {
    curl --silent --show-error --fail --insecure --header "Authorization: Bearer $token" \
        "$server/apis/flowcontrol.apiserver.k8s.io/v1/$1"
}
{
    list prioritylevelconfigurations | jq '{kind: "PriorityLevelConfiguration", items}'
    list flowschemas | jq '{kind: "FlowSchema", items}'
} | jq --slurp --sort-keys --compact-output '
    [.[] | .kind as $kind | .items[] | {
        apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind: $kind,
        metadata: {name: .metadata.name, annotations: .metadata.annotations, generation: 1}, spec
    }]' | sed 's/{"apiVersion":/\n&/g' >api-server/src/kinds/flow-control.json
