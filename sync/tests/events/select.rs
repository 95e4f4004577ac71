//! The macro: handlers are part of the caller's own function.

use weald_sync::{
    Event, Mutex, Wait, always,
    channel::{self, Closed, Receiver},
    cml::Multicast,
    never, select,
};

/// Sums until a stop. `?`, `break`, `continue`, `return` and `.await` belong to this function.
async fn sum(numbers: &Receiver<u32>, stop: &Receiver<()>) -> Result<u32, Closed> {
    let mut sum = 0;
    'all: loop {
        select! {
            number = numbers.receive() => {
                let number = number?;
                if number == 0 {
                    continue 'all;
                }
                if number == 99 {
                    return Ok(99);
                }
                sum += always(number).await;
            }
            _ = stop.receive() => break 'all,
        }
    }
    Ok(sum)
}

fn run(values: &[u32], stops: bool) -> Result<u32, Closed> {
    let ((sender, numbers), (stop, stopped)) = (channel::unbounded(), channel::rendezvous());
    values.iter().for_each(|n| sender.try_send(*n).unwrap());
    let mut wait = crate::hand::hand(sum(&numbers, &stopped));
    if !stops {
        drop(sender);
        return wait.ready();
    }
    assert!(wait.is_pending());
    stop.try_send(()).unwrap();
    wait.ready()
}

#[test]
fn handlers_leave_the_function_as_they_like() {
    assert_eq!(run(&[1, 0, 2], true), Ok(3));
    assert_eq!(run(&[1, 2], false), Err(Closed));
    assert_eq!(run(&[1, 99, 2], false), Ok(99));
}

#[test]
fn branches_are_written_with_and_without_commas() {
    let n: u32 = select! { wait; n = always(1) => n };
    let m: u32 = select! { wait; n = always(1) => n, };
    let k = select! { wait; n = always(1) => { n } () = never() => { 0 } };
    let l = select! { wait; n = always(1) => { n }, () = never() => 0, };
    let (i, _) = select! { wait; (a, [b, _]) = always((1, [2, 3])) => (a, b) };
    assert_eq!((n, m, k, l, i), (1, 1, 1, 1, 1));
}

#[test]
fn any_number_of_branches() {
    let chosen = select! {
        wait;
        () = never() => 0,
        () = never() => 1,
        () = never() => 2,
        () = never() => 3,
        () = never() => 4,
        () = never() => 5,
        () = never() => 6,
        () = never() => 7,
        () = never() => 8,
        () = never() => 9,
        () = never() => 10,
        () = never() => 11,
        () = never() => 12,
        () = always(()) => 13,
    };
    assert_eq!(chosen, 13);
}

#[test]
fn else_never_waits() {
    let (sender, receiver) = channel::unbounded();
    let look = || {
        select! {
            received = receiver.receive() => received.ok(),
            () = never() => None,
            else => Some(0),
        }
    };
    assert_eq!(look(), Some(0));
    sender.try_send(5).unwrap();
    assert_eq!(look(), Some(5));
    assert_eq!(receiver.waiting(), 0);
}

#[test]
fn the_events_are_gone_when_the_handler_runs() {
    let channel = Multicast::new();
    let (mut port, mutex) = (channel.port(), Mutex::new(0));
    channel.send(1);
    channel.send(2);
    let read = select! {
        wait;
        // The event borrows the port exclusively, and so does the handler.
        first = port.receive() => (first, port.try_receive()),
        () = never() => unreachable!(),
    };
    assert_eq!(read, (Ok(1), Some(Ok(2))));
    let mut guard = mutex.lock().wait();
    *guard = 1;
    drop(guard);
    let value = select! {
        wait;
        guard = mutex.lock() => *guard,
        () = never() => unreachable!(),
    };
    assert_eq!(value, 1);
}

#[test]
fn a_select_is_sent_between_threads() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    let (sender, receiver) = channel::unbounded();
    sender.try_send(4).unwrap();
    let future = is_send(async move {
        select! {
            received = receiver.receive() => received.unwrap(),
            n = always(4).boxed() => n,
        }
    });
    let thread = std::thread::spawn(move || Box::pin(future).wait());
    assert_eq!(thread.join().unwrap(), 4);
}
