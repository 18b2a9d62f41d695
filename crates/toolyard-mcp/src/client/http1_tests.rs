use proptest::prelude::*;

use super::*;

/// Everything a body says, and how much is left behind it.
#[derive(Debug, PartialEq)]
struct Read {
    status: u16,
    body: Vec<u8>,
    reusable: bool,
    behind: usize,
}

/// Reads an answer that comes in these pieces and then ends.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Read, HttpFault> {
    let (mut came, mut seen) = (BytesMut::new(), 0);
    let mut pieces = pieces.into_iter();
    let mut head = loop {
        came.extend_from_slice(pieces.next().ok_or(HttpFault::HungUp)?);
        if let Some(head) = take_head(&mut came, &mut seen)? {
            break head;
        }
    };
    let mut body = Vec::new();
    loop {
        match head.body.step(&mut came)? {
            Step::Data(bytes) => {
                body.extend_from_slice(&came[..bytes]);
                head.body.take(&mut came, bytes);
            }
            Step::More => match pieces.next() {
                Some(piece) => came.extend_from_slice(piece),
                None => head.body.hung_up()?,
            },
            Step::Ended => break,
        }
    }
    let behind = came.len() + pieces.map(<[u8]>::len).sum::<usize>();
    Ok(Read { status: head.status.as_u16(), body, reusable: head.reusable, behind })
}

fn read_whole(answer: &str) -> Result<Read, HttpFault> {
    read([answer.as_bytes()])
}

#[test]
fn a_request_is_written_as_it_is_known() {
    let url = Url::parse("http://user:word@[::1]:8080/mcp?a=b#c").unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    let head = request_head(&Method::POST, &url, &headers, Some(12));
    let expected = "POST /mcp?a=b HTTP/1.1\r\nhost: [::1]:8080\r\naccept: application/json\r\ncontent-length: 12\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
    let url = Url::parse("http://example.com").unwrap();
    let head = request_head(&Method::GET, &url, &HeaderMap::new(), None);
    assert_eq!(String::from_utf8(head).unwrap(), "GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
}

#[test]
fn the_end_of_a_body_is_known_in_each_way() {
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhino", "hi", true, 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "hi", true, 0),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: Close\r\n\r\nhi", "hi", false, 0),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", "hi", false, 0),
        ("HTTP/1.1 200 OK\r\n\r\nhi", "hi", false, 0),
        ("HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nhi", "", true, 2),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", "", true, 0),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\nHT",
            "hi",
            true,
            2,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n002 \r\nhi\r\n0\r\nA: b\r\n\r\n",
            "hi",
            true,
            0,
        ),
        // Whoever stands between may have read another length.
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "hi",
            false,
            0,
        ),
    ];
    for (answer, body, reusable, behind) in cases {
        let read = read_whole(answer).unwrap();
        assert_eq!(
            (read.body.as_slice(), read.reusable, read.behind),
            (body.as_bytes(), reusable, behind),
            "{answer:?}"
        );
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_not_read() {
    let chunked = |rest: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{rest}");
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi".to_owned(), HttpFault::Length),
        ("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nhi".to_owned(), HttpFault::Length),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nhi".to_owned(), HttpFault::Length),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n".to_owned(), HttpFault::Length),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n".to_owned(), HttpFault::Length),
        (chunked("transfer"), HttpFault::Chunk),
        (chunked("\r\nhi"), HttpFault::Chunk),
        (chunked("2\nhi"), HttpFault::Chunk),
        (chunked("2;\nhi"), HttpFault::Chunk),
        (chunked("2\r\nhiX"), HttpFault::Chunk),
        (chunked("11111111111111111\r\n"), HttpFault::Chunk),
        (chunked("2\r\nh"), HttpFault::HungUp),
        (chunked("2\r\nhi\r\n0\r\n"), HttpFault::HungUp),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi".to_owned(), HttpFault::HungUp),
        ("HTTP/1.1 101 Switching\r\n\r\n".to_owned(), HttpFault::Upgrade),
        ("HTTP/1.1 200 OK\r\n".to_owned(), HttpFault::HungUp),
    ];
    for (answer, fault) in cases {
        assert_eq!(read_whole(&answer), Err(fault), "{answer:?}");
    }
    for nonsense in
        ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 200 OK\r\na b: c\r\n\r\n"]
    {
        assert!(matches!(read_whole(nonsense), Err(HttpFault::NotHttp(_))), "{nonsense:?}");
    }
}

#[test]
fn what_stands_beside_the_data_has_limits() {
    let line = format!("X: {}\r\n", "y".repeat(100));
    let head = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(4_000));
    let pieces = || head.as_bytes().chunks(4_096);
    assert_eq!(read(pieces()), Err(HttpFault::LongHead));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert_eq!(read_whole(&many), Err(HttpFault::NotHttp(httparse::Error::TooManyHeaders)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let extended = format!("{chunked}{}", format!("1;{}\r\nx\r\n", "e".repeat(1_000)).repeat(20));
    assert_eq!(read_whole(&extended), Err(HttpFault::Chunk));
    let trailing = format!("{chunked}0\r\n{}", "a: b\r\n".repeat(10_000));
    assert_eq!(read_whole(&trailing), Err(HttpFault::Chunk));
}

/// Whole answers of every kind, and what is in them.
fn answers() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (body, 0..3_u8, prop::collection::vec(1..50_usize, 1..5)).prop_map(|(body, way, sizes)| {
        let mut answer = b"HTTP/1.1 200 OK\r\nServer: x\r\n".to_vec();
        match way {
            0 => {
                answer.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
                answer.extend(&body);
            }
            1 => {
                answer.extend(b"\r\n");
                answer.extend(&body);
            }
            _ => {
                answer.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                let (mut rest, mut sizes) = (body.as_slice(), sizes.iter().cycle());
                while !rest.is_empty() {
                    let (chunk, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                    answer.extend(format!("{:X}\r\n", chunk.len()).into_bytes());
                    answer.extend(chunk);
                    answer.extend(b"\r\n");
                    rest = after;
                }
                answer.extend(b"0\r\n\r\n");
            }
        }
        (answer, body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn however_an_answer_is_cut_into_pieces_it_says_the_same((answer, body) in answers(), size in 1..40_usize) {
        let whole = read([answer.as_slice()]).unwrap();
        prop_assert_eq!(&whole.body, &body);
        prop_assert_eq!(read(answer.chunks(size)).unwrap(), whole);
    }

    #[test]
    fn whatever_comes_ends_in_an_answer_or_a_fault(noise in prop::collection::vec(any::<u8>(), 0..300), way in 0..3_u8, size in 1..40_usize) {
        let head: &[u8] = match way {
            0 => b"",
            1 => b"HTTP/1.1 200 OK\r\n",
            _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        };
        let answer = [head, &noise].concat();
        let whole = read([answer.as_slice()]);
        let cut = read(answer.chunks(size));
        if let Ok(whole) = whole {
            prop_assert_eq!(cut, Ok(whole));
        } else {
            prop_assert!(cut.is_err());
        }
    }
}
