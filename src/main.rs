//! Hands the arguments to `cli`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(seawall::cli::run())
}
