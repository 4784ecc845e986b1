//! The bytes of a blob: in memory, or, if there are many, in a file without a name.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::error::Error;

/// More of a blob goes into a file. Each worker has one blob.
const IN_MEMORY_BYTES: usize = 4 << 20;

pub(crate) struct Spool {
    /// The file, or the directory for one.
    path: Option<PathBuf>,
    memory: Vec<u8>,
    file: Option<File>,
    pub(crate) size: u64,
    hash: Context,
    /// Bytes that an earlier pull has left.
    pub(crate) kept: u64,
    /// Includes bytes that were dropped again.
    pub(crate) fetched: u64,
}

impl Spool {
    /// `directory` is for the file of a large blob. Without one, everything stays in memory.
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self {
            path: directory.map(Path::to_path_buf),
            memory: Vec::new(),
            file: None,
            size: 0,
            hash: Context::new(&SHA256),
            kept: 0,
            fetched: 0,
        }
    }

    /// Continues the file of an earlier pull, opened for appending. Nothing in it has been checked.
    pub(crate) fn resume(mut file: File, path: &Path) -> io::Result<Self> {
        let mut spool = Self::new(Some(path));
        let mut buffer = vec![0; 128 << 10];
        while let length @ 1.. = file.read(&mut buffer)? {
            spool.hash.update(&buffer[..length]);
            spool.size += length as u64;
        }
        (spool.kept, spool.file) = (spool.size, Some(file));
        Ok(spool)
    }

    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        let emptied = self.file.as_mut().map(|file| file.set_len(0).and_then(|()| file.rewind())).transpose();
        emptied.map_err(|error| self.failed(error))?;
        self.memory.clear();
        (self.size, self.kept, self.hash) = (0, 0, Context::new(&SHA256));
        Ok(())
    }

    pub(crate) fn digest(&self) -> String {
        digest_of(self.hash.clone())
    }

    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::io("keep a part of an image in", self.path.clone().unwrap_or_default(), source)
    }

    /// Makes the error for a part that cannot be read back, also while a reader is open.
    pub(crate) fn unreadable(&self) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.path.clone().unwrap_or_default();
        move |source| Error::io("read a part of", &*path, source)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.reader()?.read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| self.failed(error))
    }

    pub(crate) fn reader(&mut self) -> Result<Box<dyn Read + '_>, Error> {
        let rewound = self.file.as_mut().map(|file| file.rewind()).transpose();
        rewound.map_err(|error| self.failed(error))?;
        Ok(match &mut self.file {
            Some(file) => Box::new(file),
            None => Box::new(Cursor::new(&self.memory)),
        })
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_large = self.file.is_none() && self.memory.len() + bytes.len() > IN_MEMORY_BYTES;
        if let Some(directory) = self.path.as_ref().filter(|_| is_large) {
            let mut file = tempfile::tempfile_in(directory)?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.fetched += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(bytes);
    digest_of(hash)
}

pub(crate) fn digest_of(hash: Context) -> String {
    let hex: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
