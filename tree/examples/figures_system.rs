//! The tree's figures under the system's allocator; see `figures`.

#[path = "support/figures.rs"]
mod figures;

fn main() {
    figures::main();
}
