//! The platform layer: every system gives the same answers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sidenote::base::platform;
use sidenote::base::platform::{Attributes, Dir, FileKind, OpenMode};

fn folder() -> (tempfile::TempDir, PathBuf, Dir) {
    let folder = tempfile::tempdir().unwrap();
    let path = platform::canonicalize(folder.path()).unwrap();
    let dir = Dir::open(&path).unwrap();
    (folder, path, dir)
}

#[test]
fn a_path_of_the_system_becomes_one_with_slashes() {
    let cases = [
        (&["a.md"][..], Some("a.md")),
        (&["Größe", "日記", "a b.md"], Some("Größe/日記/a b.md")),
        (&[], Some("")),
        (&["..", "a.md"], None),
    ];
    assert_eq!(cases.len(), 4);
    for (parts, expected) in cases {
        let path: PathBuf = parts.iter().collect();
        assert_eq!(platform::slash_path(&path).as_deref(), expected, "{}", path.display());
    }
}

#[test]
fn a_listing_has_the_metadata_that_each_entry_has() {
    let (_folder, path, dir) = folder();
    fs::write(path.join("Größe.md"), "1234567").unwrap();
    fs::write(path.join("empty"), "").unwrap();
    fs::create_dir(path.join("日記")).unwrap();
    let listed = platform::read_dir(&path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        assert_eq!(entry.path(), path.join(entry.name()));
        assert_eq!(entry.kind().unwrap(), entry.metadata().unwrap().kind);
        (entry.name().to_str().unwrap().to_owned(), entry.metadata().unwrap())
    });
    let listed: BTreeMap<_, _> = listed.collect();
    let names: Vec<&str> = listed.keys().map(String::as_str).collect();
    assert_eq!(names, ["Größe.md", "empty", "日記"]);
    for (name, found) in &listed {
        assert_eq!(*found, platform::entry_metadata(&path.join(name)).unwrap(), "{name}");
        assert_eq!(Some(*found), dir.entry(name).unwrap(), "{name}");
    }
    assert_eq!(listed["Größe.md"].size, 7);
    assert_eq!(listed["日記"].kind, FileKind::Dir);
    let mut names = dir.names().unwrap();
    names.sort();
    assert_eq!(names, ["Größe.md", "empty", "日記"]);
    assert_eq!(dir.entry("missing").unwrap(), None);
}

#[test]
fn a_rename_keeps_the_identity_of_a_file_and_replaces_only_when_asked() {
    let (_folder, path, dir) = folder();
    fs::write(path.join("a"), "first").unwrap();
    fs::write(path.join("b"), "second").unwrap();
    let before = dir.entry("a").unwrap().unwrap();
    let refused = dir.rename_no_replace("a", &dir, "b").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "second");
    dir.rename_replace("a", &dir, "b").unwrap();
    assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "first");
    let after = dir.entry("b").unwrap().unwrap();
    assert!(after.is_unchanged_since(&before));
    dir.create_dir("sub").unwrap();
    let sub = dir.open_dir("sub".as_ref()).unwrap();
    dir.rename_no_replace("b", &sub, "c").unwrap();
    assert_eq!(fs::read_to_string(path.join("sub").join("c")).unwrap(), "first");
    assert_eq!(dir.remove_dir("sub").unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    sub.remove_file("c").unwrap();
    drop(sub);
    dir.remove_dir("sub").unwrap();
    assert_eq!(dir.names().unwrap(), Vec::<std::ffi::OsString>::new());
}

#[test]
fn an_open_file_can_be_replaced_and_removed() {
    let (_folder, path, dir) = folder();
    fs::write(path.join("a"), "first").unwrap();
    fs::write(path.join("b"), "second").unwrap();
    let mut open = dir.open_file("a".as_ref(), OpenMode::Read).unwrap();
    dir.rename_replace("b", &dir, "a").unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first");
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "second");
}

#[test]
fn names_that_lead_out_of_a_folder_are_refused() {
    let (_folder, path, dir) = folder();
    fs::create_dir(path.join("sub")).unwrap();
    fs::write(path.join("secret"), "x").unwrap();
    let sub = dir.open_dir("sub".as_ref()).unwrap();
    if let Err(error) = platform::create_symlink(Path::new("../secret"), &path.join("sub").join("link")) {
        // Windows lets only administrators and developers create links.
        assert_eq!(error.raw_os_error(), Some(1314));
        return;
    }
    let refused = sub.open_file("link".as_ref(), OpenMode::Read).unwrap_err();
    assert!(platform::is_symlink_refusal(&refused), "{refused:?}");
    assert_eq!(sub.entry("link").unwrap().unwrap().kind, FileKind::Symlink);
}

#[test]
fn a_new_file_is_never_an_old_one_and_appended_text_comes_last() {
    let (_folder, path, dir) = folder();
    let mut file = dir.open_file("a".as_ref(), OpenMode::CreateNew(0o600)).unwrap();
    file.write_all(b"12").unwrap();
    let again = dir.open_file("a".as_ref(), OpenMode::CreateNew(0o600)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let mut first = dir.open_file("a".as_ref(), OpenMode::AppendOrCreate).unwrap();
    let mut second = dir.open_file("a".as_ref(), OpenMode::AppendOrCreate).unwrap();
    first.write_all(b"34").unwrap();
    second.write_all(b"56").unwrap();
    first.write_all(b"78").unwrap();
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "12345678");
    dir.sync_file("a").unwrap();
    dir.sync().unwrap();
    let missing = dir.open_file("b".as_ref(), OpenMode::Read).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn bytes_are_read_and_written_at_offsets() {
    let (_folder, path, dir) = folder();
    let file = dir.open_file("a".as_ref(), OpenMode::ReadWriteOrCreate(0o600)).unwrap();
    platform::write_all_at(&file, b"hello", 3).unwrap();
    let mut bytes = [0; 4];
    platform::read_exact_at(&file, &mut bytes, 4).unwrap();
    assert_eq!(&bytes, b"ello");
    let beyond = platform::read_exact_at(&file, &mut bytes, 5).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(fs::read(path.join("a")).unwrap(), b"\0\0\0hello");
}

#[test]
fn a_lock_excludes_other_handles_and_lets_them_read() {
    let (_folder, path, dir) = folder();
    fs::write(path.join("lock"), "4711").unwrap();
    let open = || dir.open_file("lock".as_ref(), OpenMode::ReadWrite).unwrap();
    let (first, mut second) = (open(), open());
    assert!(platform::try_lock(&first).unwrap());
    assert!(!platform::try_lock(&second).unwrap());
    assert!(!platform::try_lock_shared(&second).unwrap());
    let mut text = String::new();
    second.read_to_string(&mut text).unwrap();
    assert_eq!(text, "4711");
    platform::unlock(&first).unwrap();
    assert!(platform::try_lock_shared(&second).unwrap());
}

#[test]
fn a_replacement_keeps_what_a_file_has_beside_its_content() {
    let (_folder, path, dir) = folder();
    fs::write(path.join("old"), "old").unwrap();
    let old = dir.open_file("old".as_ref(), OpenMode::Read).unwrap();
    let (found, attributes) = (platform::file_metadata(&old).unwrap(), Attributes::read(&old).unwrap());
    let new = dir.open_file("new".as_ref(), OpenMode::CreateNew(0o600)).unwrap();
    let steps = std::cell::Cell::new(0);
    attributes.copy_to(&new, &found, || steps.set(steps.get() + 1)).unwrap();
    assert!(steps.get() > 0);
    assert_eq!(dir.entry("new").unwrap().unwrap().mode, found.mode);
    assert!(dir.check_writable("new").is_ok() && dir.check_writable(".").is_ok());
}

#[test]
fn a_path_without_links_is_its_own_canonical_path() {
    let (_folder, path, _) = folder();
    let inner = path.join("a").join("Größe");
    fs::create_dir_all(&inner).unwrap();
    assert_eq!(platform::canonicalize(&inner.join("..").join("Größe")).unwrap(), inner);
    assert!(!inner.display().to_string().starts_with(r"\\?\"), "{}", inner.display());
}

#[test]
fn file_systems_that_report_no_changes_are_known_by_their_mounts() {
    let mounts = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:50 / /mnt/nas rw master:2 shared:3 - nfs4 nas:/notes rw
41 27 0:51 / /mnt/share rw - cifs //host/share rw
42 27 0:52 / /mnt/c rw - 9p C: rw
43 27 0:53 / /mnt/ssh rw - fuse.sshfs me@host:/ rw
44 27 8:1 / /mnt/usb rw - fuseblk /dev/sda1 rw
45 27 0:54 / /mnt/shared\\040folder rw - vboxsf x rw
";
    let cases = [
        ("254:0", None),
        ("0:50", Some("nfs4")),
        ("0:51", Some("cifs")),
        ("0:52", Some("9p")),
        ("0:53", Some("fuse.sshfs")),
        ("8:1", None),
        ("0:54", Some("vboxsf")),
        ("0:99", None),
    ];
    assert_eq!(cases.len(), 8);
    for (device, kind) in cases {
        assert_eq!(sidenote::base::platform::unnotified_mount(mounts, device).as_deref(), kind, "{device}");
    }
}
