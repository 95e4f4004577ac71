//! The tree's figures under mimalloc: `cargo run --release -p weald-tree --example figures`.

#[path = "support/figures.rs"]
mod figures;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    figures::main();
}
