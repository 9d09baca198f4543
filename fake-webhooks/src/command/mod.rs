//! Serves fakes files: `admit fakes` and `fake-webhooks`.

mod list;
mod open_files;
mod signals;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use certs::{CertificateAuthority, Name};
use output::Readers;
use serde_json::Value;

pub use self::list::List;
pub use self::open_files::raise_open_file_limit;
pub use self::signals::{StopSignal, StopSignals};
use crate::kubeconfig::admission_configuration;
use crate::{
    AdminOptions, Authority, FakesFile, Fleet, FleetError, FleetOptions, InvalidToken, Log, RemoteAccess,
    TlsError, Token,
};

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Read fakes from this file, or - for standard input; can be repeated
    #[arg(short, long = "filename", alias = "file", value_name = "FILE", required_unless_present = "admin")]
    files: Vec<PathBuf>,
    /// Listen on this address instead of the one in the files; port 0 uses a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Use this host name or address in URLs and certificates instead of the one in the files
    #[arg(long, value_name = "HOST")]
    host: Option<Name>,
    /// Allow listening on an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
    /// Sign certificates with the CA in this directory (ca.crt and ca.key) instead of generating a new one
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
    /// Serve the admin endpoint, which shows and changes running fakes, on this address; port 0 uses a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    admin: Option<SocketAddr>,
    /// Read the token of the admin endpoint from this file instead of logging a random one
    #[arg(long, value_name = "FILE", requires = "admin")]
    admin_token_file: Option<PathBuf>,
    /// Print the webhook configurations in this format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Write the webhook configurations to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    write_configurations: Option<PathBuf>,
    /// Write admission.yaml and kubeconfig to this directory, with the credentials that the fakes require, for the
    /// --admission-control-config-file of an API server
    #[arg(long, value_name = "DIR")]
    write_admission_configuration: Option<PathBuf>,
}

/// The output format of configurations.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Output {
    /// YAML, one document per configuration
    #[default]
    Yaml,
    /// One JSON list
    Json,
}

/// The reason why the command ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The path of the file that cannot be read.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is invalid.
    #[error("{0}")]
    File(Box<dyn std::error::Error + Send + Sync>),
    /// A file does not contain webhooks, and there is no admin endpoint to add them.
    #[error("{}: `webhooks` is empty: must contain at least one, unless --admin is used", .0.display())]
    Empty(PathBuf),
    /// A file contains an invalid token.
    #[error("{}: {source}", file.display())]
    Token {
        /// The path of the file with the token.
        file: PathBuf,
        /// The reason why the token is invalid.
        source: InvalidToken,
    },
    /// The system does not provide random numbers.
    #[error("no random numbers for a token available: use --admin-token-file")]
    NoToken,
    /// The certificate authority in the directory cannot be used.
    #[error("{}: ca.crt and ca.key: {source}", directory.display())]
    Authority {
        /// The path of the directory that should contain `ca.crt` and `ca.key`.
        directory: PathBuf,
        /// The reason why the certificate authority cannot be used.
        source: certs::Error,
    },
    /// The fakes cannot start.
    #[error(transparent)]
    Start(#[from] FleetError),
    /// The fakes do not require credentials.
    #[error("--write-admission-configuration requires a webhook with the behavior `demand`")]
    NoCredentials,
    /// A client certificate cannot be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The configurations cannot be written.
    #[error("cannot write the configurations to {place}: {source}")]
    Write {
        /// The file or stream that cannot be written.
        place: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The configurations cannot be printed.
    #[error("cannot print the configurations: {0}")]
    Print(#[from] serde_saphyr::ser_error::Error),
    /// Signals cannot be received.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
}

impl CommandError {
    /// Returns whether invalid input caused the error, rather than the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Read { .. }
            | Self::File(_)
            | Self::Empty(_)
            | Self::Token { .. }
            | Self::Authority { .. }
            | Self::NoCredentials
            | Self::Start(FleetError::Plan(_)) => true,
            Self::NoToken
            | Self::Tls(_)
            | Self::Start(FleetError::Start(_) | FleetError::Admin(_))
            | Self::Write { .. }
            | Self::Print(_)
            | Self::Signals(_) => false,
        }
    }
}

/// A function that parses a file into fakes files.
///
/// The first argument is the text of the file, and the second argument is the name to use in messages.
pub type ParseFakes<'a> =
    dyn Fn(&str, &str) -> Result<Vec<FakesFile>, Box<dyn std::error::Error + Send + Sync>> + Sync + 'a;

impl Arguments {
    /// Serves the files until SIGINT or SIGTERM; a second signal terminates the process immediately.
    ///
    /// Prints the configurations to standard output and then closes it, so that a `kubectl apply -f -` in the same
    /// pipeline continues. `log` receives a line for each call.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid, if a fake cannot start, or if the configurations cannot
    /// be written.
    pub async fn run(self, parse: &ParseFakes<'_>, log: &Log) -> Result<(), CommandError> {
        // Before any output, so that a reader of the output can stop this process.
        let mut signals = StopSignals::listen(1).map_err(CommandError::Signals)?;
        raise_open_file_limit();
        let mut files = Vec::new();
        for file in &self.files {
            files.extend(self.read(file, parse)?);
        }
        if files.is_empty() {
            let mut file = FakesFile::default();
            self.adjust(&mut file);
            files.push(file);
        }
        let options = FleetOptions {
            authority: self.authority.as_deref().map(read_authority).transpose()?.unwrap_or_default(),
            admin: self.admin(&files, log)?,
            ..FleetOptions::default()
        };
        let fleet = Fleet::start_with(&files, options, log).await?;
        if let Some(address) = fleet.admin_address() {
            log(&format!("admin endpoint: https://{address}"));
        }
        self.write_credentials(&fleet, log).await?;
        let text = self.output.print(fleet.configurations())?;
        match &self.write_configurations {
            Some(file) => output::write(file, text.as_bytes(), Readers::Umask)
                .map_err(|source| CommandError::Write { place: file.display().to_string(), source })?,
            None => write_stdout(&text)
                .map_err(|source| CommandError::Write { place: "standard output".to_owned(), source })?,
        }
        let signal = signals.next().await;
        log(&format!("{}: stopping", signal.name()));
        fleet.stop().await;
        Ok(())
    }

    fn read(&self, path: &Path, parse: &ParseFakes<'_>) -> Result<Vec<FakesFile>, CommandError> {
        let text = read(path)?;
        let shown =
            if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        let mut files = parse(&text, &shown).map_err(CommandError::File)?;
        if files.iter().all(|file| file.webhooks.is_empty()) && self.admin.is_none() {
            return Err(CommandError::Empty(path.to_owned()));
        }
        for file in &mut files {
            self.adjust(file);
        }
        Ok(files)
    }

    /// Writes the configuration files that an API server uses to authenticate to the fakes.
    async fn write_credentials(&self, fleet: &Fleet, log: &Log) -> Result<(), CommandError> {
        let kubeconfig = fleet.kubeconfig().await?;
        let Some(directory) = &self.write_admission_configuration else {
            if kubeconfig.is_some() {
                log(
                    "some webhooks demand credentials: --write-admission-configuration DIR writes them for an API server",
                );
            }
            return Ok(());
        };
        let kubeconfig = kubeconfig.ok_or(CommandError::NoCredentials)?;
        let cannot_write = |place: &Path| {
            let place = place.display().to_string();
            move |source| CommandError::Write { place, source }
        };
        let directory = std::path::absolute(directory).map_err(cannot_write(directory))?;
        fs::create_dir_all(&directory).map_err(cannot_write(&directory))?;
        let file = directory.join("kubeconfig");
        let admission = directory.join("admission.yaml");
        for (file, document) in [(&file, kubeconfig), (&admission, admission_configuration(&file))] {
            let text = serde_saphyr::to_string(&document)?;
            output::write(file, text.as_bytes(), Readers::Owner).map_err(cannot_write(file))?;
        }
        log(&format!(
            "credentials for an API server: --admission-control-config-file {}",
            admission.display()
        ));
        Ok(())
    }

    /// Overrides the settings of a file with the command-line options.
    fn adjust(&self, file: &mut FakesFile) {
        file.listen = self.listen.unwrap_or(file.listen);
        file.host = self.host.clone().or_else(|| file.host.take());
        if self.allow_remote {
            file.remote_access = RemoteAccess::Allowed;
        }
    }

    fn admin(&self, files: &[FakesFile], log: &Log) -> Result<Option<AdminOptions>, CommandError> {
        let Some(listen) = self.admin else { return Ok(None) };
        let token = if let Some(file) = &self.admin_token_file {
            read(file)?.parse().map_err(|source| CommandError::Token { file: file.clone(), source })?
        } else {
            let token = Token::random().ok_or(CommandError::NoToken)?;
            log(&format!("admin token: {}", token.as_str()));
            token
        };
        let mut admin = AdminOptions::new(listen, token);
        admin.remote_access = files.first().map(|file| file.remote_access).unwrap_or_default();
        Ok(Some(admin))
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

fn read(file: &Path) -> Result<String, CommandError> {
    output::read_for_server(file)
        .and_then(text)
        .map_err(|source| CommandError::Read { file: file.to_owned(), source })
}

/// Decodes the contents of a file as UTF-8.
///
/// # Errors
/// Returns an error that names the first line that is not UTF-8.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8 text"))
    })
}

/// Reads the CA certificate and its key from a directory.
fn read_authority(directory: &Path) -> Result<Authority, CommandError> {
    let (certificate, key) = (read(&directory.join("ca.crt"))?, read(&directory.join("ca.key"))?);
    let authority = CertificateAuthority::from_pem(&certificate, &key)
        .map_err(|source| CommandError::Authority { directory: directory.to_owned(), source })?;
    Ok(Authority::Shared(Arc::new(authority)))
}

fn write_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    let nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&nowhere)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf_8_is_reported_with_its_line() {
        assert_eq!(text(b"a\nb".to_vec()).unwrap(), "a\nb");
        assert_eq!(text(b"a\nb\n\xff".to_vec()).unwrap_err().to_string(), "line 3 is not UTF-8 text");
    }
}
