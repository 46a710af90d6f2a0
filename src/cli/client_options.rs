//! What every command that speaks to a broker as a client has in common.

use std::future::Future;

use clap::Args;

use super::output::complain;
use super::{FAILED, USAGE};
use crate::client::{ClientError, ClientOptions, PulsarClient};
use crate::runtime::{Runtime, real};

/// Where the broker is.
#[derive(Clone, Debug, Args)]
pub(super) struct ConnectionOptions {
    /// The broker's service URL.
    #[arg(long, env = "SEAWALL_URL", default_value = "pulsar://localhost:6650")]
    url: String,
}

/// A command of a client did not end well.
pub(super) enum ClientFailure {
    /// The arguments are wrong.
    Usage(String),
    /// The broker or the way to it.
    Client(ClientError),
    /// Already said.
    Told,
}

impl From<ClientError> for ClientFailure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Invalid(reason) => Self::Usage(reason),
            other => Self::Client(other),
        }
    }
}

/// Connects, performs the work, disconnects; the answer is the exit code.
pub(super) fn with_client<F, W>(options: &ConnectionOptions, work: W) -> u8
where
    W: FnOnce(Runtime, PulsarClient) -> F,
    F: Future<Output = Result<u8, ClientFailure>>,
{
    let ended = real::run(|| async {
        let runtime = real::runtime();
        let client =
            PulsarClient::connect(&runtime, &options.url, ClientOptions::default()).await?;
        let ended = work(runtime, client.clone()).await;
        client.close().await;
        ended
    });
    match ended {
        Ok(Ok(code)) => code,
        Ok(Err(ClientFailure::Usage(reason))) => {
            complain(&reason);
            USAGE
        }
        Ok(Err(ClientFailure::Client(error))) => {
            complain(&error);
            FAILED
        }
        Ok(Err(ClientFailure::Told)) => FAILED,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}
