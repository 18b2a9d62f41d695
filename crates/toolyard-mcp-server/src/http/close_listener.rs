//! Closes a listener without resetting connections that clients consider open.
//!
//! The kernel completes handshakes by itself. A connection that enters the backlog after the last `accept` is reset when the
//! listener closes, perhaps after its request was sent; then neither client nor proxy may repeat the request.

use std::{net::SocketAddr, pin::pin, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::http::serve::is_transient;

/// How long a handshake that has begun may take to complete. Shorter than the second after which a peer repeats one that was
/// ignored.
const MAX_HANDSHAKE_TIME: Duration = Duration::from_millis(200);
/// Connections of the backlog that are served after shutdown begins.
const MAX_BACKLOG_CONNECTIONS: usize = 8_192;

/// Passes the connections of the backlog to `serve`, and closes the listener. Peers that connect meanwhile are refused.
pub(super) async fn close_listener(listener: TcpListener, serve: impl FnMut(TcpStream, SocketAddr)) {
    close_within(MAX_HANDSHAKE_TIME, listener, serve).await;
}

async fn close_within(
    handshake_time: Duration,
    listener: TcpListener,
    mut serve: impl FnMut(TcpStream, SocketAddr),
) {
    if ignore_handshakes(&listener) {
        let mut handshakes_ended = pin!(sleep(handshake_time));
        loop {
            tokio::select! {
                Ok((stream, client)) = listener.accept() => serve(stream, client),
                () = &mut handshakes_ended => break,
            }
        }
    }
    for (stream, client) in take_backlog(listener) {
        serve(stream, client);
    }
}

/// Closes the listener and returns the connections in its backlog.
fn take_backlog(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let mut streams = Vec::new();
    let Ok(listener) = listener.into_std() else { return streams };
    // Limited, because a flood of connections would keep the listener open.
    for _ in 0..MAX_BACKLOG_CONNECTIONS {
        match listener.accept() {
            Ok((stream, client)) => {
                let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                streams.extend(stream.map(|stream| (stream, client)));
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock && is_transient(&error) => {}
            Err(_) => break,
        }
    }
    streams
}

/// Lets the kernel ignore new handshakes. Peers repeat them and are refused once the listener is closed, so that they know
/// that nothing was sent. Returns whether the kernel supports that.
#[cfg(target_os = "linux")]
fn ignore_handshakes(listener: &TcpListener) -> bool {
    use socket2::{SockFilter, SockRef};

    /// Where the flags are in a TCP header, and the bit of SYN.
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 2;
    /// Classic BPF: load a byte; jump if bits are set; return how many bytes of the packet are kept.
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const WITHOUT_SYN: [SockFilter; 4] = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        SockFilter::new(JUMP_IF_SET, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    let attached = SockRef::from(listener).attach_filter(&WITHOUT_SYN);
    attached.inspect_err(|error| tracing::debug!(%error, "failed to ignore handshakes")).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn ignore_handshakes(_: &TcpListener) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        time::Instant,
    };

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const CLOSED_LISTENERS: usize = 150;
    const CLIENTS: usize = 3;

    /// Sends a byte on a new connection each time, until connecting fails. Returns how many bytes got no response.
    fn connect_until_refused(address: SocketAddr) -> usize {
        let mut unanswered = 0;
        loop {
            let connected = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(20));
            let Ok(mut stream) = connected else { return unanswered };
            let answered = stream.write_all(b"a").and_then(|()| stream.read_exact(&mut [0]));
            unanswered += usize::from(answered.is_err());
        }
    }

    async fn answer(mut stream: TcpStream) {
        let _ = stream.read_exact(&mut [0]).await;
        let _ = stream.write_all(b"b").await;
    }

    #[tokio::test]
    async fn a_closing_listener_resets_no_connection() {
        let mut unanswered = 0;
        for _ in 0..CLOSED_LISTENERS {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let clients = [(); CLIENTS].map(|()| std::thread::spawn(move || connect_until_refused(address)));
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(3) {
                if let Ok(Ok((stream, _))) =
                    tokio::time::timeout(Duration::from_millis(3), listener.accept()).await
                {
                    answer(stream).await;
                }
            }
            let mut answers = tokio::task::JoinSet::new();
            close_within(Duration::from_millis(5), listener, |stream, _| {
                answers.spawn(answer(stream));
            })
            .await;
            answers.join_all().await;
            unanswered += clients.map(|client| client.join().unwrap()).iter().sum::<usize>();
        }
        assert_eq!(unanswered, 0, "connections reset by {CLOSED_LISTENERS} closing listeners");
    }
}
