//! The fence at the socket, over a real connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers every request with `{}` and counts the bytes that arrive.
async fn server(received: Arc<AtomicUsize>) -> Uri {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let received = received.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(count) = stream.read(&mut buffer).await
                    && count > 0
                {
                    received.fetch_add(count, Ordering::SeqCst);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                    if stream.write_all(answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{address}").parse().unwrap()
}

async fn post(client: &Client) -> Result<u16, kube::Error> {
    let request = http::Request::post("/api/v1/x").body(kube::client::Body::from(b"{}".to_vec()));
    client.send(request.unwrap()).await.map(|response| response.status().as_u16())
}

#[tokio::test]
async fn not_a_byte_leaves_while_the_fence_is_closed_also_on_a_connection_made_before() {
    let received = Arc::new(AtomicUsize::new(0));
    let config = Config::new(server(received.clone()).await);
    let fence = Fence::closed();
    let client = fenced(config, fence.clone()).unwrap();
    assert!(post(&client).await.is_err());
    assert_eq!(received.load(Ordering::SeqCst), 0);

    fence.extend(tokio::time::Instant::now(), Duration::from_secs(3600));
    assert_eq!(post(&client).await.unwrap(), 200);
    let before = received.load(Ordering::SeqCst);
    assert!(before > 0);

    fence.close();
    assert!(post(&client).await.is_err());
    assert_eq!(received.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn a_guarded_client_reads_always_and_writes_only_while_the_fence_is_open() {
    let received = Arc::new(AtomicUsize::new(0));
    let config = Config::new(server(received.clone()).await);
    let fence = Fence::closed();
    let client = guarded(unfenced(config).unwrap(), fence.clone());
    let refused = post(&client).await.unwrap_err();
    assert!(format!("{refused:?}").contains("Fenced"), "{refused:?}");
    assert_eq!(received.load(Ordering::SeqCst), 0);
    let read = http::Request::get("/api/v1/x").body(Body::empty()).unwrap();
    assert_eq!(client.send(read).await.unwrap().status(), 200);
    fence.extend(tokio::time::Instant::now(), Duration::from_secs(3600));
    assert_eq!(post(&client).await.unwrap(), 200);
}
