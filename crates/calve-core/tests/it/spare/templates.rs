//! Spares of templates: handed over without a look at their entries.

use std::cell::RefCell;
use std::path::PathBuf;

use calve_core::report::SpareCheck;
use calve_core::spares::{RefillOptions, SpareOptions, SpareOrigin, SpareSource, Spares};
use calve_core::template::{TemplateOptions, Templates};
use calve_core::{Error, Requirement, Strategy, clone_tree};
use calve_testkit::{FileSystem, Tree, assert_same};
use fs_err as fs;

use super::SpareFixture;

thread_local!(static HOME: RefCell<PathBuf> = RefCell::default());

fn resolve(source: &SpareSource) -> Option<SpareOrigin> {
    let SpareSource::Template(name) = source else { return None };
    let held = Templates::open(&HOME.with_borrow(Clone::clone)).hold(name).ok()?;
    Some(SpareOrigin::Template(Box::new(held)))
}

/// Builds the spares that are missing. The templates are beside the store.
fn refill(fixture: &SpareFixture) -> u64 {
    HOME.set(fixture.path("home"));
    let report = fixture.spares.refill(&RefillOptions { resolve, ..super::foreground() }).unwrap();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    report.built
}

#[test]
fn a_spare_of_a_template_is_instant() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        Tree::new(fixture.src()).file("a", "1").file("d/b", "2");
        let templates = Templates::open(&fixture.path("home"));
        templates.create("shop", &fixture.src(), &TemplateOptions::default()).unwrap();
        let origin = SpareOrigin::Template(Box::new(templates.hold("shop").unwrap()));
        Spares::at(fixture.home()).add(&origin, &SpareOptions::default()).unwrap();
        assert_eq!(refill(&fixture), 1);
        let clone = |name: &str, require: &[Requirement]| {
            let held = templates.hold("shop").unwrap();
            let mut options = fixture.options();
            options.require = require.to_vec();
            held.restrict(&mut options);
            let report = clone_tree(&held.tree, &fixture.path("place").join(name), &options).unwrap();
            assert_same(&held.tree, fixture.path("place").join(name));
            report
        };
        let spare = clone("one", &[Requirement::Instant]).spare.unwrap();
        assert_eq!((spare.checked, spare.entries_checked), (SpareCheck::Frozen, 0));
        // A template that is made anew is another tree: no spare of the old one is handed over.
        assert_eq!(refill(&fixture), 1);
        fs::write(fixture.path("src/a"), "3").unwrap();
        templates.refresh("shop", None, &TemplateOptions::default()).unwrap();
        assert_ne!(clone("two", &[]).strategy, Strategy::Spare);
        assert_eq!(fs::read_to_string(fixture.path("place/two/a")).unwrap(), "3");
        assert_eq!(refill(&fixture), 1);
        assert_eq!(clone("three", &[]).strategy, Strategy::Spare);
        assert_eq!(fs::read_to_string(fixture.path("place/three/a")).unwrap(), "3");
        // Earlier spares have the template's contents; one whose files root has changed gets no spare.
        assert_eq!(refill(&fixture), 1);
        let held = templates.hold("shop").unwrap();
        fs::write(held.tree.join("d/b"), "changed").unwrap();
        let mut options = fixture.options();
        held.restrict(&mut options);
        let report = clone_tree(&held.tree, &fixture.path("place/four"), &options).unwrap();
        assert_eq!(report.strategy, Strategy::Spare, "{:?}", report.refused);
        assert_same(fixture.src(), fixture.path("place/four"));
        let refilled = fixture.spares.refill(&RefillOptions { resolve, ..super::foreground() }).unwrap();
        assert_eq!(refilled.built, 0);
        assert!(matches!(refilled.failures[0].1, Error::Template(_)), "{:?}", refilled.failures);
        assert!(clone_tree(&held.tree, &fixture.path("place/five"), &options).is_err());
    }
}
