//! Requests about a topic go to the broker that serves it: others answer 307 with its URL, as Pulsar does.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::AdminState;
use super::connection::Reached;
use super::refusal::Refusal;
use crate::broker::{BrokerAddresses, Located};
use crate::domain::TopicName;

/// What was asked for, to be asked elsewhere; and where we were reached.
pub(crate) struct Asked {
    path: String,
    query: String,
    authoritative: bool,
    local: Option<Arc<str>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let reached = parts.extensions.get::<Reached>();
        let uri = reached.map_or(&parts.uri, |reached| &reached.uri);
        let query = uri.query().unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let (flags, rest): (Vec<_>, Vec<_>) =
            pairs.partition(|pair| pair.split('=').next() == Some("authoritative"));
        Ok(Self {
            path: uri.path().to_owned(),
            query: rest.join("&"),
            authoritative: flags.iter().any(|flag| flag.ends_with("=true")),
            local: reached.map(|reached| Arc::clone(&reached.local)),
        })
    }
}

impl Asked {
    /// The same request at another broker.
    fn at(&self, http: &str, authoritative: bool) -> Refusal {
        let Self { path, query, .. } = self;
        let joint = if query.is_empty() { "" } else { "&" };
        Refusal::elsewhere(format!("{http}{path}?{query}{joint}authoritative={authoritative}"))
    }

    /// Fails with a redirection unless the topic is served here, or is from now on.
    pub(crate) async fn at_owner(
        &self,
        state: &AdminState,
        name: &TopicName,
    ) -> Result<(), Refusal> {
        match state.broker.locate(name, self.authoritative).await? {
            Located::Here => Ok(()),
            Located::At(owner) => Err(self.at(&owner.http, false)),
            Located::Ask(candidate) => Err(self.at(&candidate.http, true)),
        }
    }

    /// The broker of a topic; a redirection to whoever should take it.
    pub(crate) async fn locate(
        &self,
        state: &Arc<AdminState>,
        name: &TopicName,
    ) -> Result<BrokerAddresses, Refusal> {
        match state.broker.locate(name, self.authoritative).await? {
            Located::Here => Ok(self.own(state)),
            Located::At(owner) => Ok(owner),
            Located::Ask(candidate) => Err(self.at(&candidate.http, true)),
        }
    }

    /// Our own addresses as this client should see them.
    fn own(&self, state: &AdminState) -> BrokerAddresses {
        let (pulsar, http) = (&state.config.pulsar_url, &state.web_url);
        let host = self.local.as_ref().and_then(|local| local.rsplit_once(':'));
        match host.filter(|_| state.config.host_of_connection) {
            // Nothing that is asked for over HTTP tells the gRPC port.
            None => {
                BrokerAddresses { pulsar: pulsar.clone(), http: http.clone(), grpc: String::new() }
            }
            Some((host, _)) => {
                let port = |url: &str| url.rsplit(':').next().unwrap_or_default().to_owned();
                BrokerAddresses {
                    pulsar: format!("pulsar://{host}:{}", port(pulsar)),
                    http: format!("http://{host}:{}", port(http)),
                    grpc: String::new(),
                }
            }
        }
    }
}
