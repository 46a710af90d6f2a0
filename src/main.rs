//! Hands the arguments to `cli`.

/// Both the server and the simulator make and drop many small buffers; this one takes about a tenth less of a core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(seawall::cli::run())
}
