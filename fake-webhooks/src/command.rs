//! The command that serves the fakes of files: `admit fakes` and `fake-webhooks`.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use certs::Name;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{FakesFile, FileError, Fleet, FleetError, Log, RemoteAccess};

/// What to serve, and how.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A file of fakes; `-` reads standard input. May be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Where to listen, instead of what the files say; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The name or address in URLs and certificates, instead of what the files say
    #[arg(long, value_name = "HOST")]
    host: Option<Name>,
    /// Allow to listen on an address that other machines reach
    #[arg(long)]
    allow_remote: bool,
    /// How to print the webhook configurations
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Write the webhook configurations to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    write_configurations: Option<PathBuf>,
}

/// How configurations are printed.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Output {
    /// YAML, one document each
    #[default]
    Yaml,
    /// One JSON list
    Json,
}

/// Why the command ends before it is told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be understood.
    #[error(transparent)]
    File(#[from] FileError),
    /// The fakes cannot start.
    #[error(transparent)]
    Start(#[from] FleetError),
    /// The configurations cannot be written.
    #[error("cannot write the configurations to {place}: {source}")]
    Write {
        /// Where.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// The configurations cannot be printed.
    #[error("cannot print the configurations: {0}")]
    Print(#[from] serde_saphyr::ser_error::Error),
    /// The system does not say when to stop.
    #[error("cannot listen to signals: {0}")]
    Signals(io::Error),
}

impl CommandError {
    /// Whether an input is wrong, rather than the machine around it.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Read { .. } | Self::File(_) | Self::Start(FleetError::Plan(_)) => true,
            Self::Start(FleetError::Start(_)) | Self::Write { .. } | Self::Print(_) | Self::Signals(_) => {
                false
            }
        }
    }
}

impl Arguments {
    /// Serves until SIGINT or SIGTERM. Standard output gets the configurations and is closed then, so that a
    /// `kubectl apply -f -` behind it goes on; `log` gets a line for each call.
    ///
    /// # Errors
    /// A file cannot be read or understood, a fake cannot start, or the configurations cannot be written.
    pub async fn run(self, log: &Log) -> Result<(), CommandError> {
        // Before anything can be seen of this process, so that whoever sees it may stop it.
        let mut signals = Signals::new().map_err(CommandError::Signals)?;
        let files = self.files.iter().map(|file| self.read(file)).collect::<Result<Vec<_>, _>>()?;
        let fleet = Fleet::start(&files, log).await?;
        let text = self.output.print(fleet.configurations())?;
        match &self.write_configurations {
            Some(file) => write_file(file, &text)
                .map_err(|source| CommandError::Write { place: file.display().to_string(), source })?,
            None => write_stdout(&text)
                .map_err(|source| CommandError::Write { place: "standard output".to_owned(), source })?,
        }
        let name = signals.next().await;
        log(&format!("{name}: stopping"));
        fleet.stop().await;
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<FakesFile, CommandError> {
        let unreadable = |source| CommandError::Read { file: path.to_owned(), source };
        let (text, shown) = if path == Path::new("-") {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(unreadable)?;
            (text, "standard input".to_owned())
        } else {
            (fs::read_to_string(path).map_err(unreadable)?, path.display().to_string())
        };
        let mut file = FakesFile::parse(&text, &shown)?;
        file.listen = self.listen.unwrap_or(file.listen);
        file.host = self.host.clone().or(file.host);
        if self.allow_remote {
            file.remote_access = RemoteAccess::Allowed;
        }
        Ok(file)
    }
}

impl Output {
    fn print(self, configurations: &[Value]) -> Result<String, serde_saphyr::ser_error::Error> {
        match self {
            Self::Yaml => serde_saphyr::to_string_multiple(configurations),
            Self::Json => {
                let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": configurations});
                Ok(format!("{list:#}\n"))
            }
        }
    }
}

/// Never half written: whoever waits for the file finds all of it.
fn write_file(file: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(format!(".{}.tmp", std::process::id()));
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, file).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    })
}

fn write_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    let nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&nowhere)?)
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
