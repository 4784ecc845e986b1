//! The migrations of a real application, by a real tool: those of Django's own applications, by `manage.py migrate`.

use std::path::Path;
use std::process::Command;

use calve_testkit::{matrix, skip};

use crate::world::{Mariadb, Postgres, Run, World};

/// The Python that has Django and its drivers. Debian's packages are for Debian's Python, which need not be the first in PATH.
fn python() -> Option<&'static str> {
    let has_all = |python: &&str| {
        let imported = Command::new(python).args(["-c", "import django, psycopg2, MySQLdb"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_all);
    if found.is_none() {
        skip("Python's modules django, psycopg2 and MySQLdb are not installed");
    }
    found
}

#[test]
fn migrations_of_django_s_applications() {
    let Some(python) = python() else { return };
    for engine in matrix([Postgres, Mariadb]) {
        let Some(world) = World::new() else { return };
        let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/django");
        let manage = site.join("manage.py").to_string_lossy().into_owned();
        let managed = |run: Run, words: &[&str]| run.args(["--", python, "-B", &manage]).args(words);
        let input = site.join("*.py").to_string_lossy().into_owned();
        let create = || {
            let words = ["template", "create", "site", "--json", "--engine", engine.name(), "--input", &input];
            managed(world.db(words), &["migrate", "--no-color"]).succeeds()
        };
        let made = create();
        assert_eq!(made.json()["reused"], false);
        for migration in ["auth.0012_alter_user_first_name_max_length... OK", "admin.0001_initial... OK"] {
            assert!(made.stderr().contains(migration), "{migration}: {}", made.stderr());
        }
        assert_eq!(create().json()["reused"], true);

        // All have run on every server of it.
        let run = |words: &[&str]| managed(world.db(["run", "site", "-q"]), words);
        run(&["migrate", "--check"]).succeeds();
        let applied = run(&["showmigrations", "--plan"]).succeeds().stdout();
        assert!(applied.lines().count() >= 20 && applied.lines().all(|line| line.starts_with("[X]")), "{applied}");

        // And the application works there: each server has its own users.
        let superuser = ["createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.org"];
        let create_user = || run(&superuser).env("DJANGO_SUPERUSER_PASSWORD", "of no use");
        assert!(create_user().succeeds().stdout().contains("Superuser created"));
        assert!(create_user().succeeds().stdout().contains("Superuser created"));
        let server = world.db(["start", "site", "--json"]).succeeds().json();
        assert_eq!(world.query(engine, &server, "SELECT count(*) FROM auth_user"), "0");
        assert_eq!(world.query(engine, &server, "SELECT domain FROM django_site"), "example.com");
        world.stop_all();
    }
}
