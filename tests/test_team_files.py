"""The files of examples/team, each checked by the tool that will read it where that is here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from codespec.config import Config, tomllib

ROOT = Path(__file__).parents[1]
TEAM = ROOT / "examples" / "team"


def tool(name: str) -> str:
    """Its path; the test is skipped where there is none."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"missing: {name}")
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


def test_nginx(folder):
    said = run(tool("nginx"), "-t", "-c", folder / "nginx.conf", "-g", f"error_log {folder}/log;")
    assert "test is successful" in said


@pytest.mark.parametrize("name", ["codespec-llama-server.service", "codespec-vllm@.service"])
def test_systemd(folder, name):
    text = (folder / name).read_text("utf-8")
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)[1]
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
