"""An application that PyInstaller packs: it uses calve, and is never started a second time. Run in a directory of its own."""

import os
import sys
import time

import calve
from calve import _program

with open("starts", "a", encoding="utf-8") as starts:
    starts.write("started\n")
calve.write_files("tree", {f"d{n % 5}/f{n}": "x" for n in range(200)}, mkdir=True)
calve.clone_tree("tree", "clone")
calve.remove_tree("clone")
calve.remove_tree("tree")
# Somebody deletes it meanwhile; a slow machine has more time than it can need.
end = time.monotonic() + 300
while os.listdir(".") != ["starts"] and time.monotonic() < end:
    time.sleep(0.02)
assert os.listdir(".") == ["starts"], os.listdir(".")
assert open("starts", encoding="utf-8").read() == "started\n"
print(f"frozen: {bool(getattr(sys, 'frozen', False))}, deleted by {'the program' if _program.program() else 'a thread'}")
