//! The topic of a stream, or who serves it.

use tonic::Code;

use crate::broker::{Broker, BrokerAddresses, Located, Topic};
use crate::domain::TopicName;
use crate::frontend::grpc::refusal::Refusal;
use crate::reached;
use crate::rpc::generated::public::{Reason, StreamName};

/// The topic if it is served here, loaded if need be; with `create`, created.
pub(super) async fn topic(
    broker: &Broker,
    stream: Option<&StreamName>,
    create: bool,
) -> Result<Topic, Refusal> {
    let stream = stream.ok_or_else(|| Refusal::invalid("no stream is named"))?;
    let name =
        TopicName::parse(&stream.name).map_err(|error| Refusal::invalid(error.to_string()))?;
    match broker.locate(&name, stream.authoritative).await? {
        Located::Here => Ok(broker.topic(&name, create).await?),
        Located::At(owner) => Err(elsewhere(&name, owner, false)),
        Located::Ask(candidate) => Err(elsewhere(&name, candidate, true)),
    }
}

fn elsewhere(name: &TopicName, owner: BrokerAddresses, authoritative: bool) -> Refusal {
    if owner.grpc.is_empty() {
        return Refusal::not_ready(format!("the broker that serves {name} tells no gRPC port"));
    }
    reached!("grpc: sent to another broker");
    let message = format!("{name} is served at {}", owner.grpc);
    Refusal::new(Code::FailedPrecondition, Reason::NotOwner, message).rejected().with(|failure| {
        failure.owner = owner.grpc;
        failure.authoritative = authoritative;
    })
}
