//! Provides helpers for tests: folders with files, installed programs with a version check, ports, and a running `admit serve`.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

pub(crate) mod folder;
pub(crate) mod machine;
pub(crate) mod ports;
pub(crate) mod serve;

use std::path::PathBuf;

use self::machine::{Program, Version, choose, read_version};
use self::serve::Serve;

/// One of this many entries of a long table is tested by default. Ignored tests, which `just long-tests` runs, test the
/// others.
pub(crate) const SAMPLE: usize = 4;

#[test]
fn version_is_read_from_the_output_of_each_program() {
    for (said, version) in [
        ("Client Version: v1.32.4\nKustomize Version: v5.5.0\n", Some((1, 32))),
        (r#"Client Version: version.Info{Major:"1", Minor:"22", GitVersion:"v1.22.1"}"#, Some((1, 22))),
        ("Kubernetes v1.37.1\n", Some((1, 37))),
        ("etcd Version: 3.6.5\nGit SHA: Not provided\nGo Version: go1.26.0\n", Some((3, 6))),
        ("go version go1.26.1 linux/amd64\n", Some((1, 26))),
        ("28.2.2\n", Some((28, 2))),
        ("", None),
        ("unknown command \"version\"\n", None),
    ] {
        assert_eq!(read_version(said), version, "{said}");
    }
}

const KUBECTL: Program = Program { name: "kubectl", ask: &[], wanted: (1, 37)..=(1, 37) };

#[track_caller]
fn check(program: &Program, found: &[(&str, Result<Version, &str>)], expected: Result<&str, &str>) {
    let files = found.iter().map(|(file, version)| (version.map_err(str::to_owned), PathBuf::from(file)));
    let chosen = choose(program, files, "on PATH").map(|file| file.to_str().unwrap().to_owned());
    assert_eq!(chosen.as_deref().map_err(String::as_str), expected);
}

#[test]
fn the_first_program_of_a_wanted_version_is_taken() {
    check(&KUBECTL, &[("/a", Ok((1, 32))), ("/b", Ok((1, 37))), ("/c", Ok((1, 37)))], Ok("/b"));
    let around = Program { wanted: (1, 36)..=(1, 38), ..KUBECTL };
    check(&around, &[("/a", Ok((1, 35))), ("/b", Ok((1, 39))), ("/c", Ok((1, 38)))], Ok("/c"));
    let since = Program { wanted: (20, 10)..=(u32::MAX, u32::MAX), ..KUBECTL };
    check(&since, &[("/a", Ok((20, 9))), ("/b", Ok((28, 2)))], Ok("/b"));
}

#[test]
fn the_reason_to_skip_names_what_is_wanted_and_what_was_found() {
    check(&KUBECTL, &[], Err("no kubectl 1.37 on PATH"));
    check(&KUBECTL, &[("/a", Ok((1, 32)))], Err("no kubectl 1.37 on PATH: /a is 1.32"));
    let around = Program { wanted: (1, 36)..=(1, 38), ..KUBECTL };
    check(
        &around,
        &[("/a", Ok((2, 37))), ("/b", Err("Permission denied"))],
        Err("no kubectl 1.36 to 1.38 on PATH: /a is 2.37, /b: Permission denied"),
    );
    let since = Program { wanted: (1, 21)..=(1, u32::MAX), ..KUBECTL };
    check(&since, &[("/a", Ok((1, 9)))], Err("no kubectl 1.21 or newer on PATH: /a is 1.9"));
}

#[tokio::test]
async fn a_server_answers_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = Serve::start(folder.path(), &[]).await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "37");
    drop(server);
    assert!(client.apiserver_version().await.is_err());
}

#[test]
fn a_free_port_can_be_listened_on() {
    let port = ports::free_port();
    assert!((10_000..30_000).contains(&port), "{port}");
    std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
}
