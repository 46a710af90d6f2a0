//! The detail of a failed public call: `seawall.v1.Failure` inside a `google.rpc.Status`, as gRPC libraries
//! of other languages expect it in the trailer `grpc-status-details-bin`.

use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use super::generated::public::Failure;

const TYPE_URL: &str = "type.googleapis.com/seawall.v1.Failure";

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// A status that carries the failure.
pub fn status_of_failure(code: Code, message: String, failure: &Failure) -> Status {
    let detail = Detail { type_url: TYPE_URL.to_owned(), value: failure.encode_to_vec().into() };
    let rich = RichStatus { code: code as i32, message: message.clone(), details: vec![detail] };
    Status::with_details(code, message, rich.encode_to_vec().into())
}

/// The failure a status carries, if it is one of ours.
pub fn failure_of_status(status: &Status) -> Option<Failure> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let detail = rich.details.iter().find(|detail| detail.type_url == TYPE_URL)?;
    Failure::decode(detail.value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_status() {
        let failure = Failure { owner: "a:1".to_owned(), token: Some(7), ..Failure::default() };
        let status = status_of_failure(Code::Aborted, "no".to_owned(), &failure);
        assert_eq!(failure_of_status(&status), Some(failure));
        assert_eq!(failure_of_status(&Status::aborted("bare")), None);
        let garbage = Status::with_details(Code::Aborted, "", Bytes::from_static(b"\xff\x01"));
        assert_eq!(failure_of_status(&garbage), None);
    }
}
