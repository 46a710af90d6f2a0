//! Single situations of the dispatch machine; random ones are in `proptests/dispatch_model.rs`.
