//! An option that a program does not have.

#[weald::main(threads = 2)]
async fn main() {}
