//! Measures the time and the memory that admission takes: `just bench` and `just bench-compare OLD NEW`.
//!
//! Allocations and CPU time are those of the measuring thread; webhooks respond on a different thread. The benchmarks
//! use the system allocator, because its allocations can be counted; the command uses a different allocator.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock, prints, and stops when it cannot go on"
)]

mod calls;
mod commands;
mod custom_resources;
mod decisions;
mod dispatch;
mod fixtures;
mod growth;
mod meter;
mod results;
mod server;
mod webhook;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::meter::Meter;
use crate::results::Results;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure and print one line for each benchmark
    Run {
        /// Run only the benchmarks whose names contain one of these strings
        names: Vec<String>,
        /// Write the results to this file as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Duration of each benchmark
        #[arg(long, value_name = "MILLISECONDS", default_value = "500")]
        time: u64,
        /// Path of the admit binary (profile `dist`) for the `commands/` benchmarks; without it they are skipped
        #[arg(long, value_name = "FILE")]
        admit: Option<PathBuf>,
    },
    /// Serve a webhook with `/allow` and `/patch` until standard input ends, and print its address
    Webhook,
    /// Print the changes between two result files that exceed the noise of both
    Compare {
        /// The earlier results
        old: PathBuf,
        /// The later results
        new: PathBuf,
    },
}

fn main() {
    match Arguments::parse().command {
        Command::Run { names, json, time, admit } => {
            let mut meter = Meter::new(names, Duration::from_millis(time));
            println!("{}", results::HEADING);
            decisions::run(&mut meter);
            calls::run(&mut meter);
            dispatch::run(&mut meter);
            server::run(&mut meter);
            custom_resources::run(&mut meter);
            if let Some(admit) = admit {
                commands::run(&mut meter, &admit);
            }
            let results = meter.into_results();
            print!("{}", growth::report(&results));
            if let Some(file) = json {
                results.write(&file);
            }
        }
        Command::Webhook => {
            let webhook = webhook::Webhook::start();
            println!("{}", serde_json::json!({"address": webhook.address, "caBundle": webhook.ca_bundle}));
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        }
        Command::Compare { old, new } => {
            println!("{}", Results::read(&old).changes(&Results::read(&new)));
        }
    }
}
