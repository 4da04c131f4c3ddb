"""Each test of training in a thread of its own: torch and llama.cpp take the AMX units of a thread from each other."""

import pytest

from codespec.train.own_thread import in_own_thread


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs the test as pytest would, elsewhere."""
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    in_own_thread(lambda: pyfuncitem.obj(**arguments))
    return True
