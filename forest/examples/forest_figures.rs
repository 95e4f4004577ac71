//! The figures of the forest under mimalloc: `cargo run --release -p weald-forest --example forest_figures`.

#[path = "support/figures.rs"]
mod figures;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    figures::main();
}
