//! What the commands of streams have in common.

use clap::Args;

use super::output::complain;
use super::{FAILED, USAGE};
use crate::client::{StreamClient, StreamError};
use crate::rpc::generated::public::Reason;
use crate::runtime::real;

/// Where the brokers are.
#[derive(Clone, Debug, Args)]
pub(super) struct StreamConnection {
    /// gRPC addresses of brokers, separated by commas; the one that serves the stream is found.
    #[arg(long, env = "SEAWALL_GRPC", default_value = "localhost:9090", value_delimiter = ',')]
    grpc: Vec<String>,
}

/// A command of streams did not end well.
pub(super) enum StreamFailure {
    /// The server, or the way to it.
    Stream(StreamError),
    /// Already said.
    Told,
}

impl From<StreamError> for StreamFailure {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

/// Performs the work; the answer is the exit code.
pub(super) fn with_stream<F, W>(connection: &StreamConnection, stream: &str, work: W) -> u8
where
    W: FnOnce(StreamClient) -> F,
    F: Future<Output = Result<u8, StreamFailure>>,
{
    let ended = real::run(|| async {
        let client = StreamClient::new(&real::runtime(), &connection.grpc, stream)?;
        work(client).await
    });
    match ended {
        Ok(Ok(code)) => code,
        Ok(Err(StreamFailure::Told)) => FAILED,
        Ok(Err(StreamFailure::Stream(error))) => {
            complain(&error);
            if error.reason() == Reason::Invalid { USAGE } else { FAILED }
        }
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}
