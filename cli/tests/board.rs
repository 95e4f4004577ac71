//! `weald board` as a program: it prints its address, answers, and ends in order when it is told to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

fn start(words: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    let command = command
        .arg("board")
        .args(words)
        .args(["--addr", "127.0.0.1:0", "--log", "off"]);
    let mut board = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(board.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .strip_prefix("http://")
        .unwrap_or_else(|| panic!("no address: {line}"));
    (board, address.split_whitespace().next().unwrap().to_owned())
}

fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let rest = format!(
        "Host: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    write!(stream, "{head} HTTP/1.1\r\n{rest}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Ends a board with SIGTERM; it must end well by itself.
fn end(mut board: Child) {
    let pid = rustix::process::Pid::from_child(&board);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(board.wait().unwrap().success());
}

#[test]
fn the_demo_has_boards_with_content() {
    let (board, address) = start(&["--demo"]);
    let page = ask(&address, "GET /", "");
    for title in ["Tea", "Garden", "About this board"] {
        assert!(page.contains(title), "{page}");
    }
    assert!(ask(&address, "GET /readyz", "").ends_with("ready\n"));
    end(board);
}

#[test]
fn what_was_acknowledged_is_there_after_an_end_of_any_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("boards");
    let words = [path.to_str().unwrap()];
    let (mut board, address) = start(&words);
    let created = ask(&address, "POST /api/boards", "{\"title\": \"Tea\"}");
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let said = "{\"title\": \"T\", \"text\": \"one\"}";
    assert!(ask(&address, "POST /api/boards/tea/messages", said).starts_with("HTTP/1.1 201"));
    board.kill().unwrap();
    board.wait().unwrap();

    let (board, address) = start(&words);
    assert!(ask(&address, "GET /api/boards/tea", "").contains("\"text\":\"one\""));
    end(board);
}

#[test]
fn a_board_needs_a_place() {
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
        command.arg("board").args(words).output().unwrap()
    };
    assert_eq!(command(&[]).status.code(), Some(2));
    let output = command(&["/dev/null/boards", "--log", "off"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cannot be opened"),
        "{output:?}"
    );
}
