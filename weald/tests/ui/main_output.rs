//! A wrong result is an error in the line of the user.

#[weald::main]
async fn main() -> Result<(), weald::SpawnError> {
    7
}
