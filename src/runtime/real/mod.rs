//! Production: tokio, the operating system's sockets, files, clocks and entropy.
//! The one place that may call them.
