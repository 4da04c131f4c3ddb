"""Layers of the target on other machines: two rpc-servers of this one."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.cli.doctor import report
from codespec.completion.completer import Completer
from codespec.completion.load import load_engine
from codespec.completion.request import Request
from codespec.config import Config
from codespec.config_sections import TargetConfig
from codespec.daemon.start import stop_model_process
from codespec.draft.costs import LONGEST, CostCurve
from codespec.draft.storage.profiles import Setup
from codespec.engine.local import LocalEngine
from codespec.llama import rpc
from codespec.llama.context import Context
from codespec.llama.rpc import InUse, Servers
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, Sampling
from codespec.speculative.noise import gumbel
from tests.daemon.windows import Window
from tests.present import present
from tests.remote.rpc_servers import SUPPORTED, WAIT_S, Server, needs_servers, servers

ROOT = Path(__file__).parent.parent.parent
FILES = {
    "python": sorted((ROOT / "codespec").rglob("*.py")),
    "typescript": sorted((ROOT / "editors/vscode/src").rglob("*.ts")),
    **{
        name: sorted((ROOT / f"tests/grammars/{name}/accept").glob(f"*.{end}"))
        for name, end in (("c", "c"), ("go", "go"))
    },
    "rust": sorted((ROOT / "tests/grammars/rust/accept").glob("*.rs")),
}
POSITIONS = 5
"""Of each language."""
NEAR = 0.1
"""Logits that lie no further apart may change places: a server repacks no weights, and batches differ in size."""
WHOLE = 8
"""Layers of the embedded target, as llama.cpp counts them."""
PROMPT = list(range(40, 90))


@pytest.fixture
def two():
    with servers(2) as found:
        yield found


@pytest.fixture
def one():
    with servers(1) as [found]:
        yield found


class Recorded(LocalEngine):
    """Keeps what each attempt at a completion was sampled with, and its tokens."""

    attempts: list[tuple[Sampling, list[int]]]

    def generate(self, prompt, grammar=None, sampling=None, *arguments, **options):
        tokens, sampling = [], sampling or Sampling()
        self.attempts.append((sampling, tokens))
        generated: Any = super().generate(prompt, grammar, sampling, *arguments, **options)
        with contextlib.closing(generated) as chunks:
            for chunk in chunks:
                tokens += chunk.round.tokens if chunk.round else ()
                yield chunk


@contextlib.contextmanager
def engine_on(*found: Server, **settings):
    addresses = [each.address for each in found]
    with contextlib.closing(Recorded(EMBEDDED_TARGET, rpc=addresses, flash_attention="off", **settings)) as engine:
        engine.attempts = []
        yield engine


def positions():
    chooser = random.Random(5)
    for language, files in FILES.items():
        files = [each for each in files if each.stat().st_size > 250]
        for index in range(POSITIONS):
            path = files[index * 7 % len(files)]
            text = path.read_text("utf-8")
            yield language, path.name, text, chooser.randrange(len(text))


def margin(engine, prompt, first, second):
    """How far apart the target's logits are, with their noise, of the tokens that two rows of attempts first differ in.

    None where none does: one ended earlier than the other.
    """
    found = (
        (sampling, ours, others, n)
        for (sampling, ours), (_, others) in zip(first, second, strict=False)
        for n, (a, b) in enumerate(zip(ours, others, strict=False))
        if a != b
    )
    if (different := next(found, None)) is None:
        return None
    sampling, ours, others, same = different
    with Context(engine.model, context_length=engine.context_length, flash_attention="off") as context:
        row = context.sequence().decode([*prompt, *ours[:same]], 1)[0]
    tokens = np.array([ours[same], others[same]])
    noise = gumbel(sampling.seed, sampling.sample, same, tokens) * sampling.temperature
    return abs(float(np.diff(row[tokens] + noise)[0]))


@needs_servers
@pytest.mark.slow
@pytest.mark.parametrize("grammar", ["none", "auto"])
def test_the_same_texts_as_without(two, grammar):
    config = replace(Config(), max_tokens=24, time_budget_ms=0, grammar=grammar)
    drafted = accepted = compared = 0
    ties = []
    with engine_on(gpu_layers=0) as local, engine_on(*two, gpu_layers=WHOLE) as far:
        far.costs.replace(CostCurve((0,), (1, LONGEST), ((20.0, 21.0),)))  # as if rows were nearly free
        far.costs.fixed = True
        alone = Completer(local, replace(config, draft="none"))
        split = Completer(far, config)
        local.drafts.combinations.sources = frozenset()
        for language, name, text, offset in positions():
            request = Request(text, offset, language, name)
            local.attempts.clear(), far.attempts.clear()
            (expected,), (found,) = alone.complete(request), split.complete(request)
            if "time" in (expected.finish_reason, found.finish_reason):
                continue  # on a busy machine a grammar gives a text up that it could follow on a quiet one
            compared += 1
            drafted += found.report["drafted"]
            accepted += found.report["accepted"]
            if (found.text, found.finish_reason) != (expected.text, expected.finish_reason):
                prompt = alone._prepare(request, None).prompt
                distance = margin(local, prompt, local.attempts, far.attempts)
                assert distance is not None, (name, offset)
                assert distance < NEAR, (name, offset, expected.text, found.text)
                ties.append(round(distance, 4))
    print(f"grammar {grammar}: {len(ties)} of {len(FILES) * POSITIONS} differ, at near ties: {ties}")
    assert compared > len(FILES) * POSITIONS // 2
    assert len(ties) <= len(FILES) * POSITIONS // 10
    assert 0 < accepted < drafted


@needs_servers
def test_as_many_layers_as_fit(two):
    with engine_on(*two) as engine:
        chosen = engine.choices["gpu_layers"]
        if chosen.value < WHOLE:
            pytest.skip(f"little memory is free: {chosen.why}")
        assert chosen.why.startswith("the whole model fits into ")
        assert all(each.address in chosen.why for each in two)
        assert engine.choices["rpc"].value == ", ".join(each.address for each in two)
        assert engine.notes == []
        setup = Setup.of(engine.context, None)
        assert setup.devices[-2:] == tuple(each.address for each in two)
        assert "".join(each.text for each in engine.generate(PROMPT, sampling=Sampling()))


@needs_servers
def test_no_layer_is_no_secret(one):
    with engine_on(one, gpu_layers=0) as engine:
        assert engine.notes == [f"no layer is on {one.address} (`target.rpc`): gpu_layers = 0"]


@needs_servers
def test_engines_of_one_process_share_a_server_and_let_it_go(one):
    with engine_on(one, gpu_layers=WHOLE) as first:
        with engine_on(one, one, gpu_layers=3) as second:
            for engine in (first, second):
                assert list(engine.generate(PROMPT))
        assert list(first.generate(PROMPT))
    ask = f"from codespec.llama.rpc import Servers; print(Servers(['{one.address}']).gpus[0].name)"
    found = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S)
    assert found.stdout == f"{one.address}\n", found.stderr


@needs_servers
def test_a_server_that_is_missing_is_named(two):
    two[1].end()
    with pytest.raises(CodespecError, match=rf"{two[1].address}: no connection \(.*\); start llama\.cpp's rpc-server"):
        Servers([each.address for each in two])
    assert Servers([two[0].address]).close() is None
    with pytest.raises(CodespecError, match="there is no machine of that name"):
        Servers(["nowhere.invalid:50052"])


@needs_servers
@pytest.mark.slow
def test_a_server_with_another_client_is_no_place_to_wait(one):
    silent = f"{one.address}: accepts connections and does not answer"
    with socket.create_connection((one.host, one.port)), pytest.raises(InUse, match=silent):
        Servers([one.address])
    Servers([one.address]).close()


@needs_servers
def test_a_server_of_something_else_is_refused():
    def answer(listening):
        for _ in range(2):  # whether it is there, and the trial
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=[listening])
        thread.start()
        with pytest.raises(CodespecError, match=r"is no RPC server that this llama\.cpp understands"):
            Servers([f"127.0.0.1:{listening.getsockname()[1]}"])
        thread.join()


@needs_servers
def test_a_server_that_dies_ends_the_process_with_a_word(one):
    code = (
        "import sys; from codespec.engine.local import LocalEngine\n"
        f"engine = LocalEngine({str(EMBEDDED_TARGET)!r}, rpc=[{one.address!r}], gpu_layers=8)\n"
        "for line in sys.stdin: print(len(list(engine.generate([40, 41]))) > 0, flush=True)"
    )
    command = [sys.executable, "-c", code]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        stdin = present(process.stdin)
        stdin.write("\n")
        stdin.flush()
        assert present(process.stdout).readline() == "True\n"
        one.end()
        _, errors = process.communicate("\n", timeout=WAIT_S)
    assert process.returncode < 0
    assert "Remote RPC server crashed or returned malformed response" in errors


@needs_servers
def test_the_model_process_comes_back_with_the_server(one, tmp_path, monkeypatch):
    for name in ("RUNTIME", "DATA", "CACHE"):
        monkeypatch.setenv(f"CODESPEC_{name}", str(tmp_path / name))
    config = Config(TargetConfig(rpc=(one.address,), gpu_layers=WHOLE), max_tokens=8, time_budget_ms=0)
    request = Request("import os\nname = os.path.", 25, "python", "/work/a.py")
    told: list[str] = []
    completer = Window(config, None, told.append)
    try:
        assert completer.complete(request)
        one.end()
        with pytest.raises(CodespecError, match=f"{one.address}: no connection"):
            completer.complete(request)
        assert any(f"perhaps since one of {one.address} (`target.rpc`) has gone" in each for each in told)
        one.start()
        assert completer.complete(request)
    finally:
        completer.close()
        stop_model_process()


@needs_servers
@pytest.mark.skipif(sys.platform == "win32", reason="0.0.0.0 is no address to connect to")
def test_whoever_sends_code_to_another_machine_is_warned(one):
    address = f"0.0.0.0:{one.port}"  # leads here, and does not look like it
    with contextlib.closing(LocalEngine(EMBEDDED_TARGET, rpc=[address], gpu_layers=WHOLE)) as engine:
        assert engine.notes == [f"{address} (`target.rpc`): {rpc.UNSAFE}"]


@needs_servers
def test_the_doctor_asks_the_servers(two, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path))
    addresses = [each.address for each in two]
    (tmp_path / "codespec.toml").write_text(f"[target]\nrpc = {addresses}\ngpu_layers = {WHOLE}\n", "utf-8")
    assert report()
    out = capsys.readouterr().out
    assert "rpc        in this build of llama.cpp\n" in out
    for each in addresses:
        assert f"\n  {each}: " in out
    assert f"\n  gpu_layers = {WHOLE}: as the settings say\n" in out
    two[0].end()
    assert not report()
    out, err = capsys.readouterr()
    assert "not loaded here, since a server of `target.rpc` is not to be had" in out
    assert f"{addresses[0]}: no connection" in err


@pytest.mark.skipif(SUPPORTED, reason="this llama.cpp has RPC")
def test_a_library_without_it_says_how_to_build_one():
    with pytest.raises(CodespecError, match=r'CMAKE_ARGS="-DGGML_RPC=ON .* pip install'):
        load_engine(Config(TargetConfig(rpc=("127.0.0.1:1",))))


def test_without_servers_nothing_is_needed():
    with Servers(()) as none:
        assert (none.gpus, none.warning, none.free, none.all_devices()) == ((), "", 0, None)


def test_not_in_exact_mode():
    with pytest.raises(CodespecError, match=r"exact decoding works on this machine's CPU only; set rpc = \[\]"):
        LocalEngine(EMBEDDED_TARGET, rpc=["127.0.0.1:1"], exact=True)


@pytest.mark.parametrize(
    ("address", "here"),
    [("127.0.0.1:1", True), ("127.1.2.3:1", True), ("localhost:1", True), ("10.0.0.1:1", False), ("gpu.lan:1", False)],
)
def test_what_is_this_machine(address, here):
    assert rpc.is_loopback(address) is here
