//! One binary of model and codec properties.
