// SPDX-License-Identifier: GPL-2.0
//! A trace as a file or on standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use pbs_cluster_sim::swf::{self, Trace};

use crate::failure::Failure;
use crate::files::name;

/// First bytes of compressed files, with the format and the command that decompresses it.
const COMPRESSED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"\x1f\x9d", "compress", "zcat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
];

/// Reads a trace; `-` is standard input.
pub(super) fn read_trace(path: &Path) -> Result<Trace, Failure> {
    let mut from: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
        Box::new(BufReader::new(file))
    };
    let begin = from.fill_buf().map_err(|error| Failure::file(name(path), &error))?;
    if let Some((_, format, command)) = COMPRESSED.iter().find(|of| begin.starts_with(of.0)) {
        let name = name(path);
        let file = if path == Path::new("-") { "TRACE".into() } else { path.display().to_string() };
        return Err(Failure::Failed(format!(
            "{name}: it is compressed with {format}; write {command} {file} | pbsctl cluster \
             replay -"
        )));
    }
    swf::read(from).map_err(|error| Failure::Failed(format!("{}: {error}", name(path))))
}
