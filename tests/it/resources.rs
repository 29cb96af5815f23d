//! Tests resources over standard input and output: their content, and that no URI leads out of the vault
//! (docs/spec/security.md, Paths).

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp_client::Client;
use crate::support::TestVault;

/// A text that occurs only outside of the vault.
const SECRET: &str = "pangolin";

/// A sign that a URI encodes and a file name can have, and its code.
const SIGN: (&str, &str) = if cfg!(windows) { ("=", "%3D") } else { ("?", "%3F") };

/// Makes a vault with a neighbour, and with hidden files, that hold the secret.
fn vault() -> (TestVault, TempDir) {
    let vault = TestVault::new(&[
        ("Plan.md", "The plan.\n"),
        ("Board.canvas", "{\"nodes\":[],\"edges\":[]}"),
        ("gauge.png", "not an image"),
        (".obsidian/app.json", SECRET),
        (".sidenote/secret.md", SECRET),
        (".git/config", SECRET),
        (".trash/Old.md", SECRET),
        ("Folder/.hidden/note.md", SECRET),
    ]);
    vault.write(&format!("Über den Fluss/100 % & mehr{}.md", SIGN.0), "A name to encode.\n");
    let name = vault.root().file_name().unwrap().to_str().unwrap();
    let evil = tempfile::Builder::new().prefix(&format!("{name}-evil")).tempdir().unwrap();
    fs::write(evil.path().join("secret.md"), SECRET).unwrap();
    (vault, evil)
}

#[test]
fn resource_uris_name_files_of_the_vault() {
    let (vault, _evil) = vault();
    let mut client = Client::start(&vault, &[]);
    let listed = client.request("resources/list", json!({}));
    let uris: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(
        uris,
        [
            "sidenote:///Board.canvas",
            "sidenote:///Plan.md",
            "sidenote:///gauge.png",
            &format!("sidenote:///%C3%9Cber%20den%20Fluss/100%20%25%20%26%20mehr{}.md", SIGN.1),
        ]
    );
    for (uri, kind, holds) in [
        (uris[0], "application/json", "\"nodes\""),
        (uris[1], "text/markdown", "The plan."),
        (uris[3], "text/markdown", "A name to encode."),
        // Encoded where it need not be, and not where it should be.
        ("sidenote:///%50lan.md", "text/markdown", "The plan."),
        (
            &format!("sidenote:///Über den Fluss/100 %25 & mehr{}.md", SIGN.0),
            "text/markdown",
            "A name to encode.",
        ),
    ] {
        let contents = client.request("resources/read", json!({ "uri": uri }))["contents"][0].clone();
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!(kind)));
        assert!(contents["text"].as_str().unwrap().contains(holds), "{contents}");
    }
    client.finish();
}

#[test]
fn attachments_are_read_as_bytes_with_their_type() {
    let vault = TestVault::new(&[("Table.csv", "a,b\n")]);
    vault.write("gauge.png", b"\x89PNG\r\n\x1a\n\0");
    vault.write("Manual.pdf", b"%PDF-1.4 \xE2");
    vault.write("Latin.md", b"caf\xE9");
    vault.write("Nothing", b"");
    vault.write("film.mp4", vec![b'x'; (8 << 20) + 1]);
    let mut client = Client::start(&vault, &[]);
    let cases = [
        ("gauge.png", "image/png", "blob", "iVBORw0KGgoA"),
        ("Manual.pdf", "application/pdf", "blob", "JVBERi0xLjQg4g=="),
        // A text that cannot be read as one is given as it is.
        ("Latin.md", "text/markdown", "blob", "Y2Fm6Q=="),
        ("Nothing", "application/octet-stream", "blob", ""),
        ("Table.csv", "text/csv", "text", "a,b\n"),
    ];
    assert_eq!(cases.len(), 5);
    for (path, kind, form, holds) in cases {
        let uri = format!("sidenote:///{path}");
        let contents = client.request("resources/read", json!({ "uri": uri }))["contents"][0].clone();
        assert_eq!(
            (&contents["mimeType"], &contents[form]),
            (&json!(kind), &json!(holds)),
            "{path}: {contents}"
        );
    }
    let large = client.ask("resources/read", json!({ "uri": "sidenote:///film.mp4" }));
    assert_eq!(large["error"]["code"], -32602);
    let says = large["error"]["message"].as_str().unwrap();
    assert!(says.contains("film.mp4 (video/mp4) has 8388609 bytes"), "{says}");
    client.finish();
}

#[test]
fn pages_of_resources_contain_every_file_once() {
    let names: Vec<String> = (0..450).map(|at| format!("N{at:03}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let vault = TestVault::new(&files);
    let mut client = Client::start(&vault, &[]);
    let (mut found, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    while pages == 0 || !cursor.is_null() {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = client.request("resources/list", params);
        found.extend(
            page["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()),
        );
        cursor = page["nextCursor"].clone();
        pages += 1;
    }
    assert_eq!((found, pages), (names, 3));
    for cursor in ["nonsense", "sidenote:///../../etc", "-1"] {
        assert_eq!(
            client.ask("resources/list", json!({ "cursor": cursor }))["error"]["code"],
            -32602,
            "{cursor}"
        );
    }
    client.finish();
}

#[test]
fn no_resource_uri_escapes_the_vault() {
    let (vault, evil) = vault();
    let name = evil.path().file_name().unwrap().to_str().unwrap();
    let absolute = vault.root().join("Plan.md").display().to_string();
    let mut client = Client::start(&vault, &[]);
    let beside = [format!("../{name}/secret.md"), format!("Folder/../../{name}/secret.md")];
    let beside = beside.iter().flat_map(|path| {
        let encoded = path.replace("..", "%2e%2e");
        [
            path.clone(),
            encoded.clone(),
            encoded.replace('/', "%2f"),
            path.replace('/', "\\"),
            path.replace('/', "%5C"),
        ]
    });
    let others = [
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "..",
        "%2e%2e",
        "%2E%2E/%2E%2E/etc/passwd",
        "./Plan.md",
        "Folder//Plan.md",
        "Plan.md/",
        "",
        ".obsidian/app.json",
        "%2eobsidian/app.json",
        ".sidenote/secret.md",
        "%2Esidenote/secret.md",
        ".git/config",
        ".trash/Old.md",
        "Folder/.hidden/note.md",
        "Plan.md%00",
        "Plan.md%00.png",
        "..%00/secret.md",
        "%FF%FE",
    ];
    let paths = beside.chain(others.map(str::to_owned)).chain([absolute]);
    let mut uris: Vec<String> = paths.map(|path| format!("sidenote:///{path}")).collect();
    uris.extend(
        [
            "file:///etc/passwd",
            "sidenote://Plan.md",
            "SIDENOTE:///Plan.md",
            "Plan.md",
            "",
            "http://127.0.0.1/",
        ]
        .map(str::to_owned),
    );
    for uri in uris {
        for method in ["resources/read", "resources/subscribe"] {
            let reply = client.ask(method, json!({ "uri": uri }));
            let code = &reply["error"]["code"];
            // A disk can have a name with backslashes, but on Windows.
            let can_be_a_name = uri.contains('\\') || uri.contains("%5C");
            assert!(*code == -32602 || can_be_a_name && *code == -32002, "{method} {uri:?}: {reply}");
            assert!(!reply.to_string().contains(SECRET), "{uri}");
        }
    }
    // Names that a disk can have, but on Windows, where some of them mean something else.
    for path in
        ["C:/Windows/win.ini", "Plan.md:stream", "Plan.md%0A", "%E2%80%AEdm.nalP", "Folder%5C..%5C..%5Cx.md"]
    {
        let reply = client.ask("resources/read", json!({ "uri": format!("sidenote:///{path}") }));
        let code = &reply["error"]["code"];
        assert!(*code == -32002 || cfg!(windows) && *code == -32602, "{path}: {reply}");
    }
    for uri in ["sidenote:///Gone.md", "sidenote:///%252e%252e/secret.md", "sidenote:///Folder"] {
        let reply = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["data"]["uri"]),
            (&json!(-32002), &json!(uri)),
            "{reply}"
        );
    }
    client.finish();
}

#[test]
fn completions_offer_nothing_hidden() {
    let (vault, _evil) = vault();
    let mut client = Client::start(&vault, &[]);
    client.request("resources/list", json!({}));
    let mut offered = 0;
    for begun in
        ["", ".", "..", "../", "/etc/", ".obsidian", ".sidenote/", "secret", "config", "hidden", "Old"]
    {
        for (what, argument) in [
            (json!({ "type": "ref/resource", "uri": "sidenote:///{+path}" }), "path"),
            (json!({ "type": "ref/prompt", "name": "link_suggestions" }), "note"),
        ] {
            let asked = json!({ "ref": what, "argument": { "name": argument, "value": begun } });
            let values = client.request("completion/complete", asked)["completion"]["values"].clone();
            for value in values.as_array().unwrap() {
                let value = value.as_str().unwrap();
                assert!(!value.starts_with(['.', '/']) && !value.contains("/."), "{begun:?}: {value}");
                assert!(!["secret", "config", "note", "Old"].contains(&value), "{begun:?}: {value}");
                offered += 1;
            }
        }
    }
    assert!(offered > 0, "nothing at all is offered");
    client.finish();
}
