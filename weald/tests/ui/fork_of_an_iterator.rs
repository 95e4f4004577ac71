//! An iterator is no collection that `fork` can divide.

fn main() {
    let lines = "a\nb".lines();
    weald::fork::for_each(lines, |line| println!("{line}"));
}
