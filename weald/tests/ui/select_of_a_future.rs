//! A future is no event.

use weald::sync::{channel::Receiver, select};

async fn answer() -> u32 {
    42
}

async fn either(numbers: Receiver<u32>) {
    select! {
        number = numbers.receive() => drop(number),
        number = answer() => drop(number),
    }
}

fn main() {}
