//! `weald board` as a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Far longer than anything takes that does not hang.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A board that is killed if its test fails, which nobody would end otherwise.
pub(crate) struct Board(pub(crate) Child);

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a board at an address, such as `127.0.0.1:0`. Returns it when it can be reached, with its address.
pub(crate) fn start_at(address: &str, words: &[&str]) -> (Board, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    let command = command
        .arg("board")
        .args(words)
        .args(["--addr", address, "--log", "off"]);
    start(command)
}

/// Starts a board by a command. Returns it when it can be reached, with its address.
pub(crate) fn start(command: &mut Command) -> (Board, String) {
    let mut board = Board(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(board.0.stdout.take().unwrap());
    let (sender, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = output.read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = line.recv_timeout(MINUTE);
    let line = line.expect("the board prints its address within a minute");
    let address = line
        .strip_prefix("http://")
        .unwrap_or_else(|| panic!("no address: {line}"));
    (board, address.split_whitespace().next().unwrap().to_owned())
}
