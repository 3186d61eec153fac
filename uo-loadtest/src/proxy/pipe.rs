//! One direction of one connection: bytes go out a fixed time after they came in.
//!
//! Reading never waits for the delay: each chunk carries the moment it came, and waits in a queue of its own. So the
//! delay costs latency and no throughput, up to [`BYTES_MAX`] under way at a time (100 MB/s at 40 ms). Beyond that,
//! reading pauses and the sender feels it, as on a real line that is full.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::ready;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::way::Way;

/// Bytes under way in one direction of one connection.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Chunks under way, so that a flood of tiny ones is bounded too.
const CHUNKS_MAX: usize = 16 * 1024;
/// Bytes read at once.
const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// What came in, when, and its share of the room.
struct Chunk<'a> {
    came: Instant,
    what: What,
    _room: SemaphorePermit<'a>,
}

enum What {
    Bytes(Box<[u8]>),
    End,
    Broken(io::Error),
}

/// Relays `from` to `to` until the end of `from`, which is passed on as well, or until either breaks. A break takes as
/// long to be seen on the other side as a byte does. Bytes written are added to `count`.
pub async fn relay<R, W>(from: R, to: W, way: Way, count: &AtomicU64) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let room = Semaphore::new(BYTES_MAX);
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    // The reader ends by itself after the last chunk; when the writer fails, it is dropped with its queue.
    let ((), ()) = tokio::try_join!(read(from, sender, &room), write(to, receiver, way, count))?;
    Ok(())
}

async fn read<'a, R>(mut from: R, sender: Sender<Chunk<'a>>, room: &'a Semaphore) -> io::Result<()>
where
    R: AsyncRead + Unpin,
{
    loop {
        let read = read_some(&mut from).await;
        let came = Instant::now();
        let (what, bytes) = match read {
            Ok(bytes) if bytes.is_empty() => (What::End, 0),
            Ok(bytes) => {
                let len = bytes.len() as u32;
                (What::Bytes(bytes), len)
            }
            Err(error) => (What::Broken(error), 0),
        };
        let last = !matches!(what, What::Bytes(_));
        let Ok(permit) = room.acquire_many(bytes).await else {
            return Ok(());
        };
        if sender
            .send(Chunk {
                came,
                what,
                _room: permit,
            })
            .await
            .is_err()
            || last
        {
            return Ok(());
        }
    }
}

async fn write<W>(
    mut to: W,
    mut queue: Receiver<Chunk<'_>>,
    mut way: Way,
    count: &AtomicU64,
) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while let Some(chunk) = queue.recv().await {
        let delay = way.delay();
        if !delay.is_zero() {
            sleep_until(chunk.came + delay).await;
        }
        way.open().await;
        match chunk.what {
            What::Bytes(bytes) => {
                to.write_all(&bytes).await?;
                count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            What::End => return to.shutdown().await,
            What::Broken(error) => return Err(error),
        }
    }
    Ok(())
}

thread_local! {
    /// Shared by all connections of a thread: an idle connection holds no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES_MAX].into());
}

/// What there is to read, in a box that fits it; empty at the end.
async fn read_some<R: AsyncRead + Unpin>(from: &mut R) -> io::Result<Box<[u8]>> {
    poll_fn(|context| {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut *from).poll_read(context, &mut buffer))?;
            Ok(Box::from(buffer.filled())).into()
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proxy::way::Stretch;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex, split};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    const DELAY: Duration = Duration::from_millis(40);

    /// Both ends of a pipe under virtual time, and the pipe itself.
    fn pipe(window: usize) -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
        pipe_along(window, Way::steady(DELAY))
    }

    fn pipe_along(
        window: usize,
        way: Way,
    ) -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
        let (near, from) = duplex(window);
        let (to, far) = duplex(window);
        let task = tokio::spawn(async move {
            // Only one half of each is used; both are kept, so that only our own end closes anything.
            let ((from, _from_out), (_to_in, to)) = (split(from), split(to));
            relay(from, to, way, &AtomicU64::new(0)).await
        });
        (near, far, task)
    }

    #[tokio::test(start_paused = true)]
    async fn each_byte_leaves_exactly_one_delay_after_it_came() {
        let (mut near, mut far, _task) = pipe(64);
        let start = Instant::now();
        near.write_all(b"a").await.unwrap();
        // Virtual: it passes once everyone else waits, so that the pipe has read its byte by then.
        tokio::time::sleep(Duration::from_millis(10)).await;
        near.write_all(b"b").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'a');
        assert_eq!(start.elapsed(), DELAY);
        assert_eq!(far.read_u8().await.unwrap(), b'b');
        assert_eq!(start.elapsed(), DELAY + Duration::from_millis(10));
    }

    /// Two megabytes through a delay take one delay. Waiting before the next read, instead of in the queue, takes 128
    /// of them: tried.
    #[tokio::test(start_paused = true)]
    async fn the_delay_costs_no_throughput() {
        let (mut near, mut far, _task) = pipe(CHUNK_BYTES_MAX);
        let start = Instant::now();
        let sent: Vec<u8> = (0..BYTES_MAX / 2).map(|at| (at % 251) as u8).collect();
        let mut received = vec![0; sent.len()];
        let (written, read) = tokio::join!(near.write_all(&sent), far.read_exact(&mut received));
        written.unwrap();
        read.unwrap();
        assert_eq!(start.elapsed(), DELAY);
        assert!(sent == received, "the bytes differ");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_stops_the_writer() {
        let (mut near, mut far, _task) = pipe(CHUNK_BYTES_MAX);
        let mut written = 0;
        let block = vec![7; CHUNK_BYTES_MAX];
        while let Ok(more) = timeout(Duration::from_secs(60), near.write(&block)).await {
            written += more.unwrap();
            assert!(
                written <= BYTES_MAX + 4 * CHUNK_BYTES_MAX,
                "the pipe took {written} bytes"
            );
        }
        assert!(written >= BYTES_MAX, "the pipe took only {written} bytes");
        drop(near);
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), written);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_passed_on_after_the_last_byte_and_as_late() {
        let (mut near, mut far, task) = pipe(64);
        let start = Instant::now();
        near.write_all(b"last").await.unwrap();
        near.shutdown().await.unwrap();
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        assert_eq!(
            (received.as_slice(), start.elapsed()),
            (b"last".as_slice(), DELAY)
        );
        task.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_a_cut_and_everything_after_it() {
        let (here, one) = tokio::sync::watch::channel(Stretch::default());
        let (_there, other) = tokio::sync::watch::channel(Stretch::default());
        let (mut near, mut far, _task) = pipe_along(64, Way::along([one, other]));
        near.write_all(b"a").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'a');
        here.send_modify(|stretch| stretch.is_cut = true);
        near.write_all(b"b").await.unwrap();
        near.shutdown().await.unwrap();
        let silent = timeout(Duration::from_secs(60), far.read_u8()).await;
        assert!(silent.is_err(), "not even the end passes");
        here.send_modify(|stretch| stretch.is_cut = false);
        let mut received = Vec::new();
        far.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"b");
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_breaks_ends_the_pipe() {
        let (mut near, far, task) = pipe(64);
        drop(far);
        near.write_all(b"lost").await.unwrap();
        assert_eq!(
            task.await.unwrap().unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
