//! Commands that are longer than one line of cargo.
fn main() {}
