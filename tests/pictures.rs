//! Checks that the pictures in README.md show the output of the commands.
//!
//! `UPDATE_EXPECT=1 cargo test --test command pictures` draws them again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anstyle::RgbColor;
use anstyle_svg::{Palette, Term};
use expect_test::expect_file;
use regex::Regex;

/// The maximum number of characters per line. Longer lines continue on the next line, as in a terminal.
const WIDTH: usize = 110;

/// The terminal's colors. They have enough contrast on a dark background.
const PALETTE: Palette = Palette([
    RgbColor(72, 79, 88),
    RgbColor(255, 123, 114),
    RgbColor(63, 185, 80),
    RgbColor(210, 153, 34),
    RgbColor(88, 166, 255),
    RgbColor(188, 140, 255),
    RgbColor(57, 197, 207),
    RgbColor(177, 186, 196),
    RgbColor(110, 118, 129),
    RgbColor(255, 161, 152),
    RgbColor(86, 211, 100),
    RgbColor(227, 179, 65),
    RgbColor(121, 192, 255),
    RgbColor(210, 168, 255),
    RgbColor(86, 212, 221),
    RgbColor(240, 246, 252),
]);
const BACKGROUND: RgbColor = RgbColor(13, 17, 23);
const TEXT: RgbColor = RgbColor(230, 237, 243);

/// A running `admit fakes`. It is killed on drop.
struct Fakes(Child);

impl Drop for Fakes {
    fn drop(&mut self) {
        // An error means that the process has exited, which the test detects in the output.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn admit(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Writes a file that README.md shows: a block whose first line is a comment with its name.
fn write_shown(folder: &Path, name: &str) {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let rest = readme.split_once(&format!("# {name}\n")).map(|(_, rest)| rest);
    let text = rest.and_then(|rest| rest.split("```").next());
    let text = text.unwrap_or_else(|| panic!("README.md does not show {name}"));
    fs::write(folder.join(name), text).unwrap();
}

/// Serves the fakes of a file, and writes their configuration to `webhook.yaml`.
fn serve_fakes(folder: &Path, file: &str) -> Fakes {
    let mut command = admit(folder);
    command.args(["fakes", "-f", file]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut fakes = Fakes(command.spawn().unwrap());
    let mut configuration = String::new();
    fakes.0.stdout.take().unwrap().read_to_string(&mut configuration).unwrap();
    fs::write(folder.join("webhook.yaml"), configuration).unwrap();
    fakes
}

/// Draws a command line and its output on a color terminal.
fn picture(folder: &Path, line: &str, label: &str) -> String {
    let output = admit(folder).args(line.split(' ').skip(1)).args(["--color", "always"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    draw(&format!("\u{1b}[1m$ {line}\u{1b}[0m\n{}", wrapped(&without_measurements(&printed))), label)
}

/// Removes durations and replaces ports, because they differ from run to run.
fn without_measurements(text: &str) -> String {
    let duration = Regex::new(r"(, |  )(\x1b\[2m)?\d+(\.\d+)? m?s\b(\x1b\[0m)?").unwrap();
    let port = Regex::new(r"127\.0\.0\.1:\d+").unwrap();
    port.replace_all(&duration.replace_all(text, ""), "127.0.0.1:8443").into_owned()
}

/// Breaks lines longer than [`WIDTH`]. Escape sequences have no width.
fn wrapped(text: &str) -> String {
    let mut result = String::new();
    for line in text.lines() {
        let mut column = 0;
        let mut in_escape = false;
        for letter in line.chars() {
            in_escape |= letter == '\u{1b}';
            if !in_escape {
                if column == WIDTH {
                    result.push('\n');
                    column = 0;
                }
                column += 1;
            }
            result.push(letter);
            in_escape &= letter != 'm';
        }
        result.push('\n');
    }
    result
}

/// Converts terminal output to an SVG that scales with the page, and is readable on light and dark pages.
fn draw(ansi: &str, label: &str) -> String {
    let terminal = Term::new().palette(PALETTE).bg_color(BACKGROUND.into()).fg_color(TEXT.into());
    let svg = terminal.render_svg(ansi.trim_end());
    let size = Regex::new(r#"^<svg width="(\d+)px" height="(\d+)px""#).unwrap();
    assert!(size.is_match(&svg), "the converter writes another head");
    let head = format!(r#"<svg role="img" aria-label="{label}" width="$1" height="$2" viewBox="0 0 $1 $2""#);
    size.replace(&svg, head).into_owned()
}

#[test]
fn picture_of_run_is_what_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    write_shown(folder.path(), "my.feature");
    let svg = picture(folder.path(), "admit run my.feature", "Output of admit run");
    expect_file!["../docs/pictures/run.svg"].assert_eq(&svg);
}

#[test]
fn picture_of_verify_is_what_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    write_shown(folder.path(), "injector.yaml");
    write_shown(folder.path(), "pod.yaml");
    let _fakes = serve_fakes(folder.path(), "injector.yaml");
    // Without the checks that measure time.
    let line = "admit verify -c webhook.yaml -f pod.yaml --check V01,V03,V13,V22";
    let svg = picture(folder.path(), line, "Output of admit verify");
    expect_file!["../docs/pictures/verify.svg"].assert_eq(&svg);
}

#[test]
fn lines_are_wrapped_by_what_is_visible() {
    let long = "x".repeat(WIDTH);
    assert_eq!(
        wrapped(&format!("\u{1b}[1m{long}\u{1b}[0my\nz\n")),
        format!("\u{1b}[1m{long}\u{1b}[0m\ny\nz\n")
    );
}

#[test]
fn durations_and_ports_are_removed() {
    let text = "1 feature, 1 scenario\npassed  \u{1b}[2m308 ms\u{1b}[0m\n12 steps, 1.5 s\nhttps://127.0.0.1:43449/x after 3 s\n";
    let expected = "1 feature, 1 scenario\npassed\n12 steps\nhttps://127.0.0.1:8443/x after 3 s\n";
    assert_eq!(without_measurements(text), expected);
}
