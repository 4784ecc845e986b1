"""The examples of README.md run as they are printed, and a failing call says what it says everywhere."""

import asyncio
import errno
import os
import re
from pathlib import Path

import pytest

import calve

TEXT = Path(os.environ["CALVE_README"]).read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_examples(tmp_path, monkeypatch):
    assert len(EXAMPLES) >= 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("x")
    names = {"calve": calve}
    for example in EXAMPLES:
        exec(example, names)
    assert (tmp_path / "out/a.txt").read_text() == "hello" and not (tmp_path / "scratch").exists()
    asyncio.run(calve.aio.probe("."))


def test_a_failing_call(tmp_path):
    with pytest.raises(calve.CalveMissing) as caught:
        calve.clone_tree(tmp_path / "none", tmp_path / "dst")
    error = caught.value
    assert [kind.__name__ for kind in type(error).__mro__][:4] == ["CalveMissing", "CalveError", "FileNotFoundError", "OSError"]
    assert (error.code, error.errno, error.filename) == ("ERR_CALVE_MISSING", errno.ENOENT, str(tmp_path / "none"))
    assert error.hint == "check the spelling of the path"
    assert str(error) == f"`{tmp_path}/none` does not exist\nhint: check the spelling of the path"


def test_receipts_are_what_their_types_say(tmp_path):
    (tmp_path / "src").mkdir()
    clone = calve.clone_tree(tmp_path / "src", tmp_path / "dst", strategy="copy")
    assert clone.keys() == calve.CloneReceipt.__required_keys__
    assert calve.write_files(tmp_path, {"a": ""}).keys() == calve.WriteReceipt.__annotations__.keys()
    probe = calve.probe(tmp_path)
    assert probe.keys() == calve.ProbeReceipt.__annotations__.keys()
    for kind, given in [
        (calve._receipts.Entries, clone["entries"]),
        (calve._receipts.Bytes, clone["bytes"]),
        (calve._receipts.Place, probe["src"]),
        (calve._receipts.Offer, probe["strategies"][0]),
    ]:
        assert given.keys() == kind.__annotations__.keys()
    assert calve.remove_tree(tmp_path / "dst", wait=True).keys() == calve.RemoveReceipt.__annotations__.keys()
