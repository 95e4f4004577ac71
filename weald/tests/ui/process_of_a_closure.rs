//! The body of a process is `async`.

use weald::process::{self, Inbox};

fn main() {
    let _ = process::spawn(|_inbox: Inbox<u32>| 42);
}
