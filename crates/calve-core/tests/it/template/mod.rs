//! Templates: made, found, cloned, verified, refreshed and removed, and what can be wrong with one.

mod changed;
mod crash;
mod places;
mod story;

use std::path::{Path, PathBuf};

use calve_core::error::TemplateError;
use calve_core::template::{CreatedTemplate, Difference, Template, TemplateOptions, Templates};
use calve_core::{CancelToken, CloneOptions, CloneReport, Error, clone_tree};
use calve_testkit::{FileSystem, Tree, Volume};

use crate::cloning::reap_in;

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

    /// With a template `shop` of the directory `source`, which has one file, `d/a`.
    fn with_shop(file_system: FileSystem) -> Option<(Self, Template)> {
        let fixture = Self::new(file_system)?;
        Tree::new(fixture.path("source")).file("d/a", "1").mode("d/a", 0o644);
        let shop = fixture.create("shop", "source").template;
        Some((fixture, shop))
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

    #[track_caller]
    fn refresh(&self, name: &str) -> CreatedTemplate {
        self.templates().refresh(name, None, &TemplateOptions::default()).unwrap()
    }

    /// Verifies a template, and returns what differs.
    #[track_caller]
    fn differences(&self, name: &str) -> Vec<Difference> {
        self.templates().verify(name, &CancelToken::default()).unwrap().differences
    }

    fn clone(&self, name: &str, dst: &str) -> Result<CloneReport, Error> {
        clone_template(&self.templates(), name, &self.path(dst), CloneOptions::default())
    }
}

/// Options for a template that is kept in a directory.
fn at(directory: PathBuf) -> TemplateOptions {
    let mut options = TemplateOptions::default();
    options.at = Some(directory);
    options
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
    parents.iter().for_each(|parent| _ = reap_in(parent));
}

#[track_caller]
fn template_error<T>(result: Result<T, Error>) -> TemplateError {
    match result {
        Err(Error::Template(error)) => error,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it worked"),
    }
}
