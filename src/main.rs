//! Hands the arguments to `cli`.

fn main() {}
