//! Bodies of answers that a task writes while they are sent, or that end early.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The parts of a body that wait to be sent.
const WAITING: usize = 8;

/// A body of the parts that are sent into a channel.
struct ChannelBody(Receiver<Bytes>);

impl hyper::body::Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

/// A body that ends early once a future completes.
struct EndingBody {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl hyper::body::Body for EndingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// Returns a body that ends once `ended` completes, unless it ends before.
pub fn ending_body(body: Body, ended: impl Future<Output = ()> + Send + 'static) -> Body {
    Body::new(EndingBody { body, ended: Box::pin(ended) })
}

/// Creates a body and what its parts are sent into. Sending fails when the client is gone, and the body ends when the sender
/// is dropped.
pub fn channel_body() -> (Sender<Bytes>, Body) {
    let (sender, receiver) = channel(WAITING);
    (sender, Body::new(ChannelBody(receiver)))
}
