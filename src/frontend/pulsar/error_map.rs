//! What the broker's refusals are called in Pulsar's words. What is transient is always
//! `ServiceNotReady`: clients retry it, while they give up for good on the busy and not-found errors.

use super::codec::proto::ServerError;
use crate::broker::{AckError, BrokerError, PublishError};

/// The code of a refused request.
pub(super) const fn of_broker(error: &BrokerError) -> ServerError {
    match error {
        BrokerError::TopicNotFound(_) => ServerError::TopicNotFound,
        BrokerError::SubscriptionNotFound(_) => ServerError::SubscriptionNotFound,
        BrokerError::InUse(_) | BrokerError::ConsumerBusy(_) => ServerError::ConsumerBusy,
        BrokerError::ProducerBusy(_) => ServerError::ProducerBusy,
        BrokerError::TopicExists(_) | BrokerError::Invalid(_) | BrokerError::NotAllowed(_) => {
            ServerError::NotAllowedError
        }
        BrokerError::NotServed(_)
        | BrokerError::NotReady(_)
        | BrokerError::Metadata(_)
        | BrokerError::Storage(_) => ServerError::ServiceNotReady,
    }
}

/// The code of an entry that was refused, or whose outcome is unknown. `None`: the producer is told to
/// look its topic up again instead, and sends again what got no receipt.
pub(super) const fn of_publish(error: &PublishError) -> Option<ServerError> {
    match error {
        PublishError::TopicMoved | PublishError::ProducerClosed => None,
        PublishError::TooManyPending => Some(ServerError::ServiceNotReady),
        // Pulsar's producers ask for none of these terms.
        PublishError::WrongNumber { .. }
        | PublishError::StaleToken { .. }
        | PublishError::SessionBroken => Some(ServerError::NotAllowedError),
        PublishError::OutcomeUnknown(_) => Some(ServerError::PersistenceError),
    }
}

/// The code of an acknowledgement that is not durable.
pub(super) const fn of_ack(error: &AckError) -> ServerError {
    match error {
        AckError::ConsumerClosed => ServerError::ConsumerNotFound,
        AckError::NotAllowed => ServerError::NotAllowedError,
        AckError::OutcomeUnknown(_) => ServerError::ServiceNotReady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_trouble_is_never_final_for_a_client() {
        for error in [
            BrokerError::NotReady(String::new()),
            BrokerError::Metadata(String::new()),
            BrokerError::Storage(String::new()),
        ] {
            assert_eq!(of_broker(&error), ServerError::ServiceNotReady, "{error}");
        }
    }
}
