//! The version of the protocol between nodes.
//!
//! A call says in the header `seawall-protocol` which version it is made in; one that says nothing is of version 1. A
//! server refuses a version above its own, by both numbers, before it looks at the call. A field or a call that an older
//! node can do without needs no new version; another meaning of what is there does.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::reached;

/// What this version speaks and understands, with all before it.
pub const PROTOCOL: u32 = 1;

const HEADER: HeaderName = HeaderName::from_static("seawall-protocol");

/// Says the version of a call that is being made.
pub(super) fn say(version: u32, headers: &mut HeaderMap) {
    if version > 1 {
        headers.insert(HEADER, HeaderValue::from(version));
    }
}

/// The answer to a call of a version that is not understood here.
pub(super) fn refusal(headers: &HeaderMap) -> Option<tonic::Status> {
    let said = headers.get(HEADER)?.to_str().unwrap_or("unreadable");
    if said.parse::<u32>().is_ok_and(|version| version <= PROTOCOL) {
        return None;
    }
    reached!("rpc: a call of a later protocol version refused");
    let detail = format!("protocol version {said}, this node understands up to {PROTOCOL}");
    Some(tonic::Status::failed_precondition(detail))
}
