//! Exchanges between processes over a real NATS server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolyard_core::{BoxFuture, Exchange, PeerError, PeerService, Peers};
use toolyard_nats::{MemberState, NatsConnectError, NatsConnection, NatsCredentials, NatsPeers};

use crate::support::NatsServer;

/// Answers a request as its first word says.
#[derive(Default)]
struct Echo {
    served: AtomicUsize,
    ended: Notify,
    notices: Mutex<Vec<Vec<u8>>>,
}

impl PeerService for Echo {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.served.fetch_add(1, Ordering::SeqCst);
            match request.as_slice() {
                // Repeats every message until the other side ends the exchange.
                b"repeat" => {
                    while let Ok(Some(message)) = exchange.receive().await {
                        exchange.send(message).await.unwrap();
                    }
                    self.ended.notify_one();
                }
                b"never" => {
                    let end = exchange.receive().await;
                    assert_eq!(end, Ok(None));
                    self.ended.notify_one();
                }
                _ => exchange.send_last(request).await.unwrap(),
            }
        })
    }

    fn notified(&self, message: &[u8]) {
        self.notices.lock().push(message.to_vec());
    }
}

async fn request(peers: &dyn Peers, process: u64, request: &[u8]) -> Result<Option<Vec<u8>>, PeerError> {
    let mut exchange = peers.open(process, "echo", request.to_vec()).await?;
    let answer = exchange.receive().await?;
    assert_eq!(exchange.receive().await, Ok(None), "one answer");
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_asks_another_one() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let echo = Arc::new(Echo::default());
    two.register("echo", Arc::clone(&echo) as Arc<dyn PeerService>);
    // Short, empty, at the limit of one NATS message (1 MiB), and beyond it, there and back.
    for length in [0, 5, (1 << 20) - 6, (1 << 20) - 5, (1 << 20) - 4, 3 << 20] {
        let message: Vec<u8> = (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect();
        assert!(request(&one, 2, &message).await == Ok(Some(message)), "{length} bytes");
    }
    assert_eq!(echo.served.load(Ordering::SeqCst), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_both_ways_in_order_and_a_drop_ends_the_exchange() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let echo = Arc::new(Echo::default());
    two.register("echo", Arc::clone(&echo) as Arc<dyn PeerService>);
    let mut exchange = one.open(2, "echo", b"repeat".to_vec()).await.unwrap();
    for number in 0_u32..500 {
        exchange.send(number.to_be_bytes().to_vec()).await.unwrap();
    }
    for number in 0_u32..500 {
        assert_eq!(exchange.receive().await, Ok(Some(number.to_be_bytes().to_vec())));
    }
    drop(exchange);
    tokio::time::timeout(Duration::from_secs(2), echo.ended.notified()).await.unwrap();
    // The address of the other side is not known yet: its first sign of life is answered with the end.
    drop(one.open(2, "echo", b"never".to_vec()).await.unwrap());
    tokio::time::timeout(Duration::from_secs(2), echo.ended.notified()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_exchange_stays_open_without_being_read() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let echo = Arc::new(Echo::default());
    two.register("echo", Arc::clone(&echo) as Arc<dyn PeerService>);
    let mut exchange = one.open(2, "echo", b"repeat".to_vec()).await.unwrap();
    // Longer than the time after which a silent side is given up.
    tokio::time::sleep(Duration::from_secs(8)).await;
    exchange.send(b"still here".to_vec()).await.unwrap();
    assert_eq!(exchange.receive().await, Ok(Some(b"still here".to_vec())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_delivered_is_known_at_once() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let start = Instant::now();
    assert!(matches!(request(&one, 3, b"a").await, Err(PeerError::NotReached(_))), "no such process");
    assert!(matches!(request(&one, 2, b"a").await, Err(PeerError::NotReached(_))), "no such service");
    assert!(start.elapsed() < Duration::from_secs(2));
    drop(two);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_see_which_processes_are_there_leaving_and_lost() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let connection = NatsConnection::connect(&nats.settings(), "host:7").await.unwrap();
    let three = NatsPeers::join(connection, 3).await.unwrap();
    let states = || one.all_members().iter().map(|member| (member.number, member.state)).collect::<Vec<_>>();
    let until = async |wanted: &[(u64, MemberState)]| {
        let start = Instant::now();
        while states() != wanted {
            assert!(start.elapsed() < Duration::from_secs(10), "{:?} instead of {wanted:?}", states());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    until(&[(1, MemberState::Seen), (2, MemberState::Seen), (3, MemberState::Seen)]).await;
    let members = one.all_members();
    let named = members.iter().find(|member| member.number == 3).unwrap();
    assert_eq!((named.name.as_deref(), named.version.as_str()), (Some("host:7"), env!("CARGO_PKG_VERSION")));
    three.leave().await;
    until(&[(1, MemberState::Seen), (2, MemberState::Seen), (3, MemberState::Leaving)]).await;
    // Ends without leaving, as a kill does.
    two.connection().close().await;
    drop(two);
    until(&[(1, MemberState::Seen), (2, MemberState::Lost)]).await;
    assert_eq!(one.members(), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_vanishes_is_lost_after_its_silence() {
    let nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    two.register("echo", Arc::new(Echo::default()));
    let mut exchange = one.open(2, "echo", b"repeat".to_vec()).await.unwrap();
    exchange.send(b"a".to_vec()).await.unwrap();
    assert_eq!(exchange.receive().await, Ok(Some(b"a".to_vec())));
    // Ends its tasks without leaving, as a kill does.
    two.connection().close().await;
    drop(two);
    let start = Instant::now();
    let lost = exchange.receive().await;
    assert!(matches!(lost, Err(PeerError::Lost(_)) | Ok(None)), "{lost:?}");
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_nats_nothing_is_sent_later() {
    let mut nats = NatsServer::start();
    let (one, two) = (nats.join(1).await, nats.join(2).await);
    let echo = Arc::new(Echo::default());
    two.register("echo", Arc::clone(&echo) as Arc<dyn PeerService>);
    assert!(request(&one, 2, b"a").await.is_ok());
    nats.kill();
    let start = Instant::now();
    while one.connection().is_connected() {
        assert!(start.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(request(&one, 2, b"b").await, Err(PeerError::NotReached(_))));
    nats.restart();
    let start = Instant::now();
    // Subscriptions and membership come back by themselves.
    while request(&one, 2, b"c").await.is_err() || one.members() != [1, 2] {
        assert!(start.elapsed() < Duration::from_secs(15));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_and_hear_notices_of_others() {
    let nats = NatsServer::start();
    let (one, two, three) = (nats.join(1).await, nats.join(2).await, nats.join(3).await);
    let mut settings = nats.settings();
    settings.prefix = "other".to_owned();
    let other_connection = NatsConnection::connect(&settings, "test").await.unwrap();
    let other = NatsPeers::join(other_connection, 4).await.unwrap();
    let until = async |peers: &dyn Peers, wanted: &[u64]| {
        let start = Instant::now();
        while peers.members() != wanted {
            assert!(start.elapsed() < Duration::from_secs(10), "{:?}", peers.members());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    for peers in [&one, &two, &three] {
        until(peers, &[1, 2, 3]).await;
    }
    until(&other, &[4]).await;
    let echoes = [&one, &two, &other].map(|peers| {
        let echo = Arc::new(Echo::default());
        peers.register("echo", Arc::clone(&echo) as Arc<dyn PeerService>);
        echo
    });
    one.notify_all("echo", b"changed".to_vec());
    let start = Instant::now();
    while echoes[1].notices.lock().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(2));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(echoes[0].notices.lock().is_empty(), "not told to itself");
    assert!(echoes[2].notices.lock().is_empty(), "not told to another cluster");
    three.leave().await;
    until(&one, &[1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_checked_and_never_shown() {
    let nats = NatsServer::with_arguments(&["--user", "toolyard", "--pass", "correct-horse"]);
    let mut settings = nats.settings();
    let refused = NatsConnection::connect(&settings, "test").await.unwrap_err();
    assert!(matches!(refused, NatsConnectError::Unauthorized { .. }), "{refused}");
    let password = |password: &str| {
        Some(NatsCredentials::Password { user: "toolyard".to_owned(), password: password.to_owned() })
    };
    settings.credentials = password("wrong-horse");
    let refused = NatsConnection::connect(&settings, "test").await.unwrap_err();
    assert!(matches!(refused, NatsConnectError::Unauthorized { .. }), "{refused}");
    assert!(!format!("{refused} {refused:?} {settings:?}").contains("horse"));
    settings.credentials = password("correct-horse");
    NatsConnection::connect(&settings, "test").await.unwrap();
}
