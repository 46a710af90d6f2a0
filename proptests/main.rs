//! One binary of model and codec properties.

mod hostile;
mod pulsar_codec;
