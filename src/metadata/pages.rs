//! Everything under a prefix, asked for page by page. Not one moment's state: what changes between two pages
//! may be seen or not, but a key that is there all the time is seen once.

use super::{Metadata, MetadataError, Versioned};

/// Pairs asked for at once.
const PAGE: usize = 500;

/// A walk over the keys under a prefix, in order.
pub struct Pages<'a> {
    metadata: &'a Metadata,
    prefix: &'a str,
    /// The last key seen.
    after: Option<String>,
    /// A page that was not full was the last.
    ended: bool,
}

impl<'a> Pages<'a> {
    /// A walk from the first key.
    pub const fn new(metadata: &'a Metadata, prefix: &'a str) -> Self {
        Self { metadata, prefix, after: None, ended: false }
    }

    /// The next pairs, `None` after the last. After an error it may be asked again.
    pub async fn next(&mut self) -> Result<Option<Vec<(String, Versioned)>>, MetadataError> {
        if self.ended {
            return Ok(None);
        }
        let page = self.metadata.list(self.prefix, self.after.as_deref(), PAGE).await?;
        match page.last() {
            Some((last, _)) if page.len() == PAGE => self.after = Some(last.clone()),
            _ => self.ended = true,
        }
        Ok(Some(page))
    }
}
