//! A bookie of another node: adds on one long stream, batched by turn; reads and fences as single calls.
//!
//! Promise: every batch handed in is answered to its sink exactly once, also when the stream breaks, the
//! bookie never answers the connection, or too much is on its way.

mod client;
mod driver;
mod pending;

#[cfg(test)]
mod tests;

pub use client::{RemoteBookie, RemoteBookieConfig};
