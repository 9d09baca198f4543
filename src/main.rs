//! The `admit` command.

mod shipped;

/// The allocator. It returns the memory that `admit serve` frees to the operating system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    admit_command::main(shipped::FEATURES)
}
