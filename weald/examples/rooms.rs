//! A chat server over TCP: a room that panics is started again with its members, and no other room notices.
//!
//! `cargo run -p weald --example rooms`, and `nc localhost 7100`: the first line is your name; then `/join ROOM`,
//! `/panic`, or what you say

use std::{
    collections::BTreeMap, error::Error, net::SocketAddr, num::NonZeroU32, sync::Arc,
    time::Duration,
};

use weald::{
    net::{TcpListener, TcpStream, is_final},
    process::{
        Bounded, BoundedInbox, BoundedPid, Builder, ChildSpec, Down, ExitReason, Handover, Inbox,
        Name, Overflow, ProcessId, ProcessSet, StartError, Strategy, Supervisor, SupervisorPid,
    },
    signal,
    sync::select,
};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;
type Line = Arc<str>;
type Members = BTreeMap<ProcessId, (String, BoundedPid<Line>)>;

enum ToRoom {
    Enter(String, BoundedPid<Line>),
    Say(ProcessId, String),
    Leave(ProcessId),
    Down(Down),
}

#[weald::main]
async fn main() -> Outcome {
    // By default a supervisor gives up after a second restart within 5 s, which counts for all its children together.
    let rooms = Supervisor::new(Strategy::OneForOne)
        .intensity(100, Duration::from_secs(1))
        .start()
        .await?;
    let listener = TcpListener::bind("127.0.0.1:7100".parse()?)?;
    println!("{}", listener.local_addr()?);
    let (mut interrupt, mut members) = (signal::interrupt()?, ProcessSet::new());
    loop {
        select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => welcome(stream, peer, &rooms, &mut members),
                Err(error) if is_final(&error) => return Err(error.into()),
                Err(error) => eprintln!("no connection was accepted: {error}"),
            },
            // An empty set is ready at once.
            ended = (!members.is_empty()).then(|| members.join_next()) => {
                if let Some((_pid, Err(reason))) = ended {
                    eprintln!("a member ended: {reason}");
                }
            }
            _ = interrupt.came() => break,
        }
    }
    members.shutdown().await;
    rooms.stop().await;
    Ok(())
}

fn welcome(
    stream: TcpStream,
    peer: SocketAddr,
    rooms: &SupervisorPid,
    members: &mut ProcessSet<Bounded<Line>, ()>,
) {
    let capacity = NonZeroU32::new(100).expect("it is not zero");
    let rooms = rooms.clone();
    let body = async move |inbox: BoundedInbox<Line>| {
        if let Err(error) = member(inbox, stream, rooms).await {
            eprintln!("{peer}: {error}");
        }
    };
    let builder = Builder::new().name(format!("client {peer}"));
    match builder.spawn_bounded(capacity, Overflow::Reject, body) {
        Ok((process, _pid)) => {
            members.insert(process);
        }
        Err(error) => eprintln!("{peer}: {error}"),
    }
}

/// A member reads the lines of its client, and writes what the room tells it.
async fn member(mut inbox: BoundedInbox<Line>, stream: TcpStream, rooms: SupervisorPid) -> Outcome {
    let myself = inbox.pid();
    let mut lines = stream.lines().most(1_000);
    let Some(name) = lines.next().within(Duration::from_secs(60)).await?? else {
        return Ok(());
    };
    let mut room = open(&rooms, "lobby").await?;
    let enter = || ToRoom::Enter(name.clone(), myself.clone());
    room.registered().await?.send(enter());
    loop {
        select! {
            line = lines.next() => {
                let Some(line) = line? else { return Ok(()) };
                if let Some(next) = line.strip_prefix("/join ") {
                    room.registered().await?.send(ToRoom::Leave(myself.id()));
                    room = open(&rooms, next.trim()).await?;
                    room.registered().await?.send(enter());
                } else {
                    // While the room is started again, this waits for the successor.
                    room.registered().await?.send(ToRoom::Say(myself.id(), line));
                }
            }
            line = inbox.receive() => stream.write_all(format!("{line}\n").as_bytes()).await?,
        }
    }
}

async fn open(rooms: &SupervisorPid, name: &str) -> Result<Name<ToRoom>, StartError> {
    match rooms.start_child(room(name)).await {
        Ok(()) | Err(StartError::Exists(_)) => Ok(name_of(name)),
        Err(error) => Err(error),
    }
}

fn name_of(room: &str) -> Name<ToRoom> {
    Name::of(format!("room {room}"))
}

/// A room. If it panics, its successor finds the members, and monitors them.
fn room(name: &str) -> ChildSpec {
    let kept = Handover::new();
    ChildSpec::process_as(&name_of(name), move |mut inbox: Inbox<ToRoom>| {
        let kept = kept.clone();
        async move {
            let claimed = kept.claim(Members::new);
            let mut members = claimed.expect("the predecessor has ended");
            for (_, pid) in members.values() {
                inbox.monitor(pid, ToRoom::Down);
            }
            loop {
                match inbox.receive().await {
                    ToRoom::Enter(name, pid) => {
                        inbox.monitor(&pid, ToRoom::Down);
                        members.insert(pid.id(), (name.clone(), pid));
                        tell(&members, &format!("* {name} enters"));
                    }
                    ToRoom::Say(id, text) => {
                        assert_ne!(text, "/panic");
                        let name = members.get(&id).map_or("?", |(name, _)| name);
                        tell(&members, &format!("{name}: {text}"));
                    }
                    ToRoom::Leave(id) => leave(&mut members, Some(id)),
                    ToRoom::Down(down) => leave(&mut members, down.process),
                }
            }
        }
    })
}

fn leave(members: &mut Members, id: Option<ProcessId>) {
    if let Some((name, _)) = id.and_then(|id| members.remove(&id)) {
        tell(members, &format!("* {name} leaves"));
    }
}

/// A member whose mailbox is full does not read, and ends.
fn tell(members: &Members, text: &str) {
    let line: Line = text.into();
    for (_, pid) in members.values() {
        if pid.try_send(line.clone()).is_err() {
            pid.exit(&ExitReason::custom("its client does not read"));
        }
    }
}
