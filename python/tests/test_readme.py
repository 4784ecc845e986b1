"""The examples of README.md run as they are printed."""

import os
import re
from pathlib import Path

import calve


def test_the_examples(tmp_path, monkeypatch):
    text = Path(os.environ["CALVE_README"]).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) >= 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("x")
    names = {"calve": calve}
    for example in examples:
        exec(example, names)
    assert (tmp_path / "out/a.txt").read_text() == "hello" and not (tmp_path / "scratch").exists()
