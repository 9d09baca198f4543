//! Provides a directory for the files and the commands of one page.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use regex::Regex;
use tempfile::TempDir;

use super::admit;

/// The ports in the pages. The test replaces them with free ports.
const PORTS: [u16; 3] = [6443, 8443, 9443];

/// The maximum number of times to check whether a server has written its files.
const ATTEMPTS: usize = 6000;
const PAUSE: Duration = Duration::from_millis(20);

/// The options whose value is a file that a server writes when it is ready, or a directory that contains such a file.
///
/// For a directory, the second string is the path of the file in the directory.
const READY: [(&str, &str); 3] = [
    ("--write-configurations", ""),
    ("--kubeconfig-out", ""),
    ("--write-admission-configuration", "/admission.yaml"),
];

pub(crate) struct Sandbox {
    folder: TempDir,
    /// The addresses in the page, each with the address that replaces it.
    addresses: Vec<(String, String)>,
    servers: Vec<Child>,
    /// The server that the page assumes but does not start.
    fixture: Option<Child>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let addresses = PORTS.map(|port| (port, free_port())).into_iter().flat_map(|(port, own)| {
            ["127.0.0.1", "0.0.0.0"].map(|host| (format!("{host}:{port}"), format!("{host}:{own}")))
        });
        let folder = tempfile::tempdir().expect("a folder can be made");
        Self { folder, addresses: addresses.collect(), servers: Vec::new(), fixture: None }
    }

    /// Replaces the addresses in the page with addresses that have free ports.
    fn localized(&self, text: &str) -> String {
        self.addresses.iter().fold(text.to_owned(), |text, (page, own)| text.replace(page, own))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("the file is in a folder")).expect("the folder can be made");
        fs::write(path, self.localized(text)).expect("the file can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("the file is text")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// Returns whether a server listens at an address in the page.
    pub(crate) fn listens(&self, address: &str) -> bool {
        TcpStream::connect(self.localized(address)).is_ok()
    }

    fn command(&self, arguments: &[String]) -> std::process::Command {
        let mut command = admit();
        command.args(arguments.iter().map(|argument| self.localized(argument)));
        command.current_dir(&self.folder).env("XDG_CACHE_HOME", self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command with the given standard input until it exits.
    pub(crate) fn run(&self, arguments: &[String], redirect: Option<&str>, input: &[u8]) -> Output {
        let file = self.folder.path().join(".input");
        fs::write(&file, input).expect("the file can be written");
        let mut command = self.command(arguments);
        command.stdin(fs::File::open(file).expect("the file can be read"));
        let output = command.output().expect("admit starts");
        if let Some(file) = redirect {
            fs::write(self.folder.path().join(file), &output.stdout).expect("the file can be written");
        }
        output
    }

    /// Starts a command that runs until the end of the page, and waits until it is ready.
    pub(crate) fn serve(&mut self, arguments: &[String]) {
        self.stop_fixture();
        let server = self.start(arguments);
        self.servers.push(server);
    }

    /// Starts a server that runs until the page starts its own one. It replaces a server of the page at `address`.
    pub(crate) fn start_fixture(&mut self, arguments: &[String], address: &str) {
        self.stop_fixture();
        if self.listens(address) {
            self.stop_servers();
        }
        self.fixture = Some(self.start(arguments));
    }

    fn stop_fixture(&mut self) {
        if let Some(mut server) = self.fixture.take() {
            drop(server.kill());
            drop(server.wait());
        }
    }

    fn stop_servers(&mut self) {
        for mut server in self.servers.drain(..) {
            drop(server.kill());
            drop(server.wait());
        }
    }

    /// Starts a server, and waits for the file that it writes, or else for its output.
    fn start(&self, arguments: &[String]) -> Child {
        let mut server = self.command(arguments);
        // A pipe that is not read would block the server.
        let file = |name: &str| {
            let path = self.folder.path().join(name);
            (fs::File::create(&path).expect("the file can be made"), path)
        };
        let ((errors, log), (output, shown)) = (file("server.log"), file("server.out"));
        let mut ready: Vec<_> = READY
            .iter()
            .filter_map(|(option, file)| {
                let position = arguments.iter().position(|argument| argument == option)?;
                Some(self.folder.path().join(format!("{}{file}", arguments.get(position + 1)?)))
            })
            .collect();
        if ready.is_empty() {
            ready.push(shown);
        }
        // A file of an earlier server does not show that this one is ready.
        for file in ready.iter().filter(|file| file.exists()) {
            fs::write(file, "").expect("the file can be emptied");
        }
        let mut server = server.stdout(output).stderr(errors).spawn().expect("admit starts");
        let mut attempts = 0;
        while !ready.iter().all(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0)) {
            let ended = server.try_wait().expect("the server can be asked");
            let is_starting = ended.is_none() && attempts < ATTEMPTS;
            assert!(is_starting, "{arguments:?}: {}", fs::read_to_string(&log).unwrap_or_default());
            attempts += 1;
            std::thread::sleep(PAUSE);
        }
        server
    }

    /// Returns output as the page shows it: with the page's addresses, and without the path of the directory.
    pub(crate) fn shown(&self, output: &str) -> String {
        let text = self.addresses.iter().fold(output.to_owned(), |text, (page, own)| text.replace(own, page));
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// Returns a free port below those that the system gives to outgoing connections, which could take it before it is used.
fn free_port() -> u16 {
    static OFFSET: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    loop {
        let offset = start.wrapping_add(OFFSET.fetch_add(1, Ordering::Relaxed)) % 20_000;
        let port = 10_000 + u16::try_from(offset).expect("the offset is below 20,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Masks durations and times, because they differ from run to run.
pub(crate) fn masked(text: &str) -> String {
    let time = Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").expect("a valid expression");
    let duration = Regex::new(r"\b\d+(\.\d+)? ?(µs|ms|s)\b").expect("a valid expression");
    let spaces = Regex::new(" {2,}").expect("a valid expression");
    let text = time.replace_all(text, "<time>");
    spaces.replace_all(&duration.replace_all(&text, "<duration>"), "  ").into_owned()
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop_fixture();
        self.stop_servers();
    }
}

/// Returns whether `pattern` matches `text`. A line `…` in the pattern matches any number of lines.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<&str> = text.trim_end().lines().collect();
    let chunks: Vec<Vec<&str>> = pattern
        .trim_end()
        .split('\n')
        .collect::<Vec<_>>()
        .split(|line| *line == "…")
        .map(<[&str]>::to_vec)
        .collect();
    let mut rest = text.as_slice();
    let last = chunks.len() - 1;
    for (index, chunk) in chunks.iter().enumerate() {
        let found = match (index, index == last) {
            (0, true) => return rest == chunk.as_slice(),
            (0, false) => rest.starts_with(chunk).then_some(0),
            (_, true) => return rest.ends_with(chunk),
            (_, false) => {
                (0..=rest.len().saturating_sub(chunk.len())).find(|at| rest[*at..].starts_with(chunk))
            }
        };
        let Some(at) = found else { return false };
        rest = &rest[at + chunk.len()..];
    }
    true
}

#[test]
fn an_ellipsis_matches_any_lines() {
    for (pattern, text, expected) in [
        ("a\nb\n", "a\nb\n", true),
        ("a\nb", "a\nc", false),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("a\n…\nc\n…\ne", "a\nb\nc\nd\ne", true),
        ("a\n…\nx\n…\ne", "a\nb\nc\nd\ne", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
    }
}
