//! Code generated from `proto/seawall` at build time; what each message means is told there.

/// The bookie's service.
#[allow(missing_docs, reason = "generated: documented in the .proto file")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod bookie {
    include!(concat!(env!("OUT_DIR"), "/seawall.bookie.v1.rs"));
}

/// The metadata store's service.
#[allow(missing_docs, reason = "generated: documented in the .proto file")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod metadata {
    include!(concat!(env!("OUT_DIR"), "/seawall.metadata.v1.rs"));
}

/// What the metadata store writes to disk.
#[allow(missing_docs, reason = "generated: documented in the .proto file")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod metadata_files {
    include!(concat!(env!("OUT_DIR"), "/seawall.metadata_files.v1.rs"));
}

/// What members of the metadata group tell each other and keep on disk.
#[allow(missing_docs, reason = "generated: documented in the .proto file")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod consensus {
    include!(concat!(env!("OUT_DIR"), "/seawall.consensus.v1.rs"));
}

/// The public services and their messages.
#[allow(missing_docs, reason = "generated: documented in the .proto files")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod public {
    include!(concat!(env!("OUT_DIR"), "/seawall.v1.rs"));
}
