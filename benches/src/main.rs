//! How much time and memory admission takes: `just bench` and `just bench-compare OLD NEW`.
//!
//! Allocations are those of the thread that measures, and so is the CPU time: webhooks answer on another thread. The
//! allocator is the system's, because it has to be counted; the command has another one.
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
    /// Measure and print, one line a benchmark
    Run {
        /// Only the benchmarks whose names contain one of these texts
        names: Vec<String>,
        /// Write the results to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// How long each benchmark runs
        #[arg(long, value_name = "MILLISECONDS", default_value = "500")]
        time: u64,
        /// The binary of admit (profile `dist`), which is started for `commands/`; without it these are left out
        #[arg(long, value_name = "FILE")]
        admit: Option<PathBuf>,
    },
    /// Serve a webhook with `/allow` and `/patch` until standard input ends, and print where
    Webhook,
    /// Print what changed from one file of results to another, beyond the noise of both
    Compare {
        /// The results before
        old: PathBuf,
        /// The results after
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
