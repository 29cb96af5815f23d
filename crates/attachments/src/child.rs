//! The child process that reads one attachment: its bytes come through standard input, and the text goes to standard output
//! as JSON.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sidenote_attachment_text::{AttachmentText, Format, Unreadable, read as read_text};
use sidenote_base::platform::{self, Confinement};

use crate::{Failure, Outcome};

/// The command of the program that runs [`serve`]. Its one argument is the format.
pub const COMMAND: &str = "read-attachment";

/// The most memory of the child in bytes. A PDF of 100 MB, the largest file that is read, takes a few times its size.
pub(crate) const MEMORY: u64 = 1_000_000_000;

/// The most processor time of the child, in seconds: a book of a thousand pages takes five.
pub(crate) const SECONDS: u64 = 60;

/// The most time of the child on the clock. On a busy machine it passes faster than processor time.
const WALL_TIME: Duration = Duration::from_secs(4 * SECONDS);

/// The most bytes that the child may print.
const MAX_OUTPUT: u64 = 200_000_000;

/// How often the end of the child is looked for, while it may not end yet.
const INTERVAL: Duration = Duration::from_millis(5);

/// The stack of the thread that reads, in bytes: the formats nest, and the readers recurse to a limited depth.
const STACK: usize = 64 << 20;

/// Reads a file in a child process of `program`. Returns `None` if `stop` returned true meanwhile.
///
/// # Errors
/// The error of the system if no process can be started, or it ends for a reason that is not the file.
pub(crate) fn read(
    program: &Path,
    format: Format,
    bytes: &[u8],
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<Outcome>> {
    let mut command = Command::new(program);
    command.args([COMMAND, format.name()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Ctrl-C in a terminal reaches the program, which ends the child itself.
    platform::begin_process_group(&mut command);
    // The allocator reserves a gigabyte otherwise, which the limit of memory could not tell from what is used.
    command.env("MIMALLOC_ARENA_RESERVE", "0");
    let mut child = command.spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let end = Instant::now() + WALL_TIME;
    let (ended, printed) = std::thread::scope(|scope| {
        // The child may end before it has read everything.
        let feed = scope.spawn(move || drop(input.write_all(bytes)));
        let collect = scope.spawn(move || {
            let mut printed = Vec::new();
            output.take(MAX_OUTPUT).read_to_end(&mut printed).map(|_| printed)
        });
        let ended = wait(&mut child, end, stop);
        drop(feed.join());
        (ended, collect.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked"))))
    });
    Ok(match ended? {
        End::Stopped => None,
        End::TimedOut => Some(Err(Failure::TookTooLong)),
        End::Exited(status) if status.success() => match serde_json::from_slice(&printed?) {
            Ok(Ok(text)) => Some(Ok(text)),
            Ok(Err(why)) => Some(Err(Failure::Unreadable(why))),
            Err(_) => Some(Err(Failure::Ended)),
        },
        End::Exited(status) if platform::is_out_of_time(status) => Some(Err(Failure::TookTooLong)),
        End::Exited(status) if platform::is_own_fault(status) => Some(Err(Failure::Ended)),
        // Another process ended it, or it could not be confined: that says nothing of the file.
        End::Exited(status) => {
            return Err(io::Error::other(format!("the process that reads an attachment ended: {status}")));
        }
    })
}

/// How a child ended.
enum End {
    Exited(ExitStatus),
    Stopped,
    TimedOut,
}

/// Waits for the end of a child, and kills it if it takes too long or is not wanted any more.
fn wait(child: &mut Child, end: Instant, stop: &dyn Fn() -> bool) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        let is_late = Instant::now() >= end;
        if is_late || stop() {
            child.kill()?;
            child.wait()?;
            return Ok(if is_late { End::TimedOut } else { End::Stopped });
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Reads the attachment on `input`, and writes its text or why it has none to `output`, as JSON. This process is confined for
/// good before it looks at the bytes.
///
/// # Errors
/// `InvalidInput` if no format has the name; the errors of the streams and of the confinement.
pub fn serve(format: &str, input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let format = Format::named(format)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "there is no such format"))?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let work = move || {
        Confinement { memory: MEMORY, seconds: SECONDS }.enter()?;
        Ok::<Result<AttachmentText, Unreadable>, io::Error>(read_text(format, &bytes))
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work)?;
    let Ok(text) = thread.join() else {
        // The reader failed on the file.
        std::process::abort();
    };
    let text = text?;
    serde_json::to_writer(&mut *output, &text)?;
    output.flush()
}
