// SPDX-License-Identifier: GPL-2.0
//! The manager of nodes, as it is started.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;

use common::pbsctl;

#[test]
fn where_one_serves_its_file_is_not_touched() {
    let directory = std::env::temp_dir().join(format!("pbsctl-rms-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (socket, kept) = (path("rms.sock"), path("kept"));
    let _first = UnixListener::bind(&socket).unwrap();
    fs::write(&kept, "").unwrap();
    // What the first one goes on to write would be nowhere.
    let number = || fs::metadata(&kept).unwrap().ino();
    let before = number();
    let mut arguments = vec!["rms", "serve", "--socket", &socket, "--keep", &kept];
    arguments.extend(["--cluster", "lab=4"]);
    let ran = pbsctl(&arguments, "");
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("address in use"), "{}", ran.stderr);
    assert_eq!(number(), before);
    *arguments.last_mut().unwrap() = "lab=4000000000";
    let ran = pbsctl(&arguments, "");
    assert!(ran.stderr.contains("at most 1000000"), "{}", ran.stderr);
}
