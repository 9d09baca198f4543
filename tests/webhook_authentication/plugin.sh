#!/bin/sh
# A credential plugin: counts how often it ran, and prints what its first argument names.
# The PATH of the tests may lack the commands below.
PATH=$PATH:/usr/bin:/bin
folder=$(dirname "$0")
name=$1
printf 'x' >> "$folder/runs-$name"
runs=$(wc -c < "$folder/runs-$name" | tr -d ' ')
answer() {
  printf '{"apiVersion":"%s","kind":"ExecCredential","status":{%s}}\n' "$1" "$2"
}
v1=client.authentication.k8s.io/v1
case $2 in
  token) answer $v1 "\"token\":\"$WHO-$3-$4\"" ;;
  yaml) printf 'apiVersion: %s\nkind: ExecCredential\nstatus:\n  token: yaml\n' $v1 ;;
  beta) answer client.authentication.k8s.io/v1beta1 '"token":"beta"' ;;
  count) answer $v1 "\"token\":\"run-$runs\"" ;;
  expired) answer $v1 "\"token\":\"run-$runs\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"" ;;
  good) answer $v1 "\"token\":\"run-$runs\",\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"" ;;
  info-beta) answer client.authentication.k8s.io/v1beta1 "\"token\":\"$(printf '%s' "$KUBERNETES_EXEC_INFO" | base64 | tr -d '\n')\"" ;;
  info) answer $v1 "\"token\":\"$(printf '%s' "$KUBERNETES_EXEC_INFO" | base64 | tr -d '\n')\"" ;;
  late) sleep 2; answer $v1 "\"token\":\"run-$runs\"" ;;
  exit) answer $v1 '"token":"t"'; exit 7 ;;
  killed) kill -9 $$ ;;
  file) cat "$folder/$3" ;;
  print) printf '%s' "$3" ;;
  status) answer $v1 "$3" ;;
esac
