#!/usr/bin/env bash
# Changes the code that decides about admission, one place at a time, and says which changes no test notices: mutants.sh
# [FILE]..., with files below harness/admission/src, such as `reinvocation.rs` or `matching/*.rs`. Without arguments all
# of its modules that decide something.
# First the unit tests of kubernetes-admission judge each mutant; those that they do not catch, then the recorded cases and
# the tests of harness. What no test can notice, and why, stands in .cargo/mutants.toml.
# Needs cargo-mutants: cargo install cargo-mutants --locked. Works on a copy of the tree, in target/mutants.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- reinvocation.rs failure.rs 'matching/*.rs' mutation.rs ownership.rs 'review/**/*.rs' 'patch/*.rs' \
  'dispatcher/*.rs'
work=$PWD/target/mutants
tree=$work/tree
files=()
for file; do files+=(--file "harness/admission/src/$file"); done

# A fresh copy with the same times, so that only what changed is built again. It is mutated in place.
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard |
  tar --create --null --files-from - --ignore-failed-read 2>/dev/null | tar --extract --directory "$tree"

export CARGO_TARGET_DIR=$work/target CARGO_PROFILE_DEV_DEBUG=0
# 2: mutants survived; 3: tests took too long. Anything else is wrong with the run itself.
judge() {
  local status=0
  cargo mutants --in-place --dir "$tree" --output "$work" --package kubernetes-admission --no-shuffle --caught \
    --minimum-test-timeout 60 "${files[@]}" "$@" || status=$?
  case $status in 0 | 2 | 3) ;; *) exit "$status" ;; esac
}

# Another judge for those that survived, if any did.
judge_survivors() {
  if [ -s "$work/mutants.out/missed.txt" ]; then judge --iterate "$@"; fi
}

# Tests of limits and laws, each of which takes longer than all other unit tests together.
slow=(insertions_at_the_front_of_a_long_list_are_limited copies_are_limited_to_three_mebibytes_in_total
  permissions_are_counted_before_rules_are_split a_patch_cannot_create_a_document_that_overflows_the_stack
  a_patch_does_the_same_as_its_operations_one_by_one a_patch_of_too_many_operations_is_not_imitated
  a_webhook_patch_has_limited_operations_and_values)
skips=()
for name in "${slow[@]}"; do skips+=(--skip "$name"); done

rm -rf "$work/mutants.out" "$work/mutants.out.old"
judge --test-package kubernetes-admission -- --lib --test patches -- "${skips[@]}"
judge_survivors --test-package kubernetes-admission -- --lib -- "${slow[@]}"
judge_survivors --test-package admit-harness --test-package tests -- --test agreement --test in_process --test spans \
  -- --skip large_requests:: --skip protobuf:: --skip quantities::

survivors=$(cat "$work/mutants.out/missed.txt")
if [ -n "$survivors" ]; then
  printf 'no test notices:\n%s\n' "$survivors" >&2
  exit 1
fi
echo "every mutant is caught, or stands in .cargo/mutants.toml"
