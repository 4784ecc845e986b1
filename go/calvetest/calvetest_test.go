package calvetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const customers = "SELECT count(*) FROM customers"

// TestMain makes the template `shop`: a table `customers` with 100 rows, by PostgreSQL.
func TestMain(m *testing.M) {
	os.Exit(withTemplate(m))
}

func withTemplate(m *testing.M) int {
	home, err := os.MkdirTemp("", "calve-go-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	// Open to the user that a server of root runs as.
	if err := os.Chmod(home, 0o755); err != nil {
		panic(err)
	}
	os.Setenv("CALVE_HOME", home)
	fill := "CREATE TABLE customers AS SELECT generate_series(1, 100) AS id"
	create := exec.Command("calve", "db", "template", "create", "-q", "shop", "--engine", "postgres", "--", "psql", "-qv", "ON_ERROR_STOP=1", "-c", fill)
	if out, err := create.CombinedOutput(); err != nil {
		panic(string(out) + err.Error())
	}
	defer exec.Command("calve", "db", "gc", "-q").Run()
	return m.Run()
}

func psql(t *testing.T, database *Database, sql string) string {
	t.Helper()
	command := exec.Command("psql", "-qtAc", sql)
	command.Env = database.Env()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func list(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("calve", "db", "list").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestEachTestHasAServer(t *testing.T) {
	t.Setenv("PGSERVICE", "elsewhere")
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := Start(t, "shop")
			if got := psql(t, database, customers); got != "100" {
				t.Fatal(got)
			}
			psql(t, database, "DROP TABLE customers")
			database.Reset()
			if got := psql(t, database, customers); got != "100" {
				t.Fatal(got)
			}
		})
	}
}

func TestAServerGoesBackToAMark(t *testing.T) {
	database := Start(t, "shop")
	psql(t, database, "DELETE FROM customers WHERE id > 50")
	database.Mark("half")
	psql(t, database, "DROP TABLE customers")
	database.ResetTo("half")
	if got := psql(t, database, customers); got != "50" {
		t.Fatal(got)
	}
}

func TestItEndsWithItsTest(t *testing.T) {
	var ended *Database
	t.Run("of", func(t *testing.T) {
		ended = Start(t, "shop")
		if !strings.Contains(list(t), ended.Name) {
			t.Fatal(list(t))
		}
	})
	if strings.Contains(list(t), ended.Name) {
		t.Fatal(list(t))
	}
	t.Run("stopped by somebody else", func(t *testing.T) {
		database := Start(t, "shop")
		if out, err := exec.Command("calve", "db", "stop", database.Name).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
	})
}

// failing is a test that notes why it failed.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatal(said ...any) {
	f.said = said[0].(error).Error()
	panic(f)
}

// failure returns what Start says where it fails.
func failure(t *testing.T, template string) (said string) {
	t.Helper()
	f := &failing{TB: t}
	defer func() {
		if got := recover(); got != f {
			t.Fatal("it did not fail: ", got)
		}
		said = f.said
	}()
	Start(f, template)
	return ""
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	if said := failure(t, "none"); !strings.HasPrefix(said, "calvetest: there is no template `none`\nhint: ") {
		t.Error(said)
	}
	directory := t.TempDir()
	t.Setenv("PATH", directory)
	if said := failure(t, "shop"); !strings.Contains(said, "cannot start the program calve") || !strings.Contains(said, "hint: install calve "+Version) {
		t.Error(said)
	}
	t.Setenv("PATH", directory+":/usr/bin:/bin")
	for text, version := range map[string]string{
		`[ "$1" != --version ] || { echo calve 0.0.1; exit; }; echo "error: unexpected argument" >&2; exit 2`: "calve 0.0.1",
		`[ "$1" != --version ] || { echo calve 0.0.1; exit; }; echo '{"schema": "calve.db.server/1"}'`:        "calve 0.0.1",
		`echo hello`: "hello",
	} {
		if err := os.WriteFile(filepath.Join(directory, "calve"), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if said := failure(t, "shop"); !strings.Contains(said, "the program calve in PATH is "+version+", and this package is for calve "+Version) {
			t.Error(said)
		}
	}
}
