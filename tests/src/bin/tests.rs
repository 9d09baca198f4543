//! Runs the tools of the conformance suite: they record cases, count proved statements, and search for differences.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use certs::CertificateAuthority;
use clap::{Parser, Subcommand};
use tests::cases;
use tests::catalog::{self, Page};
use tests::cel;
use tests::coverage::Coverage;
use tests::differential::{Search, Subject};
use tests::known_differences::KnownDifferences;
use tests::manifests;
use tests::openapi;
use tests::own_answer::OwnAnswer;
use tests::probes;
use tests::published;
use tests::record::{by_server, record};
use tests::replay;
use tests::sections;
use tests::server::Server;
use tests::soak;
use tests::stop_signal;
use tests::walk;

#[derive(Debug, Parser)]
#[command(about)]
struct Tools {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Run cases on a kube-apiserver from KUBEBUILDER_ASSETS and record its behavior
    Record(Record),
    /// Record what admit answers to the cases that are known differences
    Own(Own),
    /// Run random situations on a kube-apiserver from KUBEBUILDER_ASSETS and in process, and compare the results
    Differential(Differential),
    /// Evaluate random CEL expressions with admit and with Kubernetes' own packages, and compare the results
    Cel(Cel),
    /// Write a case for every fault in the catalog, or the page that lists their recordings
    Faults(Faults),
    /// Compare the reviews that the checks of `admit verify` send with those of a kube-apiserver from KUBEBUILDER_ASSETS
    Probes(Probes),
    /// Compare published custom resource definitions and their example objects on both servers
    Definitions(Definitions),
    /// Apply objects of built-in kinds, and variants with one invalid field, to a kube-apiserver from
    /// KUBEBUILDER_ASSETS and in process, and compare the results
    Manifests(manifests::ObjectSelection),
    /// Send every method to every discovered resource and subresource of a kube-apiserver from KUBEBUILDER_ASSETS and
    /// in process, and compare the results
    Walk,
    /// Compare the OpenAPI documents of a kube-apiserver from KUBEBUILDER_ASSETS with those that admit serves
    Openapi(Openapi),
    /// Put `admit serve` under heavy load for a while, and report its memory use and latency
    Soak(Soak),
    /// Report, section by section, which statements of tests/behaviors.md the cases prove
    Coverage,
    /// Print docs/project/coverage.md: which scenarios cover which section of the documents about admission webhooks
    Sections,
}

#[derive(Debug, clap::Args)]
struct Record {
    /// Pattern of case names, such as `reinvocation/*`
    #[arg(default_value = "*")]
    glob: String,
    /// Number of cases to run in parallel
    #[arg(long, default_value_t = 8)]
    jobs: usize,
    /// Write nothing, and fail if a recording differs from what the server does now
    #[arg(long)]
    check: bool,
    /// Directory of the cases
    #[arg(long)]
    cases: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Own {
    /// Pattern of case names, such as `reinvocation/*`
    #[arg(default_value = "*")]
    glob: String,
    /// How often to run each case, to catch answers that vary
    #[arg(long, default_value_t = 3)]
    times: usize,
}

#[derive(Debug, clap::Args)]
struct Faults {
    /// Write docs/reference/faults.md from the recordings of the cases
    #[arg(long)]
    page: bool,
}

#[derive(Debug, clap::Args)]
struct Differential {
    /// Seed of all situations; by default a new one, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// Number of situations
    #[arg(long, default_value_t = 300)]
    cases: u64,
    /// Number of the first situation
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Subject of the situations
    #[arg(long, value_enum, default_value_t)]
    about: Subject,
    /// Number of situations to run in parallel
    #[arg(long, default_value_t = 24)]
    jobs: usize,
    /// Directory for the cases that show a difference
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Probes {
    /// Checks to compare, such as `V02,V32`; by default all of them
    #[arg(long, value_delimiter = ',')]
    check: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Definitions {
    /// Go modules, such as `sigs.k8s.io/gateway-api@v1.3.0`, or directories; by default those in tests/published.txt
    modules: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Openapi {
    /// Record the documents for admit to serve instead of comparing them
    #[arg(long)]
    record: bool,
}

#[derive(Debug, clap::Args)]
struct Soak {
    /// Duration in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Path of the command; by default the one built next to this tool
    #[arg(long)]
    command: Option<PathBuf>,
    /// Memory limit of the server, in MiB
    #[arg(long, default_value_t = 512)]
    memory: u64,
    /// Number of watchers that do not read
    #[arg(long, default_value_t = 500)]
    watchers: usize,
    /// Number of idle connections
    #[arg(long, default_value_t = 1024)]
    idle: usize,
    /// Number of clients that write 1 MB objects
    #[arg(long, default_value_t = 16)]
    writers: usize,
}

#[derive(Debug, clap::Args)]
struct Cel {
    /// Seed of all expressions; by default a new one, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// Number of expressions
    #[arg(long, default_value_t = 50_000)]
    count: u64,
    /// Number of the first expression
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Compare a sample of tests/cel/expressions.jsonl with a kube-apiserver from KUBEBUILDER_ASSETS instead
    #[arg(long)]
    confirm: bool,
    /// Run the conformance tests of the CEL language instead, which Go downloads
    #[arg(long, conflicts_with = "confirm")]
    conformance: bool,
    /// Number of expressions in that sample
    #[arg(long, default_value_t = 200, requires = "confirm")]
    sample: usize,
    /// Write each expression with its answer to standard output as JSON lines
    #[arg(long)]
    print: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let tool = async {
        match Tools::parse().tool {
            Tool::Record(arguments) => recorded(arguments).await,
            Tool::Own(arguments) => own(&arguments).await,
            Tool::Differential(arguments) => searched(arguments).await,
            Tool::Cel(arguments) if arguments.confirm => confirmed(&arguments).await,
            Tool::Cel(arguments) if arguments.conformance => conforms(),
            Tool::Cel(arguments) => expressions(&arguments),
            Tool::Faults(arguments) => faults(&arguments),
            Tool::Probes(arguments) => probed(&arguments).await,
            Tool::Definitions(arguments) => published_definitions(arguments).await,
            Tool::Manifests(wanted) => tried_manifests(wanted).await,
            Tool::Walk => walked().await,
            Tool::Openapi(arguments) => documents(&arguments).await,
            Tool::Soak(arguments) => soaked(arguments).await,
            Tool::Coverage => coverage(),
            Tool::Sections => sections(),
        }
    };
    // Child processes end with the tool, also when it receives a signal.
    let done = tokio::select! {
        // The signals are registered before the tool starts a process.
        biased;
        stopped = stop_signal::received() => stopped.map(|()| ExitCode::from(130)).map_err(Into::into),
        done = tool => done,
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Records what admit answers to cases that are known differences.
async fn own(arguments: &Own) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let known = KnownDifferences::read()?;
    let authority = Arc::new(CertificateAuthority::new("admit judge CA")?);
    for case in cases::find(&cases::folder(), &arguments.glob)? {
        if known.find(&case.name).is_none() {
            continue;
        }
        let mut own = OwnAnswer::default();
        for _ in 0..arguments.times {
            own.add(replay::answer(&case, Arc::clone(&authority), None).await?);
        }
        own.write(&case.own_answer())?;
        anstream::println!("{}", case.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// Records the OpenAPI documents, or compares them.
async fn documents(arguments: &Openapi) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if arguments.record {
        anstream::println!("{}", openapi::record().await?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let (compared, differences) = openapi::compare().await?;
    for difference in &differences {
        anstream::println!("{difference}");
    }
    anstream::println!("{compared} documents, {} differences", differences.len());
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn faults(arguments: &Faults) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if arguments.page {
        let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        Page::make(&today)?.write()?;
        anstream::println!("{}", Page::path().display());
        return Ok(ExitCode::SUCCESS);
    }
    for case in catalog::write_cases()? {
        anstream::println!("{case}: written");
    }
    anstream::println!("record them with: just record '{}/*'", catalog::CONCEPT);
    Ok(ExitCode::SUCCESS)
}

fn coverage() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let statements = cases::folder().with_file_name("behaviors.md");
    let coverage = Coverage::count(&statements, &cases::folder(), &KnownDifferences::read()?)?;
    anstream::println!("{}", coverage.table());
    for (statement, case) in &coverage.unknown {
        anstream::eprintln!("{case} proves {statement}, which is no statement");
    }
    Ok(if coverage.unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sections() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let list = cases::folder().with_file_name("sections.yaml");
    let features = cases::folder().join("../../features");
    anstream::print!("{}", sections::page(&sections::read(&list, &features)?));
    Ok(ExitCode::SUCCESS)
}

async fn recorded(arguments: Record) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let folder = arguments.cases.unwrap_or_else(cases::folder);
    let found = cases::find(&folder, &arguments.glob)?;
    if found.is_empty() {
        anstream::eprintln!("no case matches {}", arguments.glob);
        return Ok(ExitCode::from(4));
    }
    let (mut changed, mut flaky, mut failed, total) = (0, 0, 0, found.len());
    for ((plugins, _), found) in by_server(found) {
        let server = Server::apiserver_with(&plugins).await?;
        for recorded in record(found, &server, arguments.jobs).await? {
            let (name, path) = (recorded.case.name.clone(), recorded.case.recording());
            let old = fs::read_to_string(&path).unwrap_or_default();
            let text = match recorded.outcome {
                Ok(recording) => recording.text(),
                Err(error) if arguments.check && agrees_alone(&recorded.case, &old, &server).await? => {
                    flaky += 1;
                    anstream::eprintln!("{name}: it could not be run once: {error}");
                    continue;
                }
                Err(error) => {
                    failed += 1;
                    anstream::eprintln!("{name}: {error}");
                    continue;
                }
            };
            if old == text {
                continue;
            }
            if !arguments.check {
                changed += 1;
                fs::write(&path, text)?;
                anstream::println!("{name}: recorded");
            } else if agrees_alone(&recorded.case, &old, &server).await? {
                flaky += 1;
                anstream::eprintln!(
                    "{name}: the server did once what the recording does not say:\n{}",
                    changes(&old, &text)
                );
            } else {
                changed += 1;
                let path = path.display();
                anstream::eprintln!(
                    "{name}: the server does something else than {path}:\n{}",
                    changes(&old, &text)
                );
            }
        }
    }
    anstream::println!("{total} cases, {changed} changed, {flaky} flaky, {failed} failed");
    Ok(if failed > 0 || (arguments.check && changed > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns whether the server agrees with the recording when only this case runs again.
///
/// For a broken connection or a slow request, the error depends on which of the server's tasks notices it first. If a
/// server closes a connection just as a request arrives on it, the request is not answered.
async fn agrees_alone(
    case: &cases::CaseFile,
    recording: &str,
    server: &Server,
) -> Result<bool, Box<dyn std::error::Error>> {
    for _ in 0..cases::MAX_RETRIES {
        for again in record(vec![case.clone()], server, 1).await? {
            if again.outcome.is_ok_and(|outcome| outcome.text() == recording) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the differing lines as a unified diff.
fn changes(old: &str, new: &str) -> String {
    similar::TextDiff::from_lines(old, new).unified_diff().context_radius(1).to_string()
}

/// Returns a random seed that is short enough to type.
fn fresh_seed() -> u64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    (high ^ low) >> 32
}

fn expressions(arguments: &Cel) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let search = cel::Search { seed, first: arguments.first, count: arguments.count };
    let print = |answer: &cel::Answer| {
        if arguments.print {
            anstream::println!("{}", serde_json::json!(answer));
        }
    };
    let found = search.run(&print, &|line| anstream::eprintln!("{line}"))?;
    anstream::eprintln!("{found} (seed {seed})");
    Ok(if found.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn conforms() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let conformance = cel::conformance::conformance()?;
    for difference in &conformance.differences {
        anstream::eprintln!("{difference}");
    }
    anstream::println!("{conformance}");
    Ok(if conformance.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn confirmed(arguments: &Cel) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let confirmed = cel::confirm::confirm(seed, arguments.sample).await?;
    anstream::println!("{confirmed} (seed {seed})");
    Ok(if confirmed.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn probed(arguments: &Probes) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let wanted = |check: &harness::verify::Check| {
        arguments.check.is_empty() || arguments.check.iter().any(|id| id == check.id)
    };
    let comparison = probes::compare(wanted, &|line| anstream::eprintln!("{line}")).await?;
    for difference in &comparison.differences {
        anstream::println!("{difference}");
    }
    anstream::println!("{comparison}");
    Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn published_definitions(arguments: Definitions) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut modules = arguments.modules;
    if modules.is_empty() {
        modules.extend(published::modules().into_iter().map(str::to_owned));
    }
    let tell = |module: &str, comparison: &published::Comparison| {
        for difference in &comparison.differences {
            anstream::println!("{difference}");
        }
        for (what, count) in &comparison.unsupported {
            anstream::println!("not imitated, {count} times: {what}");
        }
        anstream::println!("{module}: {comparison}");
    };
    let agrees = published::compare(&modules, &tell).await?;
    Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn walked() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let comparison = walk::compare().await?;
    anstream::println!("{comparison}");
    Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn tried_manifests(wanted: manifests::ObjectSelection) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let comparison = manifests::compare(&wanted).await?;
    anstream::println!("{comparison}");
    Ok(if comparison.differing() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn soaked(arguments: Soak) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let beside = || std::env::current_exe().map(|tools| tools.with_file_name("admit"));
    let soak = soak::Soak {
        command: arguments.command.map_or_else(beside, Ok)?,
        lasts: std::time::Duration::from_secs(arguments.seconds),
        memory: arguments.memory,
        watchers: arguments.watchers,
        idle: arguments.idle,
        writers: arguments.writers,
    };
    anstream::println!("{}", soak::HEAD);
    let survival = soak
        .run(&|stretch| {
            anstream::println!("{stretch}");
            for failure in stretch.tally.failures.iter().take(3) {
                anstream::println!("  the well-behaved client: {failure}");
            }
        })
        .await?;
    let confined =
        if survival.is_confined { "confined to" } else { "measured, without a control group, against" };
    let waits = |percent| survival.whole.percentile(percent).as_millis();
    anstream::println!("at most {} MiB in memory, {confined} {} MiB", survival.peak, arguments.memory);
    anstream::println!(
        "the well-behaved client waited {} ms (p50), {} ms (p99), {} ms",
        waits(50),
        waits(99),
        waits(100)
    );
    for complaint in &survival.complaints {
        anstream::println!("{complaint}");
    }
    Ok(if survival.complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn searched(arguments: Differential) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let out = arguments.out.unwrap_or_else(|| cases::folder().join("found"));
    let Differential { first, cases, jobs, about: subject, .. } = arguments;
    let search = Search { seed, first, cases, subject, jobs, out };
    anstream::println!("seed {seed}, {} situations", search.cases);
    let started = tokio::time::Instant::now();
    let found = search.run(&KnownDifferences::read()?, &|line| anstream::println!("{line}")).await?;
    anstream::println!("{found} (seed {seed}, {} s)", started.elapsed().as_secs());
    Ok(if found.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
