//! One binary of model and codec properties.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod metadata_store_model;
