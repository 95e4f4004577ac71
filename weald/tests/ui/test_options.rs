//! A test has one option and no parameters, and is a test already.

#[weald::test(seed = 1, workers = 2)]
async fn two() {}

#[weald::test]
async fn parameter(_seed: u64) {}

#[weald::test]
#[test]
async fn twice() {}

fn main() {}
