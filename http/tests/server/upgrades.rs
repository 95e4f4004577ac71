//! A connection that switches to another protocol.

use std::{convert::Infallible, future::poll_fn, io, pin::Pin, task::ready};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::{
    rt::{Read, ReadBuf, Write},
    upgrade::Upgraded,
};
use weald_http::RequestBody;
use weald_kernel::spawn;

use super::{Client, run, start};

async fn read(io: &mut Upgraded) -> io::Result<Vec<u8>> {
    poll_fn(|cx| {
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut *io).poll_read(cx, buffer.unfilled()))?;
        Ok(buffer.filled().to_vec()).into()
    })
    .await
}

/// Echoes what arrives, in capitals.
async fn shout(request: Request<RequestBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    spawn(async move {
        let mut io = hyper::upgrade::on(request).await.unwrap();
        loop {
            let text = read(&mut io).await.unwrap().to_ascii_uppercase();
            if text.is_empty() {
                break;
            }
            let written = poll_fn(|cx| Pin::new(&mut io).poll_write(cx, &text)).await;
            assert_eq!(written.unwrap(), text.len());
        }
    })
    .detach();
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, "shout")
        .header(header::CONNECTION, "upgrade");
    Ok(response.body(Empty::new()).unwrap())
}

#[test]
fn an_upgraded_connection_belongs_to_the_service() {
    run(2, async {
        let server = start(tower::service_fn(shout), |server| server);
        let mut client = Client::connect(server.address).await;
        client
            .send(
                "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: shout\r\n\r\nwith it",
            )
            .await;
        client.until("\r\n\r\nWITH IT").await;
        assert!(
            server.end().await.not_stopped.is_empty(),
            "the server no longer owns the connection"
        );
        client.send("and after it").await;
        client.until("AND AFTER IT").await;
    });
}
