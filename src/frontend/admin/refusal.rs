//! A request that was not granted: a status and `{"reason": "…"}`, as Pulsar's clients read it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::broker::BrokerError;
use crate::domain::TopicNameError;

/// Why not.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    reason: String,
    /// Where to ask instead.
    location: Option<String>,
}

#[derive(Serialize)]
struct Body {
    reason: String,
}

impl Refusal {
    /// A refusal with its reason.
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), location: None }
    }

    /// Another broker is to be asked, at this URL.
    pub(crate) fn elsewhere(location: String) -> Self {
        let status = StatusCode::TEMPORARY_REDIRECT;
        Self { status, reason: "served by another broker".to_owned(), location: Some(location) }
    }

    /// The argument breaks a rule.
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, reason)
    }

    /// There is no such thing.
    pub(crate) fn missing(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    /// There is no such thing, it says.
    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// The thing exists, the operation is not offered on it.
    pub(crate) fn not_offered(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, reason)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Body { reason: self.reason })).into_response();
        if let Some(location) = self.location.and_then(|url| HeaderValue::try_from(url).ok()) {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}

impl From<BrokerError> for Refusal {
    fn from(error: BrokerError) -> Self {
        let status = match &error {
            BrokerError::TopicNotFound(_) | BrokerError::SubscriptionNotFound(_) => {
                StatusCode::NOT_FOUND
            }
            BrokerError::TopicExists(_) => StatusCode::CONFLICT,
            BrokerError::InUse(_)
            | BrokerError::ConsumerBusy(_)
            | BrokerError::ProducerBusy(_)
            | BrokerError::Invalid(_) => StatusCode::PRECONDITION_FAILED,
            BrokerError::NotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            BrokerError::NotServed(_) | BrokerError::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            BrokerError::Metadata(_) | BrokerError::Storage(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<TopicNameError> for Refusal {
    fn from(error: TopicNameError) -> Self {
        Self::invalid(error.to_string())
    }
}
