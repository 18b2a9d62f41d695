//! Responses in every framing, split in any way, and malformed ones.

use proptest::prelude::*;

use super::*;

/// A response that was read, and how many bytes follow it.
#[derive(Debug, PartialEq)]
struct ReadBack {
    status: u16,
    body: Vec<u8>,
    is_reusable: bool,
    trailing: usize,
}

/// Reads a response that arrives in these pieces, after which the connection ends.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<ReadBack, Http1Error> {
    let (mut buffer, mut progress) = (BytesMut::new(), HeadProgress::default());
    let mut pieces = pieces.into_iter();
    let mut head = loop {
        buffer.extend_from_slice(pieces.next().ok_or(Http1Error::Disconnected)?);
        if let Some(head) = parse_head(&mut buffer, &mut progress)? {
            break head;
        }
    };
    let mut body = Vec::new();
    loop {
        match head.body.step(&mut buffer)? {
            DecodeStep::Data(bytes) => {
                body.extend_from_slice(&buffer[..bytes]);
                head.body.consume(&mut buffer, bytes);
            }
            DecodeStep::NeedMore => match pieces.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None => head.body.end_of_stream()?,
            },
            DecodeStep::End => break,
        }
    }
    let trailing = buffer.len() + pieces.map(<[u8]>::len).sum::<usize>();
    Ok(ReadBack { status: head.status.as_u16(), body, is_reusable: head.is_reusable, trailing })
}

fn read_whole(response: &str) -> Result<ReadBack, Http1Error> {
    read([response.as_bytes()])
}

#[test]
fn request_heads_are_encoded() {
    let url = Url::parse("http://user:word@[::1]:8080/mcp?a=b#c").unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("application/json"));
    let head = encode_head(&Method::POST, &url, &headers, Some(12));
    let expected = "POST /mcp?a=b HTTP/1.1\r\nhost: [::1]:8080\r\naccept: application/json\r\ncontent-length: 12\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
    let url = Url::parse("http://example.com").unwrap();
    let head = encode_head(&Method::GET, &url, &HeaderMap::new(), None);
    assert_eq!(String::from_utf8(head).unwrap(), "GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
}

#[test]
fn the_end_of_a_body_is_found_in_each_framing() {
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
        // A proxy may have used the other length.
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "hi",
            false,
            0,
        ),
    ];
    for (response, body, is_reusable, trailing) in cases {
        let read = read_whole(response).unwrap();
        assert_eq!(
            (read.body.as_slice(), read.is_reusable, read.trailing),
            (body.as_bytes(), is_reusable, trailing),
            "{response:?}"
        );
    }
}

#[test]
fn endless_informational_responses_are_rejected() {
    let responses = |count: usize| {
        format!("{}HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count))
    };
    assert!(read_whole(&responses(MAX_INFORMATIONAL_RESPONSES)).is_ok());
    let refused = read_whole(&responses(MAX_INFORMATIONAL_RESPONSES + 1)).err();
    assert_eq!(refused, Some(Http1Error::TooManyInformational));
}

#[test]
fn ambiguous_responses_are_rejected() {
    let chunked = |rest: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{rest}");
    let cases = [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi".to_owned(),
            Http1Error::InvalidLength,
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nhi".to_owned(), Http1Error::InvalidLength),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nhi".to_owned(), Http1Error::InvalidLength),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n".to_owned(),
            Http1Error::InvalidLength,
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n".to_owned(), Http1Error::InvalidLength),
        (chunked("transfer"), Http1Error::InvalidChunk),
        (chunked("\r\nhi"), Http1Error::InvalidChunk),
        (chunked("2\nhi"), Http1Error::InvalidChunk),
        (chunked("2;\nhi"), Http1Error::InvalidChunk),
        (chunked("2\r\nhiX"), Http1Error::InvalidChunk),
        (chunked("11111111111111111\r\n"), Http1Error::InvalidChunk),
        (chunked("2\r\nh"), Http1Error::Disconnected),
        (chunked("2\r\nhi\r\n0\r\n"), Http1Error::Disconnected),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi".to_owned(), Http1Error::Disconnected),
        ("HTTP/1.1 101 Switching\r\n\r\n".to_owned(), Http1Error::UnexpectedUpgrade),
        ("HTTP/1.1 200 OK\r\n".to_owned(), Http1Error::Disconnected),
    ];
    for (response, error) in cases {
        assert_eq!(read_whole(&response), Err(error), "{response:?}");
    }
    for nonsense in
        ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 200 OK\r\na b: c\r\n\r\n"]
    {
        assert!(matches!(read_whole(nonsense), Err(Http1Error::NotHttp(_))), "{nonsense:?}");
    }
}

#[test]
fn heads_chunk_extensions_and_trailers_have_limits() {
    let line = format!("X: {}\r\n", "y".repeat(100));
    let head = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(4_000));
    let pieces = || head.as_bytes().chunks(4_096);
    assert_eq!(read(pieces()), Err(Http1Error::HeadTooLong));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert_eq!(read_whole(&many), Err(Http1Error::NotHttp(httparse::Error::TooManyHeaders)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let extended = format!("{chunked}{}", format!("1;{}\r\nx\r\n", "e".repeat(1_000)).repeat(20));
    assert_eq!(read_whole(&extended), Err(Http1Error::InvalidChunk));
    let trailing = format!("{chunked}0\r\n{}", "a: b\r\n".repeat(10_000));
    assert_eq!(read_whole(&trailing), Err(Http1Error::InvalidChunk));
}

/// Complete responses of every framing, and their bodies.
fn responses() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (body, 0..3_u8, prop::collection::vec(1..50_usize, 1..5)).prop_map(|(body, framing, sizes)| {
        let mut response = b"HTTP/1.1 200 OK\r\nServer: x\r\n".to_vec();
        match framing {
            0 => {
                response.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
                response.extend(&body);
            }
            1 => {
                response.extend(b"\r\n");
                response.extend(&body);
            }
            _ => {
                response.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                let (mut rest, mut sizes) = (body.as_slice(), sizes.iter().cycle());
                while !rest.is_empty() {
                    let (chunk, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                    response.extend(format!("{:X}\r\n", chunk.len()).into_bytes());
                    response.extend(chunk);
                    response.extend(b"\r\n");
                    rest = after;
                }
                response.extend(b"0\r\n\r\n");
            }
        }
        (response, body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_response_does_not_depend_on_how_it_is_split((response, body) in responses(), size in 1..40_usize) {
        let whole = read([response.as_slice()]).unwrap();
        prop_assert_eq!(&whole.body, &body);
        prop_assert_eq!(read(response.chunks(size)).unwrap(), whole);
    }

    #[test]
    fn arbitrary_bytes_are_a_response_or_an_error(noise in prop::collection::vec(any::<u8>(), 0..300), framing in 0..3_u8, size in 1..40_usize) {
        let head: &[u8] = match framing {
            0 => b"",
            1 => b"HTTP/1.1 200 OK\r\n",
            _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        };
        let response = [head, &noise].concat();
        let whole = read([response.as_slice()]);
        let split = read(response.chunks(size));
        if let Ok(whole) = whole {
            prop_assert_eq!(split, Ok(whole));
        } else {
            prop_assert!(split.is_err());
        }
    }
}
