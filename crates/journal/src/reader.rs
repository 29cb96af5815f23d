//! The journal reader: events from either end, one block of a file at a time.
//!
//! Unreadable lines are skipped and counted.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::safe_open;
use sidenote_vault::Vault;
use sidenote_vault::dir::Dir;

use crate::event::Event;
use crate::month_of;
use crate::visible_events::VisibleEvents;

/// The size of a block in bytes.
const BLOCK: u64 = 256 * 1024;
/// The maximum length of a line in bytes. A file with a longer line is not a journal.
const MAX_LINE_LEN: usize = 256 * 1024 * 1024;
/// The line of every event that changed files, or undid such a change, contains one of these.
const CHANGES: &[&str] = &["\"files\":", "\"folders\":", "\"undoes\":"];

/// The order of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOrder {
    /// The oldest event first.
    OldestFirst,
    /// The newest event first.
    NewestFirst,
}

/// An iterator over the events of a journal, merged from its folders by time.
#[derive(Debug)]
pub struct Events {
    order: ReadOrder,
    streams: Vec<FolderEvents>,
    /// The next event of each stream, read when it is needed.
    heads: Vec<Option<Event>>,
    /// Only lines that contain one of these texts are parsed; if empty, all lines.
    needles: Vec<memmem::Finder<'static>>,
    /// What exists for the reader, if not everything does.
    visible: Option<VisibleEvents>,
}

/// The events of one folder of the journal.
#[derive(Debug)]
pub(super) struct FolderEvents {
    path: PathBuf,
    folder: Dir,
    order: ReadOrder,
    /// Whether some events of the folder changed files.
    holds_changes: bool,
    /// The names of the remaining files, the next one last.
    months: Vec<String>,
    open: Option<Month>,
    /// The name of the file that was opened last.
    current: Option<String>,
    /// The lines that were read, the next one last.
    lines: Vec<Vec<u8>>,
    corrupt: usize,
    bytes: u64,
    /// When events are older than all that are wanted, newest first.
    since: Option<Timestamp>,
}

/// The time of an event, of which nothing else is read.
#[derive(Deserialize)]
struct EventTime {
    at: Timestamp,
}

/// An open file of the journal.
#[derive(Debug)]
struct Month {
    path: PathBuf,
    file: File,
    /// The byte range that was not read yet.
    left: std::ops::Range<u64>,
    /// The part of a line that was read while the rest is in the next block.
    part: Vec<u8>,
}

impl Events {
    pub(super) fn new(order: ReadOrder, streams: Vec<FolderEvents>) -> Self {
        let heads = streams.iter().map(|_| None).collect();
        Self { order, streams, heads, needles: Vec::new(), visible: None }
    }

    /// Leaves out what the events say of files that do not exist for the reader of a fenced vault.
    pub(super) fn seen_in(mut self, vault: &Vault) -> Self {
        self.visible = vault.is_fenced().then(|| VisibleEvents::new(vault));
        self
    }

    /// Returns only the events that changed files or undid such a change.
    #[must_use]
    pub fn of_changes(mut self) -> Self {
        self.streams.retain(|stream| stream.holds_changes);
        self.heads.truncate(self.streams.len());
        self.with_any(CHANGES)
    }

    /// Returns only the events whose lines contain one of `texts`.
    #[must_use]
    pub fn with_any(mut self, texts: &[&str]) -> Self {
        self.needles = texts.iter().map(|text| memmem::Finder::new(text).into_owned()).collect();
        self
    }

    /// Ends soon after the last event that is not older than this instant, newest first. A few events that are older are returned.
    #[must_use]
    pub fn since(mut self, at: Timestamp) -> Self {
        self.streams.iter_mut().for_each(|stream| stream.since = Some(at));
        self
    }

    /// Returns the name of the file from which a stream reads next.
    fn next_month(&self, at: usize) -> Option<&String> {
        let stream = self.streams.get(at)?;
        stream
            .current
            .as_ref()
            .filter(|_| stream.open.is_some() || !stream.lines.is_empty())
            .or(stream.months.last())
    }

    /// Returns the number of invalid lines so far.
    pub fn corrupt(&self) -> usize {
        self.streams.iter().map(|stream| stream.corrupt).sum()
    }

    /// Returns the number of bytes that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }
}

impl FolderEvents {
    pub(super) fn new(
        path: PathBuf,
        folder: Dir,
        order: ReadOrder,
        mut months: Vec<String>,
        holds_changes: bool,
    ) -> Self {
        if order == ReadOrder::OldestFirst {
            months.reverse();
        }
        let (open, current, lines) = (None, None, Vec::new());
        Self {
            path,
            folder,
            order,
            holds_changes,
            months,
            open,
            current,
            lines,
            corrupt: 0,
            bytes: 0,
            since: None,
        }
    }

    /// Reads the next event that the needles admit; `None` at the end.
    fn next(&mut self, needles: &[memmem::Finder<'static>]) -> Result<Option<Event>> {
        loop {
            while let Some(line) = self.lines.pop() {
                if let Some(event) = self.event(&line, needles) {
                    return Ok(Some(event));
                }
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    self.open = None;
                    return Err(error);
                }
            }
        }
    }

    /// Parses a line; `None` if it is invalid or filtered out.
    fn event(&mut self, line: &[u8], needles: &[memmem::Finder<'static>]) -> Option<Event> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let is_whole = line.starts_with(b"{") && line.ends_with(b"}");
        if is_whole && !needles.is_empty() && !needles.iter().any(|needle| needle.find(line).is_some()) {
            return None;
        }
        let event = serde_json::from_slice(line).ok().filter(|_| is_whole);
        if event.is_none() {
            let mut joined: Vec<Vec<u8>> = objects(line).into_iter().map(<[u8]>::to_vec).collect();
            if joined.len() > 1 {
                if self.order == ReadOrder::OldestFirst {
                    joined.reverse();
                }
                self.lines.append(&mut joined);
            } else {
                self.corrupt += 1;
            }
        }
        event
    }

    /// Reads the next block of lines; `false` at the end of the folder.
    fn fill(&mut self) -> Result<bool> {
        let Some(month) = &mut self.open else {
            let Some(name) = self.months.pop() else { return Ok(false) };
            let path = self.path.join(&name);
            let failed = |error| safe_open::failed("read the journal", &path, error);
            let file = self.folder.file(&name).map_err(failed)?;
            let left = 0..file.metadata().map_err(failed)?.len();
            self.open = Some(Month { path, file, left, part: Vec::new() });
            self.current = Some(name);
            return Ok(true);
        };
        let read = match self.order {
            ReadOrder::OldestFirst => month.next_lines(),
            ReadOrder::NewestFirst => month.last_lines(),
        };
        let failed = |error| safe_open::failed("read the journal", &month.path, error);
        let (lines, bytes) = read.map_err(failed)?;
        self.bytes += bytes;
        self.lines = lines;
        if month.left.is_empty() {
            self.open = None;
        }
        if self.order == ReadOrder::NewestFirst && self.has_older_lines() {
            self.open = None;
            self.months.clear();
        }
        Ok(true)
    }

    /// Returns whether the first and the last of the lines that were read are older than what is wanted, and so
    /// everything before them. A single line may have a wrong time, because the clock was wrong.
    fn has_older_lines(&self) -> bool {
        let Some(since) = self.since else { return false };
        let time = |line: &Vec<u8>| serde_json::from_slice::<EventTime>(line.trim_ascii()).ok();
        let is_older = |event: Option<EventTime>| event.is_some_and(|event| event.at < since);
        is_older(self.lines.iter().find_map(time)) && is_older(self.lines.iter().rev().find_map(time))
    }
}

impl Month {
    /// Reads a part of the file.
    fn read(&mut self, from: u64, len: u64) -> std::io::Result<Vec<u8>> {
        if self.part.len() > MAX_LINE_LEN {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(from))?;
        (&mut self.file).take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn size(&self) -> u64 {
        BLOCK.max(self.part.len() as u64).min(self.left.end - self.left.start)
    }

    /// Reads the next block from the start; returns its lines in reverse order and the number of bytes.
    fn next_lines(&mut self) -> std::io::Result<(Vec<Vec<u8>>, u64)> {
        let size = self.size();
        let read = self.read(self.left.start, size)?;
        let bytes = read.len() as u64;
        self.part.extend_from_slice(&read);
        self.left.start += size;
        let whole = if self.left.is_empty() {
            std::mem::take(&mut self.part)
        } else {
            let end = memchr::memrchr(b'\n', &self.part).map_or(0, |at| at + 1);
            let rest = self.part.split_off(end);
            std::mem::replace(&mut self.part, rest)
        };
        let mut lines = split(&whole);
        lines.reverse();
        Ok((lines, bytes))
    }

    /// Reads the next block from the end; returns its lines in order and the number of bytes.
    fn last_lines(&mut self) -> std::io::Result<(Vec<Vec<u8>>, u64)> {
        let size = self.size();
        let mut whole = self.read(self.left.end - size, size)?;
        let bytes = whole.len() as u64;
        whole.append(&mut self.part);
        self.left.end -= size;
        if !self.left.is_empty() {
            // The first line may begin in the block before.
            let begin = memchr::memchr(b'\n', &whole).unwrap_or(whole.len());
            let rest = whole.split_off(begin);
            self.part = std::mem::replace(&mut whole, rest);
        }
        Ok((split(&whole), bytes))
    }
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(<[u8]>::to_vec).collect()
}

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = match self.next_event()? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            let Some(visible) = &mut self.visible else { return Some(Ok(event)) };
            if let Some(event) = visible.part_of(event) {
                return Some(Ok(event));
            }
        }
    }
}

impl Events {
    fn next_event(&mut self) -> Option<Result<Event>> {
        // A stream whose next file is of an earlier month than a known event is not read yet.
        let mut unread: Vec<usize> = (0..self.streams.len()).collect();
        unread.retain(|&at| self.heads.get(at).is_some_and(Option::is_none));
        unread.sort_by(|&one, &other| self.next_month(other).cmp(&self.next_month(one)));
        for at in unread {
            let newest = self.heads.iter().flatten().map(|event| event.at).max().map(month_of);
            let may_wait = self.order == ReadOrder::NewestFirst
                && newest.is_some_and(|newest| self.next_month(at).is_none_or(|next| *next < newest));
            if let (Some(stream), Some(head), false) =
                (self.streams.get_mut(at), self.heads.get_mut(at), may_wait)
            {
                match stream.next(&self.needles) {
                    Ok(event) => *head = event,
                    Err(error) => return Some(Err(error)),
                }
            }
        }
        let heads = self.heads.iter_mut().filter(|head| head.is_some());
        let key = |head: &&mut Option<Event>| head.as_ref().map(|event| (event.at, event.id.clone()));
        let next = match self.order {
            ReadOrder::OldestFirst => heads.min_by_key(key),
            ReadOrder::NewestFirst => heads.max_by_key(key),
        };
        next.and_then(Option::take).map(Ok)
    }
}

/// Splits a line into its JSON objects: more than one where another program joined lines. A line that is not made of whole
/// objects is returned as it is.
pub(super) fn objects(line: &[u8]) -> Vec<&[u8]> {
    let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
    let (mut found, mut begin) = (Vec::new(), 0);
    while let Some(value) = values.next() {
        let end = values.byte_offset();
        match line.get(begin..end).filter(|_| value.is_ok()) {
            Some(object) => found.push(object.trim_ascii()),
            None => return vec![line],
        }
        begin = end;
    }
    found
}

/// Parses the lines of one file of the journal; returns the events and the number of invalid lines.
pub fn read_lines(bytes: &[u8]) -> (Vec<Event>, usize) {
    let (mut events, mut corrupt) = (Vec::new(), 0);
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        for object in objects(line) {
            match serde_json::from_slice::<Event>(object) {
                Ok(event) => events.push(event),
                Err(_) => corrupt += 1,
            }
        }
    }
    (events, corrupt)
}
