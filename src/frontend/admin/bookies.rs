//! Bookies: which there are and how they stand, asking one to leave, and what repair still has to do.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;

use super::AdminState;
use super::paths::{BookiePath, Query};
use super::refusal::Refusal;
use crate::domain::{BookieId, LedgerId};
use crate::ledger::repair::{Flaw, RepairProgress};
use crate::metadata::MetadataError;

/// One bookie in the list.
#[derive(Clone, Debug)]
pub struct BookieRow {
    /// Which incarnation.
    pub bookie: BookieId,
    /// Where it is, or was when it was made.
    pub address: Option<String>,
    /// `serving`, `read-only`, `missing`, `draining`, `drained` or `decommissioned`.
    pub state: &'static str,
    /// It can be reached now.
    pub is_registered: bool,
}

/// One ledger that needs repair.
#[derive(Clone, Debug)]
pub struct UnderReplicatedRow {
    /// Which.
    pub ledger: LedgerId,
    /// What was seen.
    pub flaws: Vec<Flaw>,
    /// Who repairs it now and how far it is.
    pub progress: Option<RepairProgress>,
}

/// Why a request about a bookie was not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookieRefusal {
    /// There never was such a bookie, or it was decommissioned.
    #[error("bookie {0} is not known")]
    Unknown(BookieId),
    /// Something else has to be done first.
    #[error("{0}")]
    NotNow(String),
    /// Metadata failed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// Port to the bookies of the cluster; `node` fills it in.
#[async_trait]
pub trait BookieAdmin: Send + Sync {
    /// Every bookie there is or was, but for those whose memory was removed.
    async fn bookies(&self) -> Result<Vec<BookieRow>, BookieRefusal>;
    /// Asks a bookie to leave: no new entries, its copies are moved. Idempotent. Refused when too few bookies
    /// would be left to take its copies, unless forced.
    async fn drain(&self, bookie: BookieId, is_forced: bool) -> Result<(), BookieRefusal>;
    /// Takes that back.
    async fn cancel_drain(&self, bookie: BookieId) -> Result<(), BookieRefusal>;
    /// Lets a drained bookie go for ever.
    async fn decommission(&self, bookie: BookieId) -> Result<(), BookieRefusal>;
    /// Ledgers that need repair.
    async fn under_replicated(&self) -> Result<Vec<UnderReplicatedRow>, BookieRefusal>;
}

impl From<BookieRefusal> for Refusal {
    fn from(refusal: BookieRefusal) -> Self {
        let status = match &refusal {
            BookieRefusal::Unknown(_) => StatusCode::NOT_FOUND,
            BookieRefusal::NotNow(_) => StatusCode::CONFLICT,
            BookieRefusal::Metadata(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, refusal.to_string())
    }
}

/// A bookie as told to the caller.
#[derive(Serialize)]
pub(crate) struct BookieAnswer {
    bookie: String,
    address: Option<String>,
    state: &'static str,
    registered: bool,
}

/// A flaw as told to the caller.
#[derive(Serialize)]
pub(crate) struct FlawAnswer {
    bookie: String,
    kind: crate::ledger::repair::FlawKind,
}

/// A ledger under repair as told to the caller.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnderReplicatedAnswer {
    ledger: u64,
    flaws: Vec<FlawAnswer>,
    repaired_by: Option<String>,
    entries_copied: u64,
    bytes_copied: u64,
}

/// `GET /admin/v2/bookies`.
pub(crate) async fn list(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<Vec<BookieAnswer>>, Refusal> {
    let rows = state.bookies()?.bookies().await?;
    let answer = |row: BookieRow| BookieAnswer {
        bookie: row.bookie.to_string(),
        address: row.address,
        state: row.state,
        registered: row.is_registered,
    };
    Ok(Json(rows.into_iter().map(answer).collect()))
}

/// `PUT /admin/v2/bookies/{bookie}/drain`.
pub(crate) async fn drain(
    State(state): State<Arc<AdminState>>,
    BookiePath(bookie): BookiePath,
    query: Query,
) -> Result<StatusCode, Refusal> {
    state.bookies()?.drain(bookie, query.flag("force")).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /admin/v2/bookies/{bookie}/drain`.
pub(crate) async fn cancel_drain(
    State(state): State<Arc<AdminState>>,
    BookiePath(bookie): BookiePath,
) -> Result<StatusCode, Refusal> {
    state.bookies()?.cancel_drain(bookie).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `PUT /admin/v2/bookies/{bookie}/decommission`.
pub(crate) async fn decommission(
    State(state): State<Arc<AdminState>>,
    BookiePath(bookie): BookiePath,
) -> Result<StatusCode, Refusal> {
    state.bookies()?.decommission(bookie).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /admin/v2/under-replicated`.
pub(crate) async fn under_replicated(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<Vec<UnderReplicatedAnswer>>, Refusal> {
    let rows = state.bookies()?.under_replicated().await?;
    let answer = |row: UnderReplicatedRow| UnderReplicatedAnswer {
        ledger: row.ledger.0,
        flaws: row
            .flaws
            .into_iter()
            .map(|flaw| FlawAnswer { bookie: flaw.bookie.to_string(), kind: flaw.kind })
            .collect(),
        repaired_by: row.progress.as_ref().map(|progress| progress.holder.clone()),
        entries_copied: row.progress.as_ref().map_or(0, |progress| progress.entries_copied),
        bytes_copied: row.progress.as_ref().map_or(0, |progress| progress.bytes_copied),
    };
    Ok(Json(rows.into_iter().map(answer).collect()))
}
