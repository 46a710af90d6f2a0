//! What a recording is made of.

/// What happened, as far as the world itself knows. Whoever makes the world notes things of its own, by numbers
/// from [`NOTES_BEGIN`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Happening {
    /// A node started: start number.
    Start,
    /// A node's process died: start number.
    Crash,
    /// A node lost power: start number.
    PowerLoss,
    /// A node was paused.
    Pause,
    /// A node went on.
    Resume,
    /// A task panicked; the text says which and how.
    Panic,
    /// A clock was set wrong; the text says how.
    ClockWrong,
    /// A clock was set right.
    ClockRight,
    /// Timers of a node fired: how many.
    Timer,
    /// A connection was asked for: to, connection.
    Connect,
    /// A segment was sent: to, connection, bytes; the text is what it carries.
    Send,
    /// A segment arrived: from, connection, bytes; the text is what it carries.
    Arrive,
    /// A directed link was cut: to.
    Cut,
    /// A directed link carries again: to.
    LinkHealed,
    /// A directed link got settings of its own: to; the text says which.
    LinkWorse,
    /// A directed link is as all others again: to.
    LinkBetter,
    /// All links were healed.
    AllHealed,
    /// The streams between two nodes were disturbed: other; the text says how.
    Streams,
    /// A disk operation: bytes, offset; the text is what and the file.
    Disk,
    /// A disk was made worse; the text says how.
    DiskWorse,
    /// A disk is sound again.
    DiskBetter,
    /// A disk stopped answering.
    DiskStalled,
    /// A disk answers again.
    DiskReleased,
    /// Bits at rest flipped: offset, bit; the text is the file.
    Rot,
    /// A disk was emptied.
    Wiped,
    /// Two disks were exchanged: other.
    Swapped,
    /// An index operation: changes; the text is which.
    Index,
    /// A fault that a rate asks for struck: its value; the text is its kind.
    Injected,
}

/// The first number of a note.
pub const NOTES_BEGIN: u8 = 64;

impl Happening {
    /// Every one.
    pub const ALL: [Self; 28] = [
        Self::Start,
        Self::Crash,
        Self::PowerLoss,
        Self::Pause,
        Self::Resume,
        Self::Panic,
        Self::ClockWrong,
        Self::ClockRight,
        Self::Timer,
        Self::Connect,
        Self::Send,
        Self::Arrive,
        Self::Cut,
        Self::LinkHealed,
        Self::LinkWorse,
        Self::LinkBetter,
        Self::AllHealed,
        Self::Streams,
        Self::Disk,
        Self::DiskWorse,
        Self::DiskBetter,
        Self::DiskStalled,
        Self::DiskReleased,
        Self::Rot,
        Self::Wiped,
        Self::Swapped,
        Self::Index,
        Self::Injected,
    ];

    /// What comes by the thousand: where there is not room for all, the oldest of it goes first.
    const fn is_traffic(self) -> bool {
        matches!(
            self,
            Self::Timer | Self::Connect | Self::Send | Self::Arrive | Self::Disk | Self::Index
        )
    }
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counted from 1, in the order things happened.
    pub number: u32,
    /// Virtual nanoseconds from the start of the run.
    pub at: u64,
    /// A [`Happening`], or a note's kind.
    pub kind: u8,
    /// The node, by order of creation from 1; 0 is the world.
    pub node: u32,
    /// The number of what led to it; 0 if nothing is known to have.
    pub cause: u32,
    /// By kind.
    pub facts: [i64; 3],
    /// Among the recording's texts; the first is empty.
    pub text: u32,
}

/// Something to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// A [`Happening`], or a number from [`NOTES_BEGIN`] on.
    pub kind: u8,
    /// Whom it happened to; `None` is whoever is at work.
    pub node: Option<u32>,
    /// What led to it; `None` is what whoever is at work was woken by.
    pub cause: Option<u32>,
    /// By kind.
    pub facts: [i64; 3],
    /// Without a cause given: owed to what whoever is at work did last, not to what woke it.
    pub follows: bool,
    /// In words.
    pub text: String,
    /// May be left out for newer ones of its sort.
    pub is_traffic: bool,
}

impl Note {
    /// Something of this kind.
    pub fn of(kind: u8) -> Self {
        Self { kind, ..Self::default() }
    }

    /// It happened to this node.
    pub fn on(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// With these facts.
    pub fn facts(mut self, facts: [i64; 3]) -> Self {
        self.facts = facts;
        self
    }

    /// In these words.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// It answers to what was done just before.
    pub fn following(mut self) -> Self {
        self.follows = true;
        self
    }

    /// This led to it.
    pub fn because(mut self, cause: u32) -> Self {
        self.cause = Some(cause);
        self
    }
}

impl From<Happening> for Note {
    fn from(kind: Happening) -> Self {
        Self { is_traffic: kind.is_traffic(), ..Self::of(kind as u8) }
    }
}

/// What was recorded of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// What is kept, in order of numbers.
    pub records: Vec<Record>,
    /// More that led to something, as (what, because of what), in the order it was noticed.
    pub more_causes: Vec<(u32, u32)>,
    /// What texts are.
    pub texts: Vec<String>,
    /// The nodes, in order of creation.
    pub nodes: Vec<String>,
    /// Records that there was no room for.
    pub left_out: u64,
}
