//! Files that belong together, under a writer: a copy of them is good, or they are named.

use std::path::{Path, PathBuf};

use calve_core::options::SpareUse;
use calve_core::spares::{SpareOptions, SpareOrigin, Spares};
use calve_core::{CloneOptions, CloneReport, Strategy, clone_tree};
use calve_testkit::{FileSystem, Volume, few_rounds, require_program, rounds, skip};
use fs_err as fs;

use crate::script::{Script, python};
use crate::spare::foreground;

/// Comes before each program that writes to a database until its input ends. It gives it `said()`, to be called when the database is there,
/// and `over()`, which tells whether to end.
const PRELUDE: &str = "\
import sys, os, threading, random
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
over = ended.is_set
def said(): print('ready', flush=True)
";

const WRITE_AHEAD: &str = "
import sqlite3
c = sqlite3.connect('a.db', isolation_level=None)
c.execute('pragma journal_mode=wal')
c.execute('create table t(i integer primary key, v blob)')
c.execute('create index k on t(v)')
c.execute('pragma wal_autocheckpoint=20')
said()
i = 0
while not over():
    c.execute('begin')
    c.executemany('insert into t(v) values(randomblob(300))', [()] * 20)
    c.execute('update t set v=randomblob(300) where i%7=?', (i % 7,))
    c.execute('commit')
    i += 1
";

/// Says whether the copy of an SQLite database is whole.
const CHECK_SQLITE: &str = "
import sqlite3, sys
try:
    print(sqlite3.connect('a.db').execute('pragma integrity_check').fetchone()[0])
except sqlite3.DatabaseError as error:
    print(error)
";

fn check(directory: &Path, program: &str) -> Result<(), String> {
    let output = python(program).current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if said == "ok" { Ok(()) } else { Err(said + &String::from_utf8_lossy(&output.stderr)) }
}

/// How many copies were named, and how many were spares.
struct Copies {
    named: usize,
    spares: usize,
}

/// Copies a database many times under its writer. `main` is in the set.
fn copies_are_whole_or_named(copies: usize, main: &str, writer: &str, checker: &str) -> Option<Copies> {
    if !require_program("python3") {
        return None;
    }
    let volume = Volume::with_size(FileSystem::Ext4, 2 << 30)?;
    Some(copies_with(&volume, copies, main, writer, checker, &|_| CloneOptions::default()))
}

/// As [`copies_are_whole_or_named`]. `options` is called with the source before each copy.
#[expect(clippy::print_stderr, reason = "how many had to be named is what a long run is for")]
fn copies_with(
    volume: &Volume,
    copies: usize,
    main: &str,
    writer: &str,
    checker: &str,
    options: &dyn Fn(&Path) -> CloneOptions,
) -> Copies {
    // A database grows, and its transactions take longer.
    const COPIES_OF_ONE: usize = 8;
    let (mut whole, mut named, mut broken, mut spares) = (0, 0, 0, 0);
    for first in (0..copies).step_by(COPIES_OF_ONE) {
        let src = volume.path().join("src");
        fs::create_dir_all(src.join("data")).unwrap();
        // They are listed between the files of the database.
        for number in 0..if few_rounds() { 600 } else { 3_000 } {
            fs::write(src.join(format!("data/f{number}")), vec![b'x'; 5_000]).unwrap();
        }
        let mut writer = Script::start(python(&format!("{PRELUDE}{writer}")).current_dir(src.join("data")));
        writer.wait_for("ready");
        for number in first..copies.min(first + COPIES_OF_ONE) {
            let dst = volume.path().join("copy");
            let report: CloneReport = clone_tree(&src, &dst, &options(&src)).unwrap();
            spares += usize::from(report.strategy == Strategy::Spare);
            let is_named = report.changed.contains(&PathBuf::from("data").join(main));
            match (check(&dst.join("data"), checker), is_named) {
                (Ok(()), false) => whole += 1,
                (Err(said), false) => {
                    panic!("copy {number} is not whole, and not named ({:?}): {said}", report.changed)
                }
                (checked, true) => {
                    named += 1;
                    broken += usize::from(checked.is_err());
                }
            }
            fs::remove_dir_all(&dst).unwrap();
        }
        writer.end();
        fs::remove_dir_all(&src).unwrap();
    }
    eprintln!("{copies} copies: {whole} whole, {named} named, {broken} of them broken");
    assert!(whole > 0, "all of {copies} copies were named");
    Copies { named, spares }
}

#[test]
fn a_database_with_a_write_ahead_log() {
    let all = rounds(200);
    let Some(copies) = copies_are_whole_or_named(all, "a.db", WRITE_AHEAD, CHECK_SQLITE) else { return };
    assert!(few_rounds() || copies.named <= all / 10, "{} of {all} copies were named", copies.named);
}

const ROLLBACK: &str = "
import sqlite3
c = sqlite3.connect('odd', isolation_level=None)
c.execute('create table t(i integer primary key, v blob)')
c.execute('create index k on t(v)')
said()
i = 0
while not over():
    c.execute('begin')
    c.executemany('insert into t(v) values(randomblob(300))', [()] * 20)
    c.execute('update t set v=randomblob(300) where i%7=?', (i % 7,))
    c.execute('commit')
    i += 1
";

/// The journal comes and goes, and the name says nothing.
#[test]
fn a_database_with_a_rollback_journal() {
    copies_are_whole_or_named(rounds(100), "odd", ROLLBACK, &CHECK_SQLITE.replace("a.db", "odd"));
}

/// Writes as LevelDB does: tables are made, a new manifest names them, `CURRENT` names the manifest, and what no manifest names is removed.
const LEVELDB: &str = "
n = 1
def put(name, text):
    with open(name, 'w') as file: file.write(text)
def version():
    global n
    tables = []
    for _ in range(3):
        n += 1
        tables.append(f'{n:06}.ldb')
        put(tables[-1], f'{n}\\n' * random.randrange(1, 20000))
    n += 1
    put(f'MANIFEST-{n:06}', ''.join(f'{table} {os.path.getsize(table)}\\n' for table in tables))
    put('tmp', f'MANIFEST-{n:06}\\n')
    os.rename('tmp', 'CURRENT')
    return tables + [f'MANIFEST-{n:06}']
last = version()
said()
while not over():
    now = version()
    for name in last: os.unlink(name)
    last = now
    ended.wait(random.choice([0, 0, 0.02, 0.2]))
";

const CHECK_LEVELDB: &str = "
import os
manifest = open('CURRENT').read().strip()
for line in open(manifest):
    name, size = line.split()
    assert os.path.getsize(name) == int(size), name
print('ok')
";

#[test]
fn a_manifest_that_names_its_tables() {
    copies_are_whole_or_named(rounds(100), "CURRENT", LEVELDB, CHECK_LEVELDB);
}

const REDIS: &str = "
import ctypes, socket, subprocess
def redis(path):
    end_with_this = lambda: ctypes.CDLL(None).prctl(1, 9)
    words = ['--port', '0', '--unixsocket', path, '--appendonly', 'yes', '--appendfsync', 'no', '--save', '']
    server = subprocess.Popen(['redis-server', *words], stdout=subprocess.DEVNULL, preexec_fn=end_with_this)
    connection = socket.socket(socket.AF_UNIX)
    while connection.connect_ex(path): assert server.poll() is None
    answers = connection.makefile('rb')
    def ask(line):
        connection.sendall(line.encode() + b'\\r\\n')
        answer = answers.readline()
        if answer[:1] != b'$' or answer[1:2] == b'-': return answer
        return answers.read(int(answer[1:]) + 2)[:-2]
    while ask('PING') != b'+PONG\\r\\n': pass
    return server, ask
";

/// Has the parts of the file made again all the time: the last 500 numbers are there.
const WRITE_REDIS: &str = "
server, ask = redis('../../written')
def put(i): ask(f'SET k{i % 500} {i}')
for i in range(500): put(i)
said()
while not over():
    i += 1
    put(i)
    if i % 5000 == 0: ask('BGREWRITEAOF')
server.kill()
server.wait()
";

const CHECK_REDIS: &str = "
server, ask = redis('../../copied')
numbers = sorted(int(ask(f'GET k{i}')) for i in range(500))
server.kill()
server.wait()
assert numbers == list(range(numbers[0], numbers[0] + 500)), numbers
print('ok')
";

#[test]
fn an_append_only_file_of_redis() {
    if !require_program("redis-server") {
        return;
    }
    let [writer, checker] = [WRITE_REDIS, CHECK_REDIS].map(|program| [REDIS, program].concat());
    copies_are_whole_or_named(rounds(60), "appendonlydir/appendonly.aof.manifest", &writer, &checker);
}

const WRITE_LMDB: &str = "
import lmdb
environment = lmdb.open('.', map_size=1 << 28, sync=False)
i = 0
def put():
    with environment.begin(write=True) as transaction:
        for key in range(300): transaction.put(b'%d' % key, b'%d' % i * 100)
put()
said()
while not over():
    i += 1
    put()
    ended.wait(random.choice([0, 0, 0.02, 0.2]))
";

const CHECK_LMDB: &str = "
import lmdb
with lmdb.open('.', readonly=True, lock=False).begin() as transaction:
    found = [value for _, value in transaction.cursor()]
assert len(found) == 300 and len(set(found)) == 1, set(found)
print('ok')
";

#[test]
fn a_database_of_lmdb() {
    if !python("import lmdb").status().is_ok_and(|status| status.success()) {
        return skip("Python has no lmdb");
    }
    copies_are_whole_or_named(rounds(60), "data.mdb", WRITE_LMDB, CHECK_LMDB);
}

/// A journal is there as long as the database is not whole. It may appear when its directory has been listed.
const JOURNAL_APPEARS: &str = "
import time
def put(name, text):
    with open(name, 'w') as file: file.write(text)
put('x.sqlite', 'whole')
said()
while not over():
    ended.wait(random.choice([0.001, 0.01, 0.1]))
    put('x.sqlite-journal', 'whole')
    put('x.sqlite', 'torn')
    time.sleep(random.choice([0, 0.01]))
    put('x.sqlite', 'whole')
    os.unlink('x.sqlite-journal')
";

const CHECK_JOURNAL: &str = "
import os
assert os.path.exists('x.sqlite-journal') or open('x.sqlite').read() == 'whole'
print('ok')
";

#[test]
fn a_journal_that_appears_meanwhile() {
    copies_are_whole_or_named(rounds(100), "x.sqlite", JOURNAL_APPEARS, CHECK_JOURNAL);
}

/// Neither its name nor its contents tell that it is a database, so it may have been copied when its log is found. It has two names.
const ENCRYPTED: &str = "
def put(name, text):
    # In one step: a file that is emptied first may be copied while it is empty, as it is.
    file = os.open(name, os.O_WRONLY | os.O_CREAT)
    os.pwrite(file, text.zfill(12).encode(), 0)
    os.close(file)
put('odd', '0')
put('odd-wal', '0')
if LINK: os.link('odd', '../odd')
said()
i = 0
while not over():
    i += 1
    put('odd', str(i))
    put('odd-wal', str(i))
    ended.wait(random.choice([0, 0.01, 0.5]))
";

const CHECK_ENCRYPTED: &str = "
main, log = [int(open(name).read()) for name in ('odd', 'odd-wal')]
assert main in (log, log + 1), (main, log)
print('ok')
";

#[test]
fn a_database_that_nothing_but_its_log_tells_of() {
    // The name elsewhere is copied long before the log, so that a copy is whole only if nothing is written for as long.
    for (link, pause) in [("False", "0.5"), ("True", "3")] {
        let writer = ENCRYPTED.replace("LINK", link).replace("0.5", pause);
        copies_are_whole_or_named(rounds(100), "odd", &writer, CHECK_ENCRYPTED);
    }
}

/// Copies a database many times from spares that are some transactions old.
fn claims_are_whole_or_named(file_system: FileSystem, main: &str, writer: &str, checker: &str) {
    if !require_program("python3") {
        return;
    }
    let Some(volume) = Volume::with_size(file_system, 2 << 30) else { return };
    let home = volume.path().join("home");
    let spares = Spares::at(home.clone());
    let options = |src: &Path| {
        spares.add(&SpareOrigin::Directory(src.to_path_buf()), &SpareOptions::default()).unwrap();
        // It fails if something changes while a spare is built.
        let _ = spares.refill(&foreground());
        let mut options = CloneOptions::default();
        options.spares = Some(SpareUse::kept_in(home.clone()));
        options
    };
    let copies = copies_with(&volume, rounds(100), main, writer, checker, &options);
    assert!(copies.spares > 0, "no spare was claimed");
}

/// A claim copies the files that have changed since the spare was built: perhaps one file of a database, and not the other.
#[test]
fn a_database_in_a_spare() {
    let writer = WRITE_AHEAD.replace("    i += 1", "    i += 1\n    ended.wait(random.choice([0, 0.05, 0.5]))");
    claims_are_whole_or_named(FileSystem::Ext4, "a.db", &writer, CHECK_SQLITE);
}

/// A claim clones only the changed ranges of a large file. The name says nothing, and a journal is there as long as a transaction lasts.
const LARGE: &str = "
import time
file = os.open('odd', os.O_RDWR | os.O_CREAT)
os.truncate(file, 5 << 20)
os.pwrite(file, b'SQLite format 3\\0' + bytes(5 << 20), 0)
os.truncate(file, 5 << 20)
def put(i, at): os.pwrite(file, b'%08d' % i, at)
put(0, 1 << 20), put(0, 4 << 20)
os.fsync(file)
said()
i = 0
while not over():
    ended.wait(random.choice([0.05, 0.5]))
    i += 1
    open('odd-journal', 'w').write(str(i))
    put(i, 1 << 20)
    time.sleep(random.choice([0.01, 0.05, 0.3]))
    put(i, 4 << 20)
    os.unlink('odd-journal')
";

const CHECK_LARGE: &str = "
import os
file = os.open('odd', os.O_RDONLY)
first, last = [os.pread(file, 8, at) for at in (1 << 20, 4 << 20)]
assert os.path.exists('odd-journal') or first == last, (first, last)
print('ok')
";

#[test]
fn a_large_database_in_a_spare() {
    claims_are_whole_or_named(FileSystem::Xfs, "odd", LARGE, CHECK_LARGE);
}

/// Names of which a set may have any number are listed once, not once a set. The longest one would be longer than a name may be with the
/// ending of a log.
#[test]
fn lone_files_that_are_called_like_those_of_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    fs::create_dir(&src).unwrap();
    let longest = format!("{}.db", "x".repeat(252));
    for name in ["a.manifest", "b.1.base.rdb", "c.manifest", "c.2.incr.aof", "000012.log", "1.db", &longest] {
        fs::write(src.join(name), name).unwrap();
    }
    let report = clone_tree(&src, &dst, &CloneOptions::default()).unwrap();
    assert!(report.changed.is_empty(), "{:?}", report.changed);
    calve_testkit::assert_same(&src, &dst);
}
