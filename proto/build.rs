//! Compiles the .proto files with protox, so that no protoc needs to be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    seawall()?;
    public()?;
    pulsar()
}

/// Our own node-to-node services and metadata's file formats. `bytes` fields become reference-counted
/// slices of the received buffer; no transport is generated, it is `src/rpc`.
fn seawall() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(
        ["bookie.proto", "consensus.proto", "metadata.proto", "metadata_files.proto"],
        ["proto/seawall"],
    )?;
    tonic_prost_build::configure().build_transport(false).bytes(".").compile_fds(files)?;
    Ok(())
}

/// The public services, named below `proto` as their users import them.
fn public() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(
        ["seawall/v1/failure.proto", "seawall/v1/ledgers.proto", "seawall/v1/streams.proto"],
        ["proto"],
    )?;
    tonic_prost_build::configure().build_transport(false).bytes(".").compile_fds(files)?;
    Ok(())
}

/// Pulsar's client protocol: messages only, `bytes` fields as slices of the frame they came in.
fn pulsar() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = protox::compile(["pulsar/PulsarApi.proto"], ["proto"])?;
    prost_build::Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}
