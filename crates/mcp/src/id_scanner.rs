//! Finds the id of a request in a message that is too long to be kept, while its bytes pass by.

use rmcp::model::RequestId;

/// The longest id, in bytes, that is repeated in the answer to such a message.
const LONGEST_ID: usize = 1_000;

/// Reads the bytes of a message of JSON-RPC and remembers the value of the key `id` of its object.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    /// The number of objects and arrays that are open.
    depth: usize,
    is_in_string: bool,
    /// Whether the next byte of a string is escaped.
    is_escaped: bool,
    /// The current key or value of the object, without values that are objects or arrays.
    token: Vec<u8>,
    /// Whether the token is the value of `id`.
    is_id: bool,
    id: Option<RequestId>,
}

impl IdScanner {
    /// Reads the next bytes of the message.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.read_byte(*byte));
    }

    /// Returns the id of the request; `None` if the message has none so far, or one that is no text or number.
    pub(crate) fn id(self) -> Option<RequestId> {
        self.id
    }

    fn read_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.is_in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return self.keep(byte);
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.token.trim_ascii() == b"\"id\"";
                self.token.clear();
            }
            b',' => self.end_value(),
            _ => self.keep(byte),
        }
    }

    /// Adds a byte to the token of the object.
    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= LONGEST_ID {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.is_id && self.token.len() <= LONGEST_ID {
            self.id = serde_json::from_slice(&self.token).ok();
        }
        self.is_id = false;
        self.token.clear();
    }
}
