//! A folder for the files of one test, which goes with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder of this process, deleted when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// When the directory for temporary files cannot be written to.
    #[expect(clippy::new_without_default, reason = "it changes the system")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linerate-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("there is a place for temporary files");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, as a word of a command line.
    ///
    /// # Panics
    ///
    /// When the system's own part of the path is no text.
    pub fn word(&self, name: &str) -> String {
        self.0
            .join(name)
            .into_os_string()
            .into_string()
            .expect("temporary folders have plain names")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
