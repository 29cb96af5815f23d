//! Any bytes are a journal: lines that are no events are counted, the others come back as they are written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidenote::journal::reader::read_lines;

fuzz_target!(|bytes: &[u8]| {
    let (events, corrupt) = read_lines(bytes);
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    assert_eq!(events.len() + corrupt, lines);
    for event in &events {
        let line = serde_json::to_vec(event).expect("an event can be written");
        let (again, corrupt) = read_lines(&line);
        assert_eq!((again.len(), corrupt), (1, 0));
        assert_eq!(serde_json::to_vec(&again[0]).expect("an event can be written"), line);
    }
});
