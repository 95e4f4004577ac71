//! Requests to a board, of any content: each gets an answer, and none says that the server has failed. A board that a
//! moderator has brought in leaves with all its messages, and what leaves can arrive again.
//!
//! The board lives as long as the program, so what one input has written is there for the next one.

#![no_main]
#![allow(
    unsafe_code,
    reason = "AddressSanitizer asks a C function for its options"
)]

#[path = "board/import.rs"]
mod import;

use std::ffi::c_char;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{OnceLock, mpsc};
use std::thread;

use import::{Import, lines, sound};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use weald_board::model::Hashed;
use weald_board::{Config, serve};

/// AddressSanitizer must keep frames on the real stacks, between which the kernel switches. It does not look there for
/// what the board, which lives on, still refers to, so it would call that lost.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"detect_stack_use_after_return=0:detect_leaks=0".as_ptr()
}

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"];

/// What an address is made of.
const PARTS: [&str; 40] = [
    "b",
    "api",
    "boards",
    "tea",
    "messages",
    "1",
    "2",
    "3",
    "history",
    "delete",
    "restore",
    "undo",
    "erase",
    "moderate",
    "answer",
    "edit",
    "write",
    "search",
    "feed",
    "live",
    "events",
    "export",
    "import",
    "names",
    "change",
    "release",
    "free",
    "passphrase",
    "moderators",
    "audit",
    "new",
    "admin",
    "sign-out",
    "get",
    "create",
    "healthz",
    "readyz",
    "metrics",
    "openapi.json",
    "live.js",
];

/// What a form, a query or an object in JSON has.
const FIELDS: [&str; 24] = [
    "title",
    "text",
    "author",
    "about",
    "board",
    "message",
    "parent",
    "version",
    "page",
    "q",
    "after",
    "at",
    "before",
    "token",
    "proof",
    "passphrase",
    "name",
    "new",
    "measure",
    "why",
    "to",
    "from",
    "key",
    "since",
];

/// Each with the part of a value that is no choice.
const HEADERS: [(&str, &str); 14] = [
    ("Accept", ""),
    ("Content-Type", "application/json"),
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Content-Type", ""),
    ("Authorization", "Bearer "),
    ("Cookie", "visitor="),
    ("Cookie", ""),
    ("If-Match", "\""),
    ("If-None-Match", "\""),
    ("Last-Event-ID", ""),
    ("Idempotency-Key", ""),
    ("Origin", "http://"),
    ("X-Forwarded-For", ""),
    ("Accept-Encoding", ""),
];

/// What the moderator signs in with.
const PASSPHRASE: &str = "correct horse battery";

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Asked(Asked<'a>),
    Import(Import<'a>),
}

#[derive(Arbitrary, Debug)]
struct Asked<'a> {
    is_moderator: bool,
    method: u8,
    path: Vec<Part<'a>>,
    query: Vec<(u8, &'a str)>,
    headers: Vec<(u8, &'a str)>,
    body: Body<'a>,
}

#[derive(Arbitrary, Debug)]
enum Part<'a> {
    Known(u8),
    Any(&'a str),
}

#[derive(Arbitrary, Debug)]
enum Body<'a> {
    None,
    Form(Vec<(u8, &'a str)>),
    Object(Vec<(u8, Value<'a>)>),
    Lines(Vec<&'a str>),
    Any(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Value<'a> {
    Text(&'a str),
    Number(i64),
    Null,
    List(Vec<&'a str>),
}

fuzz_target!(|input: Input<'_>| {
    static BOARD: OnceLock<(SocketAddr, String)> = OnceLock::new();
    let (address, key) = BOARD.get_or_init(board);
    match input {
        Input::Asked(asked) => _ = answer(*address, &request(&asked, key)),
        Input::Import(import) => _ = arrive(*address, key, &import),
    }
});

/// Brings a board in. If it is taken, it leaves with all messages, and arrives again under another name. Returns
/// whether it was taken.
fn arrive(address: SocketAddr, key: &str, import: &Import<'_>) -> bool {
    let sent = lines(import);
    let (status, _) = post(address, "/api/import", key, &sent);
    if status != 201 {
        return false;
    }
    let place = format!("GET /api/boards/i{}/export HTTP/1.0\r\n", import.name);
    let head = format!("{place}Host: localhost\r\nAuthorization: Bearer {key}\r\n\r\n");
    let (status, left) = whole(address, head.as_bytes());
    let count = sent.split('\n').filter(|line| !line.is_empty()).count();
    assert_eq!(
        (status, left.lines().count()),
        (200, count),
        "{sent} {left}"
    );
    let name = format!("\"name\":\"i{}\"", import.name);
    assert!(left.contains(&name), "{left}");
    let other = left.replacen(&name, &format!("\"name\":\"j{}\"", import.name), 1);
    let (status, why) = post(address, "/api/import", key, &other);
    assert_eq!(status, 201, "{why} {other}");
    true
}

/// Starts a board that has two messages, and signs a moderator in. Returns the moderator's key.
fn board() -> (SocketAddr, String) {
    let (sender, address) = mpsc::channel();
    thread::spawn(move || {
        weald::block_on(async move {
            let config = Config {
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                reads: None,
                writes: None,
                tries: None,
                has_get_writes: true,
                moderator: Some(Hashed::of(PASSPHRASE)),
                ..Config::default()
            };
            let board = serve(config).await.expect("a board in memory starts");
            sender
                .send(board.address())
                .expect("the fuzzer waits for it");
            std::future::pending::<()>().await;
        });
    });
    let address = address.recv().expect("the board has started");
    for path in [
        "/get/create?title=Tea",
        "/get/write?board=tea&title=Green&text=*Green*",
        "/get/write?board=tea&text=Black&parent=2",
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let status = answer(address, request.as_bytes());
        assert!((200..500).contains(&status), "{path}: {status}");
    }
    let who = serde_json::json!({ "name": "Ada", "passphrase": PASSPHRASE });
    let (status, told) = post(address, "/api/moderators", "", &who.to_string());
    assert_eq!(status, 201, "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("an answer in JSON");
    let key = told["key"].as_str().expect("the session's key").to_owned();
    assert!(arrive(address, &key, &sound()), "a sound board is taken");
    (address, key)
}

/// Sends a body with the key of a moderator, if there is one yet. Returns the status and the answer.
fn post(address: SocketAddr, path: &str, key: &str, body: &str) -> (u16, String) {
    let mut request = format!("POST {path} HTTP/1.0\r\nHost: localhost\r\n");
    if !key.is_empty() {
        _ = write!(request, "Authorization: Bearer {key}\r\n");
    }
    let length = body.len();
    _ = write!(
        request,
        "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    whole(address, request.as_bytes())
}

/// Sends a request of HTTP/1.0, whose answer ends with the connection. Returns the status and the body.
fn whole(address: SocketAddr, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the board listens");
    // As in `answer`.
    let _is_read = stream.write_all(request);
    let mut answer = Vec::new();
    let _is_whole = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status: u16 = status.unwrap_or_else(|| panic!("no answer, but {answer:?}"));
    assert!(status < 500, "{answer}");
    (status, body.to_owned())
}

fn request(asked: &Asked<'_>, key: &str) -> Vec<u8> {
    let mut head = METHODS[usize::from(asked.method) % METHODS.len()].to_owned();
    head.push(' ');
    for part in &asked.path {
        head.push('/');
        match part {
            Part::Known(at) => head += PARTS[usize::from(*at) % PARTS.len()],
            Part::Any(text) => encode(&mut head, text),
        }
    }
    if asked.path.is_empty() {
        head.push('/');
    }
    head.push('?');
    pairs(&mut head, &asked.query);
    head += " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    if asked.is_moderator {
        _ = write!(head, "Authorization: Bearer {key}\r\n");
    }
    for (at, value) in &asked.headers {
        let (name, begin) = HEADERS[usize::from(*at) % HEADERS.len()];
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let end = if begin.ends_with('"') { "\"" } else { "" };
        _ = write!(head, "{name}: {begin}{value}{end}\r\n");
    }
    let body = body(&asked.body);
    _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

fn body(body: &Body<'_>) -> Vec<u8> {
    let text = |value: &str| serde_json::Value::from(value);
    match body {
        Body::None => Vec::new(),
        Body::Any(bytes) => bytes.to_vec(),
        Body::Lines(lines) => lines.join("\n").into_bytes(),
        Body::Form(fields) => {
            let mut form = String::new();
            pairs(&mut form, fields);
            form.into_bytes()
        }
        Body::Object(members) => {
            let members = members.iter().map(|(at, value)| {
                let value = match value {
                    Value::Text(value) => text(value),
                    Value::Number(value) => (*value).into(),
                    Value::Null => serde_json::Value::Null,
                    Value::List(values) => values.iter().map(|it| text(it)).collect(),
                };
                (FIELDS[usize::from(*at) % FIELDS.len()].to_owned(), value)
            });
            let object: serde_json::Map<_, _> = members.collect();
            serde_json::Value::Object(object).to_string().into_bytes()
        }
    }
}

fn pairs(out: &mut String, pairs: &[(u8, &str)]) {
    for (at, value) in pairs {
        *out += FIELDS[usize::from(*at) % FIELDS.len()];
        out.push('=');
        encode(out, value);
        out.push('&');
    }
}

fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(byte.into()),
            _ => _ = write!(out, "%{byte:02x}"),
        }
    }
}

/// Sends a request, and reads the head of the answer, because some answers have no end. Returns the status.
fn answer(address: SocketAddr, request: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).expect("the board listens");
    // The board may answer and close before it has read all.
    let _is_read = stream.write_all(request);
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => head.extend_from_slice(&piece[..count]),
        }
    }
    let shown = String::from_utf8_lossy(&head);
    let status = shown
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let status = status.and_then(|status| status.parse().ok());
    let status: u16 = status.unwrap_or_else(|| panic!("no answer, but {shown:?}"));
    assert!(status < 500, "{shown}");
    status
}
