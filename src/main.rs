//! The command `admit`.

mod shipped;

/// What `admit serve` frees goes back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    admit_command::main(shipped::FEATURES)
}
