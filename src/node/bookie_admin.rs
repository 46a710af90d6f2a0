//! Answers the admin front end about bookies, out of metadata: the same on every node.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use super::bookie_registry::{BOOKIES_PREFIX, BookieRecord, COOKIES_PREFIX, CookieRecord};
use crate::domain::BookieId;
use crate::frontend::admin::{BookieAdmin, BookieRefusal, BookieRow, UnderReplicatedRow};
use crate::ledger::repair::{
    DrainRecord, DrainState, Drains, Markers, RepairProgress, names_bookie,
};
use crate::metadata::{Expect, Metadata, MetadataError, Pages, Versioned};

/// See the module.
pub(super) struct ClusterBookies {
    metadata: Metadata,
    drains: Drains,
    markers: Markers,
    /// Bookies that a new ledger needs.
    ensemble: u32,
}

impl ClusterBookies {
    pub(super) fn new(metadata: Metadata, ensemble: u32) -> Self {
        let (drains, markers) = (Drains::new(metadata.clone()), Markers::new(metadata.clone()));
        Self { metadata, drains, markers, ensemble }
    }

    async fn list<T: DeserializeOwned>(&self, prefix: &str) -> Result<Vec<T>, MetadataError> {
        let mut found = Vec::new();
        let mut pages = Pages::new(&self.metadata, prefix);
        while let Some(page) = pages.next().await? {
            let decode = |(key, value): &(String, Versioned)| {
                serde_json::from_slice(&value.value)
                    .inspect_err(|error| tracing::warn!(key, %error, "a record cannot be read"))
                    .ok()
            };
            found.extend(page.iter().filter_map(decode));
        }
        Ok(found)
    }

    async fn registrations(&self) -> Result<BTreeMap<BookieId, BookieRecord>, MetadataError> {
        let mut found = BTreeMap::new();
        let mut pages = Pages::new(&self.metadata, BOOKIES_PREFIX);
        while let Some(page) = pages.next().await? {
            for (key, value) in &page {
                if let Some(id) = BookieRecord::bookie_of(key)
                    && let Ok(record) = serde_json::from_slice(&value.value)
                {
                    found.insert(id, record);
                }
            }
        }
        Ok(found)
    }

    async fn known(&self, bookie: BookieId) -> Result<(), BookieRefusal> {
        match self.metadata.get(&CookieRecord::key(bookie)).await? {
            Some(_) => Ok(()),
            None => Err(BookieRefusal::Unknown(bookie)),
        }
    }
}

#[async_trait]
impl BookieAdmin for ClusterBookies {
    async fn bookies(&self) -> Result<Vec<BookieRow>, BookieRefusal> {
        let cookies: Vec<CookieRecord> = self.list(COOKIES_PREFIX).await?;
        let drains: Vec<DrainRecord> = self.list(DrainRecord::PREFIX).await?;
        let registered = self.registrations().await?;
        let drains: BTreeMap<BookieId, DrainState> =
            drains.into_iter().map(|drain| (drain.bookie, drain.state)).collect();
        let addresses: BTreeMap<BookieId, String> =
            cookies.into_iter().map(|cookie| (cookie.bookie, cookie.address)).collect();
        let all: BTreeSet<BookieId> =
            addresses.keys().chain(registered.keys()).chain(drains.keys()).copied().collect();
        Ok(all
            .into_iter()
            .map(|bookie| {
                let registration = registered.get(&bookie);
                let state = match (drains.get(&bookie), registration) {
                    (Some(DrainState::Decommissioned), _) => "decommissioned",
                    (Some(DrainState::Drained), _) => "drained",
                    (Some(DrainState::Draining), _) => "draining",
                    (None, None) => "missing",
                    (None, Some(registration)) if registration.writable => "serving",
                    (None, Some(_)) => "read-only",
                };
                let address = registration
                    .map(|registration| registration.address.clone())
                    .or_else(|| addresses.get(&bookie).cloned());
                BookieRow { bookie, address, state, is_registered: registration.is_some() }
            })
            .collect())
    }

    async fn drain(&self, bookie: BookieId, is_forced: bool) -> Result<(), BookieRefusal> {
        self.known(bookie).await?;
        let rows = self.bookies().await?;
        let takes_copies = |row: &&BookieRow| row.bookie != bookie && row.state == "serving";
        let others = rows.iter().filter(takes_copies).count();
        let needed = self.ensemble as usize;
        if others < needed && !is_forced {
            let reason = format!(
                "{others} other bookies take writes and {needed} are needed: new ledgers could not be \
                 opened, and its copies would have nowhere to go"
            );
            return Err(BookieRefusal::NotNow(reason));
        }
        Ok(self.drains.begin(bookie).await?)
    }

    async fn cancel_drain(&self, bookie: BookieId) -> Result<(), BookieRefusal> {
        match self.drains.cancel(bookie).await? {
            true => Ok(()),
            false => Err(BookieRefusal::NotNow("the bookie has left already".to_owned())),
        }
    }

    async fn decommission(&self, bookie: BookieId) -> Result<(), BookieRefusal> {
        match self.drains.get(bookie).await?.map(|drain| drain.state) {
            Some(DrainState::Drained | DrainState::Decommissioned) => {}
            Some(DrainState::Draining) => {
                let reason = "ledgers still name the bookie: wait until it is drained";
                return Err(BookieRefusal::NotNow(reason.to_owned()));
            }
            None => {
                return Err(BookieRefusal::NotNow("drain the bookie first".to_owned()));
            }
        }
        // The auditor saw it drained a while ago; a ledger may have been given to it since.
        if names_bookie(&self.metadata, bookie).await? {
            self.drains.set(bookie, DrainState::Draining).await?;
            let reason = "a ledger names the bookie again: wait until it is drained";
            return Err(BookieRefusal::NotNow(reason.to_owned()));
        }
        self.drains.set(bookie, DrainState::Decommissioned).await?;
        // Without its cookie it can never start as itself again.
        match self.metadata.delete(&CookieRecord::key(bookie), Expect::Any).await {
            Err(MetadataError::VersionMismatch { found: None, .. }) => Ok(()),
            other => Ok(other?),
        }
    }

    async fn under_replicated(&self) -> Result<Vec<UnderReplicatedRow>, BookieRefusal> {
        let markers = self.markers.list().await?;
        let locks: Vec<RepairProgress> = self.list(RepairProgress::PREFIX).await?;
        let mut locks: BTreeMap<_, _> = locks.into_iter().map(|lock| (lock.ledger, lock)).collect();
        Ok(markers
            .into_iter()
            .map(|marker| {
                let progress = locks.remove(&marker.ledger);
                UnderReplicatedRow { ledger: marker.ledger, flaws: marker.flaws, progress }
            })
            .collect())
    }
}
