"""Fixtures for pytest: ``calve_server`` and ``calve_db``. Nothing of Calve is imported until one is used, or a template is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterator

import pytest

if TYPE_CHECKING:
    from calve.db import Server

NAMED_BY = "name one by `calve_template = NAME` in pytest's configuration, or by --calve-template NAME"


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "the template of the database servers (see `calve db template list`)"
    parser.getgroup("calve").addoption("--calve-template", metavar="NAME", help=about)
    parser.addini("calve_template", about)


def _template(config: pytest.Config) -> str:
    return config.getoption("calve_template") or config.getini("calve_template")  # type: ignore[no-any-return]


@pytest.fixture(scope="session", autouse=True)
def _calve_environment(request: pytest.FixtureRequest) -> None:
    """A test that asks for no fixture, or runs first, must not reach the database of the developer's own environment."""
    if _template(request.config):
        request.getfixturevalue("calve_server")


@pytest.fixture(scope="session")
def calve_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A database server for this worker. ``DATABASE_URL``, ``PGHOST`` and the like lead to it. Nothing puts it back between tests."""
    from calve import CalveError, db

    template = _template(pytestconfig)
    if not template:
        pytest.fail(f"no template is named for the database server\nhint: {NAMED_BY}", pytrace=False)
    try:
        server = db.start(template, owner_pid=_owners(pytestconfig))
    except CalveError as error:
        pytest.fail(str(error), pytrace=False)
    with server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment.items():
            if value is None:
                environment.delenv(name, raising=False)
            else:
                environment.setenv(name, value)
        yield server


@pytest.fixture
def calve_db(calve_server: Server) -> Iterator[Server]:
    """The database server of this worker, which is put back after the test. Marks that the test made are removed."""
    before = len(calve_server._marks)
    yield calve_server
    calve_server.reset()
    calve_server._unmark(before)


def _owners(config: pytest.Config) -> list[int]:
    """The processes whose end ends the tests here. A worker of pytest-xdist may stay for a while when the one that runs it is killed."""
    parent = os.getppid()
    return [parent, os.getpid()] if hasattr(config, "workerinput") and parent > 1 else [os.getpid()]
