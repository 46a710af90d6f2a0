//! How many messages an entry holds on average, to turn permits (messages) into entries to read.

/// Sums are halved at this many entries, so that the average follows a change of batching.
const WINDOW_ENTRIES: u64 = 1024;

/// A decaying mean in whole numbers: the same on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessagesPerEntry {
    entries: u64,
    messages: u64,
}

impl MessagesPerEntry {
    /// Counts one entry.
    pub(super) fn add(&mut self, messages: u32) {
        self.entries += 1;
        self.messages += u64::from(messages.max(1));
        if self.entries >= WINDOW_ENTRIES {
            self.entries /= 2;
            self.messages /= 2;
        }
    }

    /// Entries that probably hold `messages`, at least 1.
    pub(super) fn entries_for(&self, messages: u64) -> u64 {
        if self.messages == 0 {
            return messages.max(1);
        }
        // In u128 because permits come from the client.
        let entries = u128::from(messages) * u128::from(self.entries) / u128::from(self.messages);
        u64::try_from(entries).unwrap_or(u64::MAX).max(1)
    }
}
