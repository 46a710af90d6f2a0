//! One binary of scripted scenarios and the swarm.
fn main() {}
