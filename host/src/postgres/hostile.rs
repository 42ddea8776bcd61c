//! Tests against a scripted server that does all a server should not: it must give errors, in bounded time and memory.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::error::{Error, Kind, Result};

/// A message as it goes over the wire.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn authentication(code: u32, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes()[..], rest].concat())
}

/// All that a server says before its first command, password left out.
fn welcome() -> Vec<u8> {
    let parts = [
        authentication(0, b""),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
        message(b'Z', b"I"),
    ];
    parts.concat()
}

/// Reads the next message of the client: its body, tag first where it has one.
async fn heard(stream: &mut TcpStream, has_tag: bool) -> Option<Vec<u8>> {
    let mut header = vec![0; if has_tag { 5 } else { 4 }];
    stream.read_exact(&mut header).await.ok()?;
    let length = u32::from_be_bytes(*header.last_chunk::<4>()?);
    let mut body = vec![0; usize::try_from(length).ok()?.checked_sub(4)?];
    stream.read_exact(&mut body).await.ok()?;
    Some([&header[..usize::from(has_tag)], &body].concat())
}

/// Serves one connection: each step is what is sent after one more message of the client was heard.
async fn server(steps: Vec<Vec<u8>>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for (number, step) in steps.into_iter().enumerate() {
            if heard(&mut stream, number > 0).await.is_none() || stream.write_all(&step).await.is_err() {
                return;
            }
        }
    });
    let url = format!("postgresql://u:canary@127.0.0.1:{port}/d?sslmode=disable&connect_timeout=5");
    Endpoint::parse(Side::Source, &url, true).unwrap()
}

/// What becomes of a connection and one query.
async fn outcome(steps: Vec<Vec<u8>>) -> Result<usize> {
    let endpoint = server(steps).await;
    let mut session = Session::connect(&endpoint, "test").await?;
    Ok(session.batch("SELECT 1").await?.len())
}

fn text(error: &Error) -> String {
    use std::error::Error as _;
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

#[tokio::test]
async fn nothing_a_server_says_before_it_is_trusted_is_believed() {
    let huge = |count: &[u8]| authentication(11, &[b"r=NONCE,s=c2FsdA==,i=", count].concat());
    let sasl = authentication(10, b"SCRAM-SHA-256\0\0");
    let cases: Vec<(&str, Vec<Vec<u8>>, Kind)> = vec![
        ("2³¹ iterations", vec![sasl.clone(), huge(b"2147483648")], Kind::Protocol),
        ("more iterations than fit a number", vec![sasl.clone(), huge(b"99999999999999999999")], Kind::Protocol),
        ("negative iterations", vec![sasl.clone(), huge(b"-1")], Kind::Protocol),
        ("no iterations", vec![sasl.clone(), authentication(11, b"r=x,s=c2FsdA==")], Kind::Protocol),
        ("a nonce that is not ours", vec![sasl.clone(), huge(b"4096")], Kind::Protocol),
        ("not UTF-8", vec![sasl.clone(), authentication(11, b"\xff\xfe,i=1")], Kind::Protocol),
        ("SCRAM begun twice", vec![sasl.clone(), sasl.clone()], Kind::Protocol),
        ("SCRAM left out half way", vec![sasl.clone(), welcome()], Kind::Authentication),
        ("SCRAM ended before it began", vec![authentication(12, b"v=x")], Kind::Protocol),
        ("a challenge before it began", vec![huge(b"4096")], Kind::Protocol),
        ("no known mechanism", vec![authentication(10, b"PLAIN\0\0")], Kind::Authentication),
        ("mechanisms without end", vec![authentication(10, b"SCRAM-SHA-256\0")], Kind::Protocol),
        ("Kerberos", vec![authentication(7, b"")], Kind::Authentication),
        ("an unknown method", vec![authentication(99, b"")], Kind::Protocol),
        ("a row before the start", vec![message(b'D', &[0, 0])], Kind::Protocol),
        ("an error of 64 MiB", vec![[&b"E"[..], &(64_u32 << 20).to_be_bytes()].concat()], Kind::Protocol),
        ("a length below four", vec![b"R\0\0\0\x03".to_vec()], Kind::Protocol),
        ("a negative length", vec![b"R\xff\xff\xff\xff".to_vec()], Kind::Protocol),
        ("HTTP", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()], Kind::Protocol),
        ("nothing", vec![Vec::new()], Kind::ConnectionLost),
        ("half a message", vec![b"R\0\0".to_vec()], Kind::ConnectionLost),
        ("another protocol version", vec![message(b'v', &[0, 2, 0, 0, 0, 0, 0, 0])], Kind::Protocol),
        ("an unknown option", vec![message(b'v', b"\0\x03\0\0\0\0\0\x01_pq_.x\0")], Kind::Protocol),
        ("no version", vec![[authentication(0, b""), message(b'Z', b"I")].concat()], Kind::Protocol),
        (
            "another encoding",
            vec![[authentication(0, b""), message(b'S', b"client_encoding\0LATIN1\0"), message(b'Z', b"I")].concat()],
            Kind::Preflight,
        ),
    ];
    for (what, steps, kind) in cases {
        let begun = Instant::now();
        let error = outcome(steps).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{what}: {}", text(&error));
        assert!(!text(&error).contains("canary"), "{what}: {}", text(&error));
        assert!(begun.elapsed() < Duration::from_secs(2), "{what} took {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_huge_iteration_count_is_refused_before_anything_is_hashed() {
    let sasl = authentication(10, b"SCRAM-SHA-256\0\0");
    let error = outcome(vec![sasl, authentication(11, b"r=x,s=c2FsdA==,i=2147483648")]).await.unwrap_err();
    let place = error.place().rsplit_once(": ").unwrap().1;
    assert_eq!(place, "2147483648 SCRAM iterations, at most 1000000 are done");
}

#[tokio::test]
async fn a_broken_result_is_an_error() {
    let described = message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
    let row = |body: &[u8]| [described.clone(), message(b'D', body)].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a row of no columns", row(&[0, 0])),
        ("more columns than were described", row(b"\0\x02\0\0\0\x01a\0\0\0\x01b")),
        ("a value longer than its row", row(b"\0\x01\0\0\x10\0a")),
        ("a length below -1", row(b"\0\x01\xff\xff\xff\xfe")),
        ("a value that is not UTF-8", row(b"\0\x01\0\0\0\x01\xff")),
        ("a row that was not described", message(b'D', b"\0\x01\0\0\0\x01a")),
        ("a negative column count", message(b'T', b"\xff\xff")),
        ("a count that is no number", message(b'C', b"SELECT 99999999999999999999999\0")),
        ("a transaction status nobody knows", message(b'Z', b"?")),
        ("an error without SQLSTATE", message(b'E', b"SERROR\0Mcanary\0\0")),
        ("an error without end", message(b'E', b"SERROR\0C22012")),
        ("COPY that nobody asked for", message(b'H', &[0, 0, 0])),
        ("an unknown tag", message(b'!', b"")),
        ("a message above the limit", b"D\x7f\xff\xff\xff".to_vec()),
    ];
    for (what, answer) in cases {
        let error = outcome(vec![welcome(), answer]).await.unwrap_err();
        assert!(matches!(error.kind(), Kind::Protocol), "{what}: {}", text(&error));
        assert!(!text(&error).contains("canary"), "{what}: {}", text(&error));
    }
}

#[tokio::test]
async fn a_promised_gigabyte_costs_nothing_until_it_comes() {
    let promise = b"D\x3f\xff\xff\xff".to_vec();
    let error = outcome(vec![welcome(), promise]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::ConnectionLost, "{}", text(&error));
}

#[tokio::test]
async fn random_bytes_never_panic() {
    let seed = std::env::var("PGVEIL_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos().into()
    });
    let mut state: u64 = seed;
    let mut random = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let tags = b"RKSZTDCEHGWdcANn1t23sIv";
    for round in 0..300 {
        let mut script = Vec::new();
        for _ in 0..random() % 6 {
            let tag = tags[usize::try_from(random()).unwrap() % tags.len()];
            let body: Vec<u8> = (0..random() % 24).map(|_| random().to_le_bytes()[0] % 96).collect();
            script.extend(message(tag, &body));
        }
        // Half of the rounds before the session begins, half after. Whatever comes out, it is no panic and no success.
        let steps = if round % 2 == 0 { vec![script] } else { vec![welcome(), script] };
        let result = outcome(steps).await;
        assert!(result.is_err() || round % 2 == 1, "PGVEIL_TEST_SEED={seed}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    for answer in [&b"N"[..], b"E", b"?", b""] {
        let endpoint = server(vec![answer.to_vec()]).await;
        let url = format!("postgresql://u:p@127.0.0.1:{}/d?sslmode=require", endpoint.port());
        let error = Session::connect(&Endpoint::parse(Side::Source, &url, true).unwrap(), "test").await.err().unwrap();
        assert!(matches!(error.kind(), Kind::Tls | Kind::Protocol | Kind::ConnectionLost), "{}", text(&error));
    }
}

#[tokio::test]
async fn a_silent_server_is_left_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("postgresql://u@127.0.0.1:{port}/d?sslmode=disable&connect_timeout=1");
    let begun = Instant::now();
    let error = Session::connect(&Endpoint::parse(Side::Target, &url, true).unwrap(), "test").await.err().unwrap();
    assert_eq!(error.kind(), Kind::ConnectionLost);
    assert_eq!(error.place(), format!("target: host 127.0.0.1:{port}: no session within 1 s"));
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_call_that_was_dropped_half_way_leaves_the_session_unusable() {
    // The server never answers the query.
    let endpoint = server(vec![welcome(), Vec::new(), Vec::new()]).await;
    let mut session = Session::connect(&endpoint, "test").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), session.batch("SELECT 1")).await.is_err());
    assert!(!session.is_usable());
    assert_eq!(session.batch("SELECT 2").await.err().unwrap().kind(), Kind::ConnectionLost);
}

#[tokio::test]
async fn a_stream_that_is_dropped_half_way_through_a_message_goes_on() {
    let payload = vec![b'x'; 1 << 20];
    let whole = message(b'd', &payload);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        heard(&mut stream, false).await.unwrap();
        stream.write_all(&welcome()).await.unwrap();
        heard(&mut stream, true).await.unwrap();
        stream.write_all(&message(b'W', &[0, 0, 0])).await.unwrap();
        for piece in whole.chunks(100_000) {
            stream.write_all(piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stream.write_all(&message(b'd', b"last")).await.unwrap();
        heard(&mut stream, true).await;
    });
    let url = format!("postgresql://u@127.0.0.1:{port}/d?sslmode=disable");
    let endpoint = Endpoint::parse(Side::Source, &url, true).unwrap();
    let mut stream = Session::connect(&endpoint, "t").await.unwrap().copy_both("START_REPLICATION").await.unwrap();
    let mut dropped = 0;
    let first = loop {
        tokio::select! {
            frame = stream.next() => break frame.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => dropped += 1,
        }
    };
    assert!(first == payload && dropped > 2, "{dropped} calls were dropped");
    assert!(stream.next().await.unwrap() == b"last"[..]);
}
