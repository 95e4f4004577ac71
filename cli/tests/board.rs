//! `weald board` as a program: it prints its address, answers, and ends in order when it is told to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;

#[path = "support/board.rs"]
mod support;

use support::{Board, MINUTE, start_at};

fn start(words: &[&str]) -> (Board, String) {
    start_at("127.0.0.1:0", words)
}

fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(MINUTE)).unwrap();
    stream.set_write_timeout(Some(MINUTE)).unwrap();
    let length = body.len();
    let rest = format!(
        "Host: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    write!(stream, "{head} HTTP/1.1\r\n{rest}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    read.unwrap_or_else(|error| panic!("{head} got no whole answer in a minute: {error}"));
    answer
}

/// Ends a board with SIGTERM; it must end well by itself.
fn end(mut board: Board) {
    let pid = rustix::process::Pid::from_child(&board.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(board.0.wait()));
    let ended = ended.recv_timeout(MINUTE).unwrap_or_else(|_| {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("SIGTERM does not end the board");
    });
    let status = ended.unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn the_demo_has_boards_with_content() {
    let (board, address) = start(&["--demo"]);
    let page = ask(&address, "GET /", "");
    for title in ["Tea", "Garden", "About this board"] {
        assert!(page.contains(title), "{page}");
    }
    let garden = ask(&address, "GET /b/garden", "");
    assert!(
        garden.contains("days ago") && garden.contains("minutes ago"),
        "{garden}"
    );
    // What is days old can be seen as it was then.
    let days = garden.split("days ago").next().unwrap();
    let (_, then) = days.rsplit_once("datetime=\"").unwrap();
    let then = then.split('"').next().unwrap();
    let past = ask(&address, &format!("GET /b/garden?at={then}"), "");
    assert!(
        past.starts_with("HTTP/1.1 200") && past.contains("This is the past."),
        "{past}"
    );
    assert!(ask(&address, "GET /readyz", "").ends_with("ready\n"));
    end(board);
}

/// The first touch of a huge page takes milliseconds, in which a worker would answer nobody.
#[cfg(target_os = "linux")]
#[test]
fn the_board_takes_no_huge_pages() {
    let (board, _) = start(&["--demo"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", board.0.id())).unwrap();
    let told = status.lines().find(|it| it.starts_with("THP_enabled:"));
    assert!(told.is_none_or(|told| told.ends_with('0')), "{told:?}");
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
    board.0.kill().unwrap();
    board.0.wait().unwrap();

    let (board, address) = start(&words);
    assert!(ask(&address, "GET /api/boards/tea", "").contains("\"text\":\"one\""));
    end(board);
}

#[test]
fn settings_come_from_a_file_and_a_wrong_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [path, config] = ["boards", "board.toml"].map(|name| directory.path().join(name));
    let text = format!(
        "directory = {:?}\ntitle = \"From a file\"\n",
        path.display()
    );
    std::fs::write(&config, &text).unwrap();
    let config = config.to_str().unwrap();
    let (board, address) = start(&["--config", config]);
    assert!(ask(&address, "GET /", "").contains("· From a file</title>"));
    end(board);
    std::fs::write(config, format!("{text}adr = 1\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    let output = command
        .args(["board", "--config", config])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("board.toml, line 3: unknown field `adr`"),
        "{told}"
    );
}

/// An option wins over a variable, and a variable over the file.
#[test]
fn each_setting_comes_from_the_nearest_place() {
    let directory = tempfile::tempdir().unwrap();
    let [path, config] = ["boards", "board.toml"].map(|name| directory.path().join(name));
    let text = "title = \"From a file\"\nreads = 1\naddr = \"127.0.0.1:1\"\nlog = \"off\"\n";
    std::fs::write(&config, text).unwrap();
    let titles = [
        (None, "From a variable"),
        (Some("--title=From an option"), "From an option"),
    ];
    for (option, title) in titles {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
        let command = command
            .arg("board")
            .args(option)
            .env("WEALD_BOARD_CONFIG", &config)
            .env("WEALD_BOARD_DIR", &path)
            .env("WEALD_BOARD_ADDR", "127.0.0.1:0")
            .env("WEALD_BOARD_TITLE", "From a variable")
            .env("WEALD_BOARD_GET_WRITES", "true");
        let (board, address) = support::start(command);
        assert!(ask(&address, "GET /", "").contains(&format!("· {title}</title>")));
        let written = ask(&address, "GET /get/create?title=Tea", "");
        assert!(written.starts_with("HTTP/1.1 2"), "{written}");
        // Six at once, and one a second.
        let refused = (0..20).any(|_| ask(&address, "GET /", "").starts_with("HTTP/1.1 429"));
        assert!(refused, "the file says that one may read once a second");
        end(board);
        std::fs::remove_dir_all(&path).unwrap();
    }
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
