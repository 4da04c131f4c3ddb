"""Folders of the tests' own, apart from what the user has."""

import atexit
import os
import shutil
import sys
import tempfile

from tests.real_model import smollm2  # noqa: F401  # a fixture of every test

# Some tests load grammars while they are collected, so a fixture would come too late to keep these, and the child
# processes of tests, from the user's own cache; what they learn stays out of the user's data likewise, and their model
# processes apart from the user's.
for _name in ("CODESPEC_GRAMMAR_CACHE", "CODESPEC_DATA", "CODESPEC_CACHE", "CODESPEC_RUNTIME"):
    if _name == "CODESPEC_GRAMMAR_CACHE" and "PYTEST_XDIST_WORKER" in os.environ:
        continue  # one for all workers: lowering the shipped grammars takes longer than most tests of them
    os.environ[_name] = tempfile.mkdtemp(prefix="codespec-tests-")
    atexit.register(shutil.rmtree, os.environ[_name], ignore_errors=True)
os.environ["CODESPEC_IDLE_EXIT_S"] = "0"  # a model process ends with the last server that uses it
os.environ["CODESPEC_PROFILES"] = ""  # what this machine's owner has measured and learnt stays out of it


def _close_what_llama_cpp_leaves_open() -> None:
    """Two files, which Python would otherwise complain about when it ends."""
    module = sys.modules.get("llama_cpp._utils")
    if module is not None:
        module.outnull_file.close()
        module.errnull_file.close()


atexit.register(_close_what_llama_cpp_leaves_open)
