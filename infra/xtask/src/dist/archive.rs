//! Archives whose bytes depend on nothing but their contents: no time, no user, no order of a folder.

use std::io::{Cursor, Write};

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The permissions of programs.
pub(super) const PROGRAM: u32 = 0o755;
/// The permissions of other files.
pub(super) const TEXT: u32 = 0o644;
/// The time of each file, in seconds of Unix time: 1980-01-01, the earliest that zip has. Tar prints a warning for 0.
pub(super) const TIME: u64 = 315_532_800;

/// A zip archive with one program.
pub(super) fn zip(name: &str, program: &[u8]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(vec![]));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(PROGRAM);
    archive.start_file(name, options)?;
    archive.write_all(program)?;
    Ok(archive.finish()?.into_inner())
}

/// A `tar.gz` with these files: paths, contents, permissions.
pub(super) fn tar_gz(files: &[(String, Vec<u8>, u32)]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzBuilder::new().mtime(0).write(vec![], Compression::best()));
    for (path, content, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len().try_into()?);
        header.set_mode(*mode);
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, path, content.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}
