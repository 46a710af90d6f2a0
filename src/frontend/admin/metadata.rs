//! The metadata group: who is in it, who leads, and changing that. Answered by members only; changes by the
//! leader only.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;

use super::AdminState;
use super::paths::{MemberPath, Query};
use super::refusal::Refusal;
use crate::metadata::MetadataError;

/// One member.
#[derive(Clone, Debug, Serialize)]
pub struct MemberRow {
    /// Its id; never given to another.
    pub member: u64,
    /// Its node-to-node address.
    pub address: Option<String>,
    /// `voter`, `learner`, or `leaving` while the voters are changed.
    pub role: &'static str,
    /// It leads, as far as whoever was asked knows.
    pub leads: bool,
}

/// The group as one member knows it.
#[derive(Clone, Debug, Serialize)]
pub struct GroupView {
    /// Who tells.
    pub own: u64,
    /// The newest term it heard of.
    pub term: u64,
    /// Everything up to here is committed.
    pub committed: u64,
    /// The end of its log.
    pub last: u64,
    /// All members.
    pub members: Vec<MemberRow>,
}

/// Why the group is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupRefusal {
    /// Another one leads.
    #[error("{}", match .0 {
        Some(leader) => format!("member {leader} leads: ask its node"),
        None => "nobody is known to lead now".to_owned(),
    })]
    NotLeader(Option<u64>),
    /// It makes no sense.
    #[error("{0}")]
    Senseless(String),
    /// Metadata failed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// Port to the node's own member; `node` fills it in.
#[async_trait]
pub trait GroupAdmin: Send + Sync {
    /// What it knows.
    fn group(&self) -> GroupView;
    /// Asks another voter to lead; whether it does is seen later.
    async fn transfer_leadership(&self, to: u64) -> Result<(), GroupRefusal>;
    /// Takes a member in, or makes a learner a voter.
    async fn add(&self, member: u64, address: &str, is_learner: bool) -> Result<(), GroupRefusal>;
    /// Lets a member go for ever.
    async fn remove(&self, member: u64) -> Result<(), GroupRefusal>;
}

impl From<GroupRefusal> for Refusal {
    fn from(refusal: GroupRefusal) -> Self {
        let status = match &refusal {
            GroupRefusal::NotLeader(_) | GroupRefusal::Senseless(_) => StatusCode::CONFLICT,
            GroupRefusal::Metadata(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, refusal.to_string())
    }
}

/// `GET /admin/v2/metadata`.
pub(crate) async fn group(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<GroupView>, Refusal> {
    Ok(Json(state.group()?.group()))
}

/// `PUT /admin/v2/metadata/leader/{member}`.
pub(crate) async fn transfer(
    State(state): State<Arc<AdminState>>,
    MemberPath(member): MemberPath,
) -> Result<StatusCode, Refusal> {
    state.group()?.transfer_leadership(member).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `PUT /admin/v2/metadata/members/{member}?address=host:port&learner=true`.
pub(crate) async fn add(
    State(state): State<Arc<AdminState>>,
    MemberPath(member): MemberPath,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let address = query.value("address").unwrap_or_default();
    if !address.contains(':') {
        return Err(Refusal::invalid(
            "address=host:port is needed, the member's node-to-node port",
        ));
    }
    state.group()?.add(member, address, query.flag("learner")).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /admin/v2/metadata/members/{member}`.
pub(crate) async fn remove(
    State(state): State<Arc<AdminState>>,
    MemberPath(member): MemberPath,
) -> Result<StatusCode, Refusal> {
    state.group()?.remove(member).await?;
    Ok(StatusCode::NO_CONTENT)
}
