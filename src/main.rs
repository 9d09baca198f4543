//! The command `admit`.

fn main() -> std::process::ExitCode {
    admit::main()
}
