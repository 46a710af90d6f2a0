//! Placeholder, replaced by the module's first commit.
