"""The models of the model process, beside threads that ask about them."""

from __future__ import annotations

import threading
from dataclasses import replace

from codespec.config import Config
from codespec.daemon.models import Models


def test_the_status_may_be_asked_while_models_come_and_go():
    models, over = Models(), threading.Event()
    failures = []

    def ask():
        while not over.is_set():
            try:
                assert models.count == 0  # models of next edits are no targets
            except RuntimeError as error:
                failures.append(error)
                return

    asking = threading.Thread(target=ask)
    asking.start()
    target = Config().target
    for turn in range(40):
        user = object()
        for number in range(100):  # they are not loaded before they are asked for an edit
            models.edit_model(user, Config(target=replace(target, threads=1000 * turn + number)))
        models.release(user)
        models.free_unused(0.0)
    over.set()
    asking.join()
    assert not failures
