//! A program of Weald is an `async fn`.

#[weald::main]
fn main() {}
