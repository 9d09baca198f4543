#!/bin/sh
# Writes api-server/src/kinds/discovery.json from a running kube-apiserver of the supported version: the aggregated discovery
# documents of /api and /apis, without values that are specific to that server (resource versions, freshness).
#
#   tools/discovery.sh https://127.0.0.1:6443 TOKEN
#
# A kube-apiserver without controllers and custom resources returns the whole list. Needs curl and jq.
set -eu
server=$1
token=$2
cd "$(dirname "$0")/.."
document() {
    curl --silent --show-error --fail --insecure --header "Authorization: Bearer $token" \
        --header 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' "$server$1"
}
document /api >/tmp/discovery-api.$$
document /apis >/tmp/discovery-apis.$$
jq --slurp --sort-keys --compact-output '
    map(.items) | add
    | map({group: (.metadata.name // ""), versions: [.versions[] | {version, resources: [.resources[]? | del(..|.freshness?)]}]})
    ' /tmp/discovery-api.$$ /tmp/discovery-apis.$$ |
    sed 's/{"resource":/\n&/g' >api-server/src/kinds/discovery.json
rm /tmp/discovery-api.$$ /tmp/discovery-apis.$$
