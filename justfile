# The entry to every task. `just` alone lists them.

default:
    @just --list

# What a change must pass: what CI runs, without a real kube-apiserver.
check:
    cargo fmt --all --check
    cargo clippy --all-targets -- -D warnings
    cargo test
    cargo run --quiet -- run

# The tests that `cargo test` reports as ignored because they take long: three of four recorded cases, and of webhooks with
# one defect each.
long-tests:
    cargo test --lib --tests -- --ignored

# The shipped features against etcd and kube-apiserver from KUBEBUILDER_ASSETS.
envtest *ARGS:
    cargo run --quiet -- run --target envtest {{ARGS}}

# Both targets, compared scenario by scenario.
compare:
    cargo test --test command targets:: -- --nocapture

# Everyday kubectl commands on `admit assets` and on the real binaries from KUBEBUILDER_ASSETS, or those of some groups of
# tests/kubectl/commands: `just kubectl get apply`.
kubectl *GROUPS:
    KUBECTL_GROUPS='{{GROUPS}}' cargo test --test command -- --nocapture --skip serve:: kubectl::

# Answers the expressions and rules of tests/cel with Kubernetes' own packages. Needs Go.
cel-expressions:
    tests/cel/regenerate.sh

# Answers the questions of managed-fields/tests/facts with Kubernetes' own packages. Needs Go.
managed-fields:
    managed-fields/tests/regenerate.sh

# How long typical conditions take here and in Kubernetes' own packages. Needs Go.
cel-speed:
    cargo run --quiet --release -p kubernetes-cel --example speed
    cd tests/cel && go test -run '^$' -bench . ./kubecel

# Writes harness/api-server/src/kinds/discovery.json from the API server that kubectl speaks to.
discovery:
    harness/tools/discovery.sh

# Writes harness/types/src/schema/messages.json from upstream's Go types. Needs Go.
messages:
    harness/tools/messages.sh

# Writes harness/api-server/src/endpoints/openapi/documents.gz from a kube-apiserver of KUBEBUILDER_ASSETS; `just openapi` compares.
openapi-record:
    cargo run --quiet --bin tests -- openapi --record

# Compares the OpenAPI documents of a kube-apiserver of KUBEBUILDER_ASSETS with those that admit serves.
openapi:
    cargo run --quiet --bin tests -- openapi

# Measures the release binary for docs/project/performance.md: size, startup time, and memory.
measure:
    tests/measure.sh

# Bundles the scripts and styles of HTML reports into command/src/html_report/assets. Needs Node.js with npm.
report-bundle:
    npm ci --prefix report
    npm run build --prefix report

# Draws the picture in the guide of `admit report` again. Needs Node.js with npm, and Chromium.
report-picture:
    npm ci --prefix report
    -cd report/example && cargo run --quiet -- review -f pod.yaml --fakes fakes.yaml --html ../../target/report.html
    node report/picture.mjs target/report.html docs/pictures/report.png

# Draws the picture of the page in the guide of `admit serve` again. Needs Node.js with npm, and Chromium.
serve-picture:
    npm ci --prefix report
    cargo test --test command serve_ui::
    cp target/report/live.png docs/pictures/serve.png

# How long admission takes, and how often it allocates: all benchmarks, or those whose names contain a text: `just bench
# dispatch/ --json new.json`. With `--admit target/dist/admit` also `admit run` and `admit verify`.
bench *ARGS:
    cargo run --quiet --profile dist -p benches -- run {{ARGS}}

# What changed from one file of results of `just bench` to another, beyond the noise.
bench-compare OLD NEW:
    cargo run --quiet --profile dist -p benches -- compare {{OLD}} {{NEW}}

# Compares upstream's dispatcher with admit's, and kube-apiserver and etcd with `admit serve`, in turns on one core, as one
# table: `just bench-upstream -json results.json`. Needs Go, KUBEBUILDER_ASSETS, and a second core for the clients.
bench-upstream *ARGS:
    cargo build --profile dist -p admit -p benches
    cd benches/upstream && go build -o ../../target/dist/upstream .
    target/dist/upstream compare {{ARGS}}

# Builds the documentation site in target/book. Needs mdBook: `cargo install mdbook --locked`.
book:
    mdbook build

# Regenerates the pages in docs/ that are made from the command, the recordings, and the data files.
book-pages:
    UPDATE_EXPECT=1 cargo test --test book --test command -- documentation generated the_page_says_what_was_found
    cargo run --quiet --bin tests -- faults --page
    cargo run --quiet --bin tests -- sections > docs/project/coverage.md

# Draws the pictures in the README again, from what the commands print.
pictures:
    UPDATE_EXPECT=1 cargo test --test command pictures::

# The API documentation of the libraries.
doc:
    cargo doc --no-deps --workspace

# Runs cases on a kube-apiserver from KUBEBUILDER_ASSETS and writes down what it does.
record GLOB="*":
    cargo run --quiet --bin tests -- record '{{GLOB}}'

# Writes docs/project/coverage.md: which scenarios show which section of the documents about admission webhooks.
sections:
    cargo run --quiet --bin tests -- sections > docs/project/coverage.md

# Which statements of tests/behaviors.md the cases prove.
coverage:
    cargo run --quiet --bin tests -- coverage

# The reviews that verify's probes send, compared with those of a kube-apiserver from KUBEBUILDER_ASSETS, all or those of
# some checks: `just probes --check V29,V34`.
probes *ARGS:
    cargo run --quiet --bin tests -- probes {{ARGS}}

# Definitions of custom resources that projects publish, with their example objects, on a kube-apiserver from
# KUBEBUILDER_ASSETS and in process: those of tests/published.txt, or of some modules. Needs Go, which downloads them.
definitions *MODULES:
    cargo run --quiet --bin tests -- definitions {{MODULES}}

# Objects of built-in kinds, as dry runs on a kube-apiserver from KUBEBUILDER_ASSETS and in process: upstream's manifests or
# some folders, and with `--varied 2` also variants with one field made wrong. Needs Go, which downloads upstream's modules.
manifests *ARGS:
    cargo run --quiet --bin tests -- manifests {{ARGS}}

# Every resource and subresource of discovery with every method, on a kube-apiserver from KUBEBUILDER_ASSETS and in process
walk:
    cargo run --quiet --bin tests -- walk

# Random situations on a kube-apiserver from KUBEBUILDER_ASSETS and in process: `just differential --seed 7 --cases 1000`.
differential *ARGS:
    cargo run --quiet --bin tests -- differential {{ARGS}}

# Random CEL expressions, compared with Kubernetes' own packages: `just cel --seed 7 --count 1000`. Needs
# Go. `just cel --confirm` asks a kube-apiserver from KUBEBUILDER_ASSETS about a sample of tests/cel/expressions.jsonl.
cel *ARGS:
    cargo run --quiet --bin tests -- cel {{ARGS}}

# The conformance tests of the language, on the crate and on Kubernetes' own packages. Needs Go.
cel-conformance:
    cargo run --quiet --bin tests -- cel --conformance

# Searches for inputs that break a law, for SECONDS per target: `just fuzz 60`, `just fuzz 600 patches review`.
# Needs a C++ compiler.
fuzz SECONDS *TARGETS:
    fuzz/run {{SECONDS}} {{TARGETS}}

# The laws that hold for random inputs, with CASES inputs each instead of the 256 of `cargo test`: `just random 20000`.
random CASES='4096':
    PROPTEST_CASES={{CASES}} cargo test --quiet --test language properties::
    PROPTEST_CASES={{CASES}} cargo test --quiet --test in_process server_robustness::
    PROPTEST_CASES={{CASES}} cargo test --quiet --lib reinvocation::

# Changes the code that decides about admission, one place at a time, and prints the changes that no test notices: all of
# its modules, or some files below harness/admission/src, `just mutants 'matching/*.rs'`. Needs cargo-mutants.
mutants *FILES:
    tools/mutants.sh {{FILES}}

# An attack on `admit serve`, for SECONDS: watchers that do not read, idle peers, large objects, a full storage,
# hostile webhooks.
soak SECONDS='60' *ARGS:
    cargo build --release -p admit
    cargo run --quiet --bin tests -- soak --command target/release/admit --seconds {{SECONDS}} {{ARGS}}

# Suites that start envtest, on `admit assets` and on the real binaries from KUBEBUILDER_ASSETS, spec by spec: those of
# controller-runtime and of three operators, or some: `just suites webhook jobset keda lws`. Needs Go.
suites *PACKAGES:
    tests/suites/run.sh {{PACKAGES}}

# Kubernetes' integration tests on admit: the packages of conformance/kubernetes-suites/results.json, or some: `just
# kubernetes-suites apiserver/cel`. Fails if a result is not the recorded one. Needs Go, Python, and KUBEBUILDER_ASSETS.
kubernetes-suites *PACKAGES:
    conformance/kubernetes-suites/suites.py run {{PACKAGES}}

# The packages of all channels or of some, built, installed, and run from local files: `just packages go python`.
packages *CHANNELS:
    packages/test.sh {{CHANNELS}}

# The examples in Python and Java, or one of them, on `admit assets` and on the real binaries from KUBEBUILDER_ASSETS: `just
# examples python`. Needs Python with pip, and Java 17 with Maven; what lacks its tools is skipped.
examples *NAMES:
    examples/run.sh {{NAMES}}

# `admit verify` on webhooks of other projects: installs and starts them. Needs Go, Python with pip,
# Node.js with npm, and Java 17 with Maven; what lacks its tools is skipped.
verified:
    ADMIT_TEST_WEBHOOKS=1 cargo test --test command -- --nocapture --skip lint:: verified::

# The images of `admit`, for jobs, and of the fakes, for `admit fakes deploy`, or one: `just image admit-fakes`. Needs
# docker, or CONTAINER_TOOL=podman; no network.
image *NAMES:
    tools/images.sh {{NAMES}}

# The images under Docker.
containers: image
    cargo test --features containers --test containers -- --nocapture

# The spans that a collector gets from admit, and from kube-apiserver.
otlp:
    cargo test --features otlp --test otlp -- --nocapture

# Fakes in a cluster for tests, the features with them, and a Job that verifies one: the kubeconfig, as of `kind get
# kubeconfig`. The images must be on its nodes.
cluster KUBECONFIG:
    ADMIT_TEST_CLUSTER={{KUBECONFIG}} cargo test --test command -- --nocapture cluster::
    ADMIT_TEST_CLUSTER={{KUBECONFIG}} cargo test --test command -- --nocapture cluster_features::

# What a fake can handle: reviews a second on one core, memory, connections that hang.
load COUNT="1000000":
    cargo run --quiet --release -p fake-webhooks --example load -- {{COUNT}}

# Checks the prose of README, docs, changelog, tests/behaviors.md, public doc comments, and the texts of the command (options,
# steps, checks, and faults, from the generated pages) with Vale and Harper. Needs Go and Python, which install the pinned versions.
prose *FILES:
    tools/prose/prose.py check {{FILES}}

# Prints COUNT doc comments that are drawn at random, for a reader to judge: `just prose-sample 200 --seed 7`.
prose-sample COUNT *ARGS:
    tools/prose/prose.py sample {{COUNT}} {{ARGS}}
