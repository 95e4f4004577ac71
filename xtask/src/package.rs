//! The routine `cargo xtask package`: packs every crate, and builds each from what was packed.
//!
//! Cargo keeps what it has built of a version of a package from a registry, and treats the packed crates as such
//! packages. So a second run in the same folder would build a changed crate against what its neighbours were before.
//! Each run therefore begins with an empty folder, which is its own.

use std::fs;
use std::io::ErrorKind;

use crate::checkout::{Checkout, run};

/// Packs the crates as they stand in the checkout, committed or not, and builds them.
pub fn package(checkout: &Checkout) -> Result<(), String> {
    let place = checkout.target().join("packed");
    match fs::remove_dir_all(&place) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            let place = place.display();
            return Err(format!(
                "What an earlier run has built cannot be removed from {place}: {e}. Remove that folder."
            ));
        }
        _ => {}
    }
    let mut command = checkout.cargo("package --workspace --allow-dirty --target-dir");
    run(command.arg(place))
}
