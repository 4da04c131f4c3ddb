"""The files of examples/team, each checked by the tool that will read it where that is here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from ruamel.yaml import YAML

from benchmarks.llama_server import free_port
from codespec.config import Config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
from tests.present import present

ROOT = Path(__file__).parents[1]
TEAM = ROOT / "examples" / "team"


def tool(name: str) -> str:
    """Its path; the test is skipped where there is none."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"missing: {name}")
    return path


def nginx() -> str:
    """nginx, which wants the folders of a distribution's package for its temporary files."""
    path = tool("nginx")
    if os.geteuid() != 0:
        pytest.skip("not root: nginx cannot use its folders")
    return path


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command says, which must succeed."""
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, cwd=cwd, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, with the keys' files in place."""
    copy = tmp_path / "team"
    shutil.copytree(TEAM, copy)
    for example in copy.glob("*.example"):
        example.rename(example.with_suffix(""))
    return copy


def test_every_file_is_in_the_readme():
    named = set(re.findall(r"`([^`]+)`", (TEAM / "README.md").read_text("utf-8")))
    assert {path.name for path in TEAM.iterdir()} - named == {"README.md"}


def test_nginx_takes_its_file(folder):
    said = run(nginx(), "-t", "-c", folder / "nginx.conf", "-g", f"error_log {folder}/log;")
    assert "test is successful" in said


class Replica(BaseHTTPRequestHandler):
    """Answers with its own port and the headers that it got."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps([self.connection.getsockname()[1], dict(self.headers)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def ask(port: int, path: str, key: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, b"{}", {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.fixture
def gateway(folder: Path, tmp_path: Path):
    """The port of nginx before two replicas, with forty users."""
    program = nginx()
    replicas = [ThreadingHTTPServer(("127.0.0.1", 0), Replica) for _ in range(2)]
    for replica in replicas:
        Thread(target=replica.serve_forever, daemon=True).start()
    port = free_port()
    text = (folder / "nginx.conf").read_text("utf-8")
    for old, new in (
        ("listen 8080;", f"listen 127.0.0.1:{port};"),
        ("127.0.0.1:8000", f"127.0.0.1:{replicas[0].server_port}"),
        ("127.0.0.1:8001", f"127.0.0.1:{replicas[1].server_port}"),
        ("/run/codespec-gateway.pid", str(tmp_path / "pid")),
        ("/dev/stdout", str(tmp_path / "access.log")),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text, "utf-8")
    (folder / "keys.conf").write_text("".join(f'"Bearer key-{n}" user-{n};\n' for n in range(40)), "utf-8")
    child = subprocess.Popen(
        [program, "-c", str(folder / "nginx.conf"), "-g", "daemon off;"], stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 10
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield port
    finally:
        child.terminate()
        child.wait(10)
        for replica in replicas:
            replica.shutdown()
            replica.server_close()


def test_the_gateway_keeps_each_user_at_one_replica(gateway, tmp_path):
    found: dict[int, int] = {}
    for number in [*range(40), *range(40)]:
        status, text = ask(gateway, "/v1/completions", f"key-{number}")
        assert status == 200
        replica, headers = json.loads(text)
        assert found.setdefault(number, replica) == replica
        assert headers["X-SMG-Routing-Key"] == headers["X-User-ID"] == headers["X-Session-ID"] == f"user-{number}"
        assert headers["Authorization"] == "Bearer change-me-engine"
    assert len(set(found.values())) == 2
    log = (tmp_path / "access.log").read_text("utf-8")
    assert "user-7 POST /v1/completions 200" in log
    assert "key-" not in log


def test_the_gateway_refuses(gateway):
    assert ask(gateway, "/v1/completions", "another")[0] == 401
    assert ask(gateway, "/invocations", "key-1")[0] == 404
    assert ask(gateway, "/v1/completions/more", "key-1")[0] == 404
    answers = [ask(gateway, "/completion", "key-2")[0] for _ in range(80)]
    assert answers[:40] == [200] * 40
    assert 429 in answers
    assert ask(gateway, "/completion", "key-3")[0] == 200  # one user's quota is not another's


@pytest.mark.parametrize("name", ["codespec-llama-server.service", "codespec-vllm@.service"])
def test_systemd(folder, name):
    text = (folder / name).read_text("utf-8")
    program = present(re.search(r"^ExecStart=(\S+)", text, re.MULTILINE))[1]
    # The programs are not here; an environment file that is not is no failure of the unit.
    (folder / name).write_text(text.replace(program, "/bin/true", 1), "utf-8")
    said = run(tool("systemd-analyze"), "verify", "--man=no", folder / name.replace("@.", "@0."))
    assert name.partition(".")[0] not in said, said


COMPOSE = pytest.mark.parametrize("name", ["compose.vllm.yaml", "compose.sglang.yaml"])


@COMPOSE
def test_compose(folder, name, monkeypatch):
    monkeypatch.setenv("ENGINE_KEY", "x")
    docker = shutil.which("docker")
    if docker and not subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        run(docker, "compose", "-f", folder / name, "config", "--quiet")
    else:
        run(tool("docker-compose"), "-f", folder / name, "config", "--quiet")


@COMPOSE
def test_compose_mounts_files_that_are_here(folder, name):
    for service in YAML(typ="safe").load(folder / name)["services"].values():
        for volume in service.get("volumes", []):
            assert not volume.startswith("./") or (folder / volume.partition(":")[0]).is_file(), volume


def test_prometheus(folder):
    assert "3 rules found" in run(tool("promtool"), "check", "config", folder / "prometheus.yml")


def test_yaml_reads_what_was_meant():
    settings = YAML(typ="safe").load(TEAM / "vllm.yaml")
    assert settings["speculative-config"]["method"] == "draft_model"
    rules = YAML(typ="safe").load(TEAM / "alerts.yml")["groups"][0]["rules"]
    assert all({"alert", "expr", "for", "annotations"} <= rule.keys() for rule in rules)
    assert YAML(typ="safe").load(TEAM / "prometheus.yml")["rule_files"] == ["alerts.yml"]


@pytest.mark.parametrize("path", sorted(TEAM.glob("*.sh")), ids=lambda path: path.name)
def test_shell(path):
    run(tool("sh"), "-n", path)
    if shutil.which("shellcheck"):
        run("shellcheck", path)


def test_the_ray_script_says_how_it_is_used():
    result = subprocess.run(["sh", TEAM / "ray-cluster.sh"], capture_output=True, text=True, timeout=10, check=False)
    assert (result.returncode, result.stderr) == (2, f"usage: {TEAM / 'ray-cluster.sh'} head | worker HEAD\n")


def test_settings_of_codespec():
    config, messages = Config().apply(tomllib.loads((TEAM / "codespec.toml").read_text("utf-8")), "codespec.toml", TEAM)
    assert messages == []
    assert config.remote.kind == "vllm"


def test_the_documentation_is_short_and_names_files_that_are_here():
    text = (ROOT / "docs" / "team.md").read_text("utf-8")
    assert len(text.splitlines()) <= 200
    for name in re.findall(r"`([\w@.-]+\.(?:service|sh|yaml|yml|conf))`", text):
        assert (TEAM / name).exists() or (TEAM / f"{name}.example").exists(), name
