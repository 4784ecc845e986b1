"""Against the installed wheel: trees that the program has prepared, as templates and spares."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import calve
import calve.shutil
from calve import _program
from test_trees import names, tree, until


def test_a_template_that_the_program_has_made_is_cloned_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CALVE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    tree(tmp_path / "src")

    def program(*given):
        command = [_program.program(), "template", *given]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    program("create", "shop", "src")
    shutil.rmtree("src")
    assert calve.clone_tree("@shop", "dst")["src"] == "@shop"
    assert names(tmp_path / "dst") == ["d0", "d1", "d2"]
    with pytest.raises(FileNotFoundError) as missing:
        calve.clone_tree("@none", "dst2")
    assert missing.value.code == "ERR_CALVE_TEMPLATE"
    with pytest.raises(IsADirectoryError):
        calve.clone_file("@shop", "dst2")
    # With a slash it is a path.
    with pytest.raises(FileNotFoundError):
        calve.clone_tree("./@shop", "dst2")
    changed = json.loads(program("show", "--json", "shop"))["tree"]
    (Path(changed) / "d1" / "f2").write_text("y")
    with pytest.raises(calve.CalveError) as found:
        calve.clone_tree("@shop", "dst2", strategy="copy")
    assert "verify the template" in found.value.hint
    assert names(tmp_path) == ["dst", "home"]


def test_a_spare_that_the_program_has_made_is_handed_over_and_the_next_one_is_built(ext4, monkeypatch):
    monkeypatch.setenv("CALVE_HOME", str(ext4 / "home"))
    src = tree(ext4 / "src")

    def program(*given):
        command = [_program.program(), "spares", *given]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def ready():
        return len(json.loads(program("list", "--json"))["sources"][0]["spares"])

    def same(name):
        subprocess.run(["diff", "-r", src, ext4 / name], check=True)

    program("add", "--quiet", src)
    try:
        # Where each entry has to be looked at, and with other options.
        with pytest.raises(calve.CalveError) as refused:
            calve.clone_tree(src, ext4 / "a", require="instant")
        assert refused.value.code == "ERR_CALVE_REQUIREMENT_REFUSED"
        without = calve.clone_tree(src, ext4 / "b", exclude="f3")
        assert (without["strategy"], without["refused"][0]["strategy"], "spare" in without) == ("copy", "spare", False)
        # What stands in for the standard library's own function makes what that makes.
        calve.shutil.copytree(src, ext4 / "c")
        assert ready() == 1

        (src / "d1" / "f2").write_text("changed")
        made = calve.clone_tree(src, ext4 / "dst")
        assert (made["strategy"], made["spare"]["checked"], made["spare"]["entries_checked"]) == ("spare", "walked", 16)
        assert made["spare"]["entries_updated"] > 0
        same("dst")
        # Somebody sets about building the next one, or has built it.
        until(lambda: ready() == 1 or (ext4 / "home" / "spares" / ".waiting").exists())
        program("refill", "--quiet", src)
        assert calve.clone_tree(src, ext4 / "dst2", strategy="spare")["strategy"] == "spare"
        same("dst2")
    finally:
        # Whoever waits with the next one goes.
        program("remove", "--quiet", src)
