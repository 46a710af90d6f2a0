//! One binary of model and codec properties.

mod dispatch_model;
