//! Tests of the visitors of a measured board.

use super::*;
use std::net::TcpListener;
use std::thread;

/// A server that answers each request with its path, in two pieces; `/no` is refused. It closes the connection after
/// `/bye`, in place of an answer to `/gone`, and between the pieces of `/half`.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut request = [0; 64];
                while let Ok(count @ 1..) = stream.read(&mut request) {
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let path = text.split(' ').nth(1).unwrap().to_owned();
                    if path == "/gone" {
                        break;
                    }
                    let status = if path == "/no" { "404 No" } else { "200 OK" };
                    let length = path.len();
                    let head = format!("HTTP/1.1 {status}\r\nContent-length: {length}\r\n\r\n");
                    stream.write_all(head.as_bytes())?;
                    if path == "/half" {
                        break;
                    }
                    thread::yield_now();
                    stream.write_all(path.as_bytes())?;
                    if path == "/bye" {
                        break;
                    }
                }
                Ok::<_, io::Error>(())
            });
        }
    });
    address
}

#[test]
fn answers_of_any_length_are_read_and_wrong_ones_counted() {
    let mut visitors = Visitors::connect(serve(), 4).unwrap();
    assert!(visitors.once(b"GET /tea x").unwrap().ends_with(b"/tea"));
    assert!(visitors.once(b"GET /no x").unwrap_err().contains("404"));
    let mut number = 0;
    let mut ask = |request: &mut Vec<u8>| {
        number += 1;
        let path = if number % 10 == 0 {
            "no".to_owned()
        } else {
            "a".repeat(number)
        };
        request.extend_from_slice(format!("GET /{path} x").as_bytes());
    };
    let mut others = |request: &mut Vec<u8>| request.extend_from_slice(b"GET /other x");
    let mut visits = [
        Visit {
            visitors: 0..3,
            ask: &mut ask,
            accepts: |answer| !answer.ends_with(b"/a"),
            per_second: None,
        },
        Visit {
            visitors: 3..4,
            ask: &mut others,
            accepts: |answer| answer.ends_with(b"/other"),
            per_second: Some(1e6),
        },
    ];
    let [first, second] = &visitors.visit(&mut visits, 30).unwrap()[..] else {
        panic!("two visits have two outcomes");
    };
    // Three were refused, and one was not accepted.
    assert_eq!((first.times.len(), first.errors), (30, 4));
    assert_eq!(second.errors, 0);
    assert!(!second.times.is_empty());
}

#[test]
fn visitors_take_turns() {
    let mut visitors = Visitors::connect(serve(), 3).unwrap();
    let begun = Instant::now();
    let mut visits = [Visit {
        visitors: 0..3,
        ask: &mut |request| request.extend_from_slice(b"GET /tea x"),
        accepts: |_| true,
        // Slow enough for each answer to come before the next request.
        per_second: Some(50.0),
    }];
    visitors.visit(&mut visits, 3).unwrap();
    assert!(visitors.visitors.iter().all(|it| it.asked >= begun));
}

#[test]
fn a_visitor_connects_again_if_the_server_closes_a_quiet_connection() {
    let mut visitors = Visitors::connect(serve(), 2).unwrap();
    visitors.once(b"GET /bye x").unwrap();
    visitors.visitors[0].quiet_since -= KEPT;
    // The end arrives.
    visitors.wait(TIME_LIMIT).unwrap();
    visitors.note_answers(&[], &mut []).unwrap();
    assert!(visitors.once(b"GET /tea x").unwrap().ends_with(b"/tea"));
}

#[test]
fn a_connection_that_ends_before_an_answer_is_an_error() {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    // It was due long ago.
    let due = Instant::now() - KEPT;
    visitors.send(0, (0, due), b"GET /gone x").unwrap();
    visitors.wait(TIME_LIMIT).unwrap();
    let sentence = visitors.note_answers(&[], &mut []).unwrap_err();
    assert!(sentence.contains("0 bytes of the answer"), "{sentence}");
}

#[test]
fn a_connection_that_ends_soon_after_an_answer_is_an_error() {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    visitors.once(b"GET /bye x").unwrap();
    // The answer took long, and a slow machine makes no difference.
    visitors.visitors[0].asked -= KEPT;
    visitors.visitors[0].quiet_since = Instant::now() + KEPT;
    visitors.wait(TIME_LIMIT).unwrap();
    let sentence = visitors.note_answers(&[], &mut []).unwrap_err();
    assert!(sentence.contains("nothing was asked"), "{sentence}");
}

#[test]
fn a_connection_is_quiet_since_its_last_answer() {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    visitors.visitors[0].quiet_since -= KEPT;
    let begun = Instant::now();
    visitors.once(b"GET /tea x").unwrap();
    assert!(visitors.visitors[0].quiet_since >= begun);
}

#[test]
fn a_visit_hears_first_which_connections_were_closed() {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    visitors.once(b"GET /bye x").unwrap();
    visitors.visitors[0].quiet_since = Instant::now() + KEPT;
    visitors.wait(TIME_LIMIT).unwrap();
    visitors.reports.clear();
    let mut visits = [Visit {
        visitors: 0..1,
        ask: &mut |_| panic!("Nothing is asked on a closed connection."),
        accepts: |_| true,
        per_second: None,
    }];
    let sentence = visitors.visit(&mut visits, 1).unwrap_err();
    assert!(sentence.contains("nothing was asked"), "{sentence}");
}

#[test]
fn a_request_that_crosses_a_close_is_sent_again() {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    let due = Instant::now();
    visitors.once(b"GET /bye x").unwrap();
    visitors.visitors[0].quiet_since -= KEPT;
    visitors.send(0, (0, due), b"GET /tea x").unwrap();
    let time = loop {
        visitors.wait(TIME_LIMIT).unwrap();
        visitors.reports.clear();
        if let Some(time) = visitors.hear(0).unwrap() {
            break time;
        }
    };
    let visitor = &visitors.visitors[0];
    assert!(visitor.answer.ends_with(b"/tea"));
    assert_eq!(time, visitor.quiet_since - due);
}

/// The sentence of a request on a quiet connection, and whether the visitor has connected again.
fn asked_on_a_quiet_connection(request: &[u8]) -> (String, bool) {
    let mut visitors = Visitors::connect(serve(), 1).unwrap();
    let port = |visitors: &Visitors| visitors.visitors[0].stream.local_addr().unwrap();
    let before = port(&visitors);
    visitors.visitors[0].quiet_since -= KEPT;
    let sentence = visitors.once(request).unwrap_err();
    (sentence, port(&visitors) != before)
}

#[test]
fn a_request_that_is_never_answered_is_sent_again_once() {
    let (sentence, is_again) = asked_on_a_quiet_connection(b"GET /gone x");
    assert!(sentence.contains("0 bytes of the answer"), "{sentence}");
    assert!(is_again);
}

#[test]
fn a_request_with_half_of_an_answer_is_not_sent_again() {
    let (sentence, is_again) = asked_on_a_quiet_connection(b"GET /half x");
    assert!(sentence.contains("bytes of the answer"), "{sentence}");
    assert!(!sentence.contains("when 0 bytes"), "{sentence}");
    assert!(!is_again);
}

#[test]
fn the_head_says_how_long_an_answer_is() {
    assert_eq!(
        length(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n"),
        Ok(None)
    );
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nab";
    assert_eq!(length(whole), Ok(Some(whole.len() + 3)));
    assert!(length(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nab").is_err());
}

#[test]
fn visitors_that_stay_awake_are_answered() {
    let mut visitors = Visitors::connect(serve(), 2).unwrap();
    visitors.stay_awake();
    let mut visits = [Visit {
        visitors: 0..2,
        ask: &mut |request| request.extend_from_slice(b"GET /tea x"),
        accepts: |answer| answer.ends_with(b"/tea"),
        per_second: None,
    }];
    let visited = visitors.visit(&mut visits, 20).unwrap().swap_remove(0);
    assert_eq!((visited.times.len(), visited.errors), (20, 0));
}
