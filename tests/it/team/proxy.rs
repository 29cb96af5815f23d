//! A proxy before a cluster that cuts the connection of a turn at its commit, as a network does that fails at the worst moment.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

/// What the proxy does with the commit of the next turn.
#[derive(Clone, Copy)]
pub(super) enum Cut {
    /// The commit reaches the database, and its answer does not come back.
    Answer = 1,
    /// The commit does not reach the database.
    Request = 2,
}

/// A proxy on a loopback address.
pub(super) struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
}

impl Proxy {
    /// Starts a proxy before the socket of a cluster. Its threads end with the process.
    pub(super) fn start(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicU8::new(0));
        let (socket, shared): (PathBuf, _) = (socket.to_owned(), Arc::clone(&cut));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let server = UnixStream::connect(&socket).unwrap();
                connect(client.unwrap(), server, &shared);
            }
        });
        Self { port, cut }
    }

    /// Gives the address of a database behind the proxy.
    pub(super) fn address(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Cuts the next turn at its commit.
    pub(super) fn cut(&self, what: Cut) {
        self.cut.store(what as u8, Ordering::SeqCst);
    }

    /// Says whether the cut was made.
    pub(super) fn has_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst) == 0
    }
}

fn connect(client: TcpStream, server: UnixStream, cut: &Arc<AtomicU8>) {
    let is_turn = Arc::new(AtomicBool::new(false));
    // Both directions are closed at a cut.
    let ends = Arc::new(Mutex::new((client.try_clone().unwrap(), server.try_clone().unwrap())));
    let close = move || {
        let ends = ends.lock().unwrap();
        drop(ends.0.shutdown(std::net::Shutdown::Both));
        drop(ends.1.shutdown(std::net::Shutdown::Both));
    };
    let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
    let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
    let (turn, shared, shut) = (Arc::clone(&is_turn), Arc::clone(cut), close.clone());
    std::thread::spawn(move || {
        forward(&mut from_client, &mut to_server, |bytes| {
            if holds(bytes, b"for no key update") {
                turn.store(true, Ordering::SeqCst);
            }
            turn.load(Ordering::SeqCst) && holds(bytes, b"commit\0") && take(&shared, Cut::Request)
        });
        shut();
    });
    let shared = Arc::clone(cut);
    std::thread::spawn(move || {
        forward(&mut from_server, &mut to_client, |bytes| {
            is_turn.load(Ordering::SeqCst) && holds(bytes, b"COMMIT\0") && take(&shared, Cut::Answer)
        });
        close();
    });
}

fn take(cut: &AtomicU8, what: Cut) -> bool {
    cut.compare_exchange(what as u8, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// Passes bytes on until an end is closed or `cuts` says so.
fn forward(from: &mut impl Read, to: &mut impl Write, mut cuts: impl FnMut(&[u8]) -> bool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if cuts(&bytes[..read]) || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}
