//! Templates: made, found, cloned, verified, refreshed and removed, and what can be wrong with one.

mod changed;
mod crash;
mod places;
mod story;

use std::path::{Path, PathBuf};

use calve_core::error::TemplateError;
use calve_core::options::Background;
use calve_core::template::{CreatedTemplate, TemplateOptions, Templates};
use calve_core::{CancelToken, CloneOptions, CloneReport, Error, clone_tree, reap};
use calve_testkit::{FileSystem, Volume};
use fs_err as fs;

/// A directory on a real file system, with a CALVE_HOME and a place for sources.
struct TemplateFixture {
    volume: Volume,
    root: PathBuf,
}

impl TemplateFixture {
    fn new(file_system: FileSystem) -> Option<Self> {
        let volume = Volume::new(file_system)?;
        Some(Self { root: volume.path().to_path_buf(), volume })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn templates(&self) -> Templates {
        Templates::open(&self.home())
    }

    #[track_caller]
    fn create(&self, name: &str, source: &str) -> CreatedTemplate {
        match self.templates().create(name, &self.path(source), &TemplateOptions::default()) {
            Ok(created) => created,
            Err(error) => panic!("cannot make the template `{name}`: {error}"),
        }
    }

    fn clone(&self, name: &str, dst: &str) -> Result<CloneReport, Error> {
        clone_template(&self.templates(), name, &self.path(dst), CloneOptions::default())
    }
}

fn clone_template(
    templates: &Templates,
    name: &str,
    dst: &Path,
    mut options: CloneOptions,
) -> Result<CloneReport, Error> {
    let held = templates.hold(name)?;
    held.restrict(&mut options);
    clone_tree(&held.tree, dst, &options)
}

fn delete_trash(parents: &[PathBuf]) {
    for parent in parents {
        let directory = fs::File::open(parent).unwrap().into_parts().0;
        reap(directory.into(), parent, Background::No, &CancelToken::default()).unwrap();
    }
}

#[track_caller]
fn template_error<T>(result: Result<T, Error>) -> TemplateError {
    match result {
        Err(Error::Template(error)) => error,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it worked"),
    }
}
