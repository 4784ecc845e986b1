// Package calvetest gives Go tests database servers of their own, each on a clone of a template of the program calve.
//
// A template is a filled data directory, made once by `calve db template create`. A server starts in tens of milliseconds, whatever the
// size of its template. The package has no dependencies; the program calve must be in PATH.
package calvetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Version is the version of the program that this package is tested with.
const Version = "0.1.0"

const serverSchema = "calve.db.server/1"

// Database is a running server, and how it is reached.
type Database struct {
	// Name is what `calve db list` calls it.
	Name string `json:"name"`
	// Engine is postgres, mariadb, mysql, redis or valkey.
	Engine string `json:"engine"`
	// URL is the address by the private socket.
	URL string `json:"url"`
	// DSN is the address as keywords of libpq for PostgreSQL, which lib/pq and pgx take, and in the form of go-sql-driver/mysql for MariaDB.
	DSN string `json:"dsn"`
	// Host is the directory of the socket for PostgreSQL, localhost for MariaDB and MySQL, and the path of the socket for Redis and Valkey.
	Host string `json:"host"`
	// Port is a part of the socket's name for PostgreSQL.
	Port int `json:"port"`
	// Socket is the socket's path.
	Socket string `json:"socket"`
	// User is the superuser, who needs no password by the socket.
	User string `json:"user"`
	// Password is the password for TCP, and empty without TCP.
	Password string `json:"password"`
	// Name of a database that always exists.
	Database string `json:"database"`
	// Environment has the variables by which programs find this server and no other. Nil: the variable must not be set.
	Environment map[string]*string `json:"environment"`

	t testing.TB
}

// Start starts a server on a clone of template. It ends with the test, and with the process of the tests, also when that is killed.
func Start(t testing.TB, template string) *Database {
	t.Helper()
	database := &Database{t: t}
	err := database.document(serverSchema, "start", "--quiet", "--json", "--owner-pid", strconv.Itoa(os.Getpid()), "--", template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.stop)
	return database
}

// Reset puts the server back to its template. The address stays; sessions are cut off.
func (database *Database) Reset() {
	database.t.Helper()
	database.ask("reset", "--quiet", "--", database.Name)
}

// ResetTo puts the server back to a mark.
func (database *Database) ResetTo(mark string) {
	database.t.Helper()
	database.ask("reset", "--quiet", "--to", mark, "--", database.Name)
}

// Mark keeps the present state as a mark, to which ResetTo goes back.
func (database *Database) Mark(name string) {
	database.t.Helper()
	database.ask("mark", "--quiet", "--", database.Name, name)
}

// Env returns the environment of this process, changed so that programs find this server and no other: for exec.Cmd.Env.
func (database *Database) Env() []string {
	var environment []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if _, changed := database.Environment[name]; !changed {
			environment = append(environment, variable)
		}
	}
	for name, value := range database.Environment {
		if value != nil {
			environment = append(environment, name+"="+*value)
		}
	}
	return environment
}

func (database *Database) ask(words ...string) {
	database.t.Helper()
	if _, err := run(words...); err != nil {
		database.t.Fatal(err)
	}
}

func (database *Database) stop() {
	if _, err := run("stop", "--quiet", "--", database.Name); err != nil {
		// It may have ended by itself.
		if _, gone := run("url", "--", database.Name); gone == nil {
			database.t.Error(err)
		}
	}
}

// document runs a command whose result is the document of a server.
func (database *Database) document(schema string, words ...string) error {
	out, err := run(words...)
	if err != nil {
		return err
	}
	var document struct {
		Schema string `json:"schema"`
		*Database
	}
	document.Database = database
	if err := json.Unmarshal(out, &document); err != nil || document.Schema != schema || database.Environment == nil {
		return otherVersion("it printed something else than expected")
	}
	return nil
}

// run runs `calve db` and returns what it prints.
func run(words ...string) ([]byte, error) {
	var out, told bytes.Buffer
	command := exec.Command("calve", append([]string{"db"}, words...)...)
	command.Stdout, command.Stderr = &out, &told
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), nil
	case !errors.As(err, &exit):
		return nil, fmt.Errorf("calvetest: cannot start the program calve: %w\nhint: install calve %s, and put it into PATH", err, Version)
	// A word of the command line is unknown.
	case exit.ExitCode() == 2 && !strings.Contains(out.String(), "calve.error/1"):
		return nil, otherVersion(strings.TrimSpace(told.String()))
	}
	return nil, errors.New("calvetest: " + strings.TrimPrefix(strings.TrimSpace(told.String()), "error: "))
}

// otherVersion says so, if the program is of another version; or else only what it said.
func otherVersion(said string) error {
	out, err := exec.Command("calve", "--version").Output()
	version := strings.TrimSpace(string(out))
	if err == nil && version == "calve "+Version {
		return errors.New("calvetest: " + said)
	}
	if version == "" {
		version = "not calve"
	}
	return fmt.Errorf("calvetest: the program calve in PATH is %s, and this package is for calve %s: %s\nhint: install calve %s", version, Version, said, Version)
}
