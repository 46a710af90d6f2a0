//! Compiles the .proto files with protox, so that no protoc needs to be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    compile_pulsar()?;
    Ok(())
}

/// Pulsar's client protocol: messages only, `bytes` fields as slices of the frame they came in.
fn compile_pulsar() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = protox::compile(["pulsar/PulsarApi.proto"], ["proto"])?;
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}
