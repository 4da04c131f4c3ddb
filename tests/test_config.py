"""Settings: what is read, what is refused, and that nothing stops on a bad file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from codespec.config import Config, load, user_file
from codespec.config_rules import is_path
from codespec.config_sections import LanguageConfig
from codespec.languages import by_id
from codespec.models.registry import find_adapter, find_draft, find_target, models_folder
from codespec.protocols import CodespecError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    return tmp_path


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_key_is_read():
    options: dict[str, Any] = {
        "target": {
            "path": "big",
            "gpu_layers": 3,
            "threads": 2,
            "context": 4096,
            "kv_type": "q8_0",
            "flash_attention": "on",
            "fim": "psm",
            "rpc": ("192.168.1.5:50052", "gpu.lan:1"),
        },
        "draft": "none",
        "grammar": "auto",
        "enabled": False,
        "max_tokens": 7,
        "time_budget_ms": 100,
        "temperature": 1,
        "seed": 5,
        "draft_length": 8,
        "learn": False,
        "prefill": False,
        "prefetch": False,
        "log_level": "debug",
        "context": {"enabled": False, "ring_chunks": 3, "chunk_lines": 8, "imports": False},
        "language": {"python": {"draft": "tiny", "grammar": "python", "enabled": True}},
    }
    config, messages = Config().apply(options)
    assert messages == []
    for key, value in options.items():
        if key not in ("target", "context", "language"):
            assert getattr(config, key) == value
    assert vars(config.target) == options["target"]
    assert vars(config.context) == options["context"]
    assert vars(config.language["python"]) == options["language"]["python"]
    assert isinstance(config.temperature, float)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_token": 5}, 'unknown key "max_token"; did you mean "max_tokens"?'),
        ({"target": {"thread": 5}}, 'unknown key "target.thread"; did you mean "threads"?'),
        ({"zzzz": 5}, 'unknown key "zzzz"; known are target, remote, draft, '),
        ({"max_tokens": "many"}, '"max_tokens" must be a whole number from 1 to 8192, not "many"; keeping 128'),
        ({"max_tokens": 0}, '"max_tokens" must be a whole number from 1 to 8192, not 0; keeping 128'),
        ({"max_tokens": 1.5}, '"max_tokens" must be a whole number from 1 to 8192, not 1.5; keeping 128'),
        ({"max_tokens": True}, '"max_tokens" must be a whole number from 1 to 8192, not true; keeping 128'),
        ({"seed": 16**5000}, '"seed" must be a whole number from 0 to 2147483647, not a value too long to show;'),
        ({"temperature": math.nan}, '"temperature" must be a number from 0 to 10, not NaN; keeping 0.0'),
        ({"enabled": 1}, '"enabled" must be true or false, not 1; keeping true'),
        ({"draft": ["a"]}, '"draft" must be text, not ["a"]; keeping "auto"'),
        ({"log_level": "loud"}, '"log_level" must be one of "error", "warning", "info", "debug", not "loud";'),
        ({"target": "big.gguf"}, '"target" must be a table, not "big.gguf"; keeping what was set before'),
        ({"language": 3}, '"language" must be a table, not 3; keeping what was set before'),
        ({"language": {"c": 3}}, '"language.c" must be a table, not 3; keeping what was set before'),
        ({"language": {"c": {"enabled": 3}}}, '"language.c.enabled" must be true or false, not 3; keeping the general'),
        ({"language": {"c": {"on": True}}}, 'unknown key "language.c.on"; '),
        ({"language": {"pyton": {}}}, 'unknown language "pyton"; did you mean "python"?'),
        ({"remote": {"url": "x"}}, '"remote.url" is ignored: a workspace may not set it'),
        ({"draft": "a\0b.gguf"}, '"draft" = "a\\u0000b.gguf" is ignored: not a file name; keeping "auto"'),
    ],
)
def test_a_bad_option_gives_a_message_and_keeps_the_value(options, message):
    config, messages = Config().apply({**options, "draft_length": 5}, "here", Path.cwd(), trusted=False)
    assert len(messages) == 1
    assert messages[0].startswith(f"here: {message}")
    assert config.draft_length == 5
    assert config.max_tokens == 128


def test_what_the_machine_may_choose():
    config = Config()
    assert (config.target.set_gpu_layers, config.target.set_threads, config.target.kv_type) == (None, 0, "auto")
    config, messages = config.apply({"target": {"gpu_layers": 0, "threads": 3, "kv_type": "q8_0"}})
    assert (config.target.set_gpu_layers, config.target.set_threads, messages) == (0, 3, [])
    config, messages = config.apply({"target": {"gpu_layers": "auto", "threads": "auto", "kv_type": "auto"}})
    assert (config, messages) == (Config(), [])
    bad = {"gpu_layers": "all", "threads": -1, "kv_type": "q3", "flash_attention": True}
    config, messages = config.apply({"target": bad}, "here")
    assert config == Config()
    assert messages == [
        'here: "target.gpu_layers" must be a whole number from 0 to 10000 or "auto", not "all"; keeping "auto"',
        'here: "target.threads" must be a whole number from 0 to 1024 or "auto", not -1; keeping "auto"',
        'here: "target.kv_type" must be one of "auto", "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", '
        'not "q3"; keeping "auto"',
        'here: "target.flash_attention" must be one of "auto", "on", "off", not true; keeping "auto"',
    ]


def test_a_list_is_read_from_a_file_and_counts_as_a_whole(home):
    write(user_file(), 'target.rpc = ["127.0.0.1:50052", "gpu-2.lan:50052"]\n')
    config, messages = load(home)
    assert (config.target.rpc, messages) == (("127.0.0.1:50052", "gpu-2.lan:50052"), [])
    config, messages = config.apply({"target": {"rpc": []}})
    assert (config.target.rpc, messages) == ((), [])
    assert hash(config.target) == hash(Config().target)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("gpu:1", "a list of texts, not"),
        (["gpu:1", 2], "a list of texts, not"),
        ({"gpu": 1}, "a list of texts, not"),
        (["gpu:1", "gpu"], '("gpu" has no port), not'),
        (["gpu:"], '("gpu:" has no port from 1 to 65535), not'),
        (["gpu:0"], '("gpu:0" has no port from 1 to 65535), not'),
        (["gpu:65536"], '("gpu:65536" has no port from 1 to 65535), not'),
        (["gpu:٣"], "has no port from 1 to 65535), not"),
        ([":1"], '(":1" names no host), not'),
        (["a b:1"], '("a b:1" names no host), not'),
        (["gpu:1\n"], "has no port from 1 to 65535), not"),
        (["user@gpu:1"], '("user@gpu:1" names no host), not'),
        (["[::1]:1"], '("[::1]:1" is an IPv6 address or a URL, and llama.cpp takes names and IPv4 addresses), not'),
        (["http://gpu:1"], '("http://gpu:1" is an IPv6 address or a URL, and llama.cpp takes'),
    ],
)
def test_a_bad_address_of_a_server(value, reason):
    config, messages = Config().apply({"target": {"rpc": ["gpu:1"]}})
    assert messages == []
    config, [message] = config.apply({"target": {"rpc": value, "threads": 3}}, "here")
    assert (config.target.rpc, config.target.threads) == (("gpu:1",), 3)
    assert message.startswith('here: "target.rpc" must be a list of texts')
    assert reason in message
    assert message.endswith('; keeping ["gpu:1"]')


def test_null_leaves_a_key_as_it_is():
    config, messages = Config(max_tokens=3).apply({"max_tokens": None, "target": None, "language": {"c": None}})
    assert (config, messages) == (Config(max_tokens=3), [])


def test_languages_follow_the_general_settings():
    options = {"draft": "tiny", "language": {"python": {"enabled": False}, "json": {"grammar": "auto"}}}
    config, _ = Config().apply(options)
    config, _ = config.apply({"language": {"python": {"draft": "none"}}})
    assert config.for_language("python") == LanguageConfig("none", "auto", enabled=False)
    assert config.for_language("json") == LanguageConfig("tiny", "auto", enabled=True)
    assert config.for_language("cobol") == LanguageConfig("tiny", "auto", enabled=True)
    config, _ = config.apply({"enabled": False, "language": {"json": {"enabled": True}}})
    assert config.for_language("json").enabled is False


def test_files_apply_in_order(home):
    write(user_file(), '\ufeffmax_tokens = 5\ntemperature = 0.5\nremote.url = "x"\n')
    write(home / "w/codespec.toml", "max_tokens = 4\n[language.go]\nenabled = false\n")
    config, messages = load(home / "w")
    assert (config.max_tokens, config.temperature) == (4, 0.5)
    assert not config.for_language("go").enabled
    assert config.remote.url == "x"
    assert messages == []


def test_no_files(home):
    assert load(home) == (Config(), [])
    assert load() == (Config(), [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("max_tokens = 5\nnonsense\n", "at line 2, column 9"),
        ("a = 1\na = 2\n", "Cannot overwrite a value (at line 2"),
        (b"a = 1\n\xff", "not UTF-8 (at line 2)"),
        (b"x = " + b"[" * 5000, ""),
        (b"x = " + b"1" * 5000, "a line of more than 1024 bytes"),
        (b"#\n" * (1 << 15) + b"#", "larger than 64 KiB"),
        (b".".join([b"a"] * 20_000) + b" = 1", "a line of more than 1024 bytes"),
    ],
)
def test_a_damaged_file_is_ignored(home, content, message):
    path = write(home / "codespec.toml", content)
    config, [problem] = load(home)
    assert config == Config()
    assert problem.startswith(f"{path}: ")
    assert message in problem
    assert problem.endswith("; the file is ignored")


def test_something_else_of_that_name_is_no_file(home):
    (home / "codespec.toml").mkdir()
    assert load(home) == (Config(), [])


@pytest.mark.parametrize("text", ["a/b", "a\\b", "c:x", "m.gguf", "M.GGUF", "g.gbnf", "g.lark", "schema.json"])
def test_paths(text):
    assert is_path(text)


@pytest.mark.parametrize("text", ["auto", "none", "python", "qwen2.5-coder", "json", ""])
def test_names(text):
    assert not is_path(text)


def test_a_workspace_cannot_choose_models_of_its_own(home):
    workspace = home / "w"
    outside = write(home / "elsewhere.gguf", "")
    write(workspace / "evil.gguf", "")
    inside = write(models_folder() / "good.gguf", "")
    for bad in (
        "../elsewhere.gguf",
        str(outside),
        str(workspace / "evil.gguf"),
        "a/../../x",
    ):
        for key in ("draft", "language"):
            value = {"draft": bad, "language": {"c": {"draft": bad}}}[key]
            config, messages = Config().apply({key: value}, "w", workspace, trusted=False)
            assert config.draft == "auto"
            assert config.for_language("c").draft == "auto"
            assert f"may only choose models in {models_folder()}" in messages[0]
    # A bare name means the models folder, whatever lies in the current one.
    for name in ("good.gguf", str(inside)):
        config, messages = Config().apply({"draft": name}, "w", workspace, trusted=False)
        assert (config.draft, messages) == (str(inside), [])


def test_a_workspace_may_have_grammars_of_its_own(home):
    workspace = home / "w"
    workspace.mkdir()
    config, messages = Config().apply({"grammar": "g/own.gbnf"}, "w", workspace, trusted=False)
    assert (config.grammar, messages) == (str(workspace / "g/own.gbnf"), [])
    (workspace / "link.gbnf").symlink_to(home)
    for bad in ("../own.gbnf", "/etc/own.gbnf", "link.gbnf"):
        config, messages = Config().apply({"grammar": bad}, "w", workspace, trusted=False)
        assert config.grammar == "auto"
        assert "outside the workspace" in messages[0]


def test_a_user_may_choose_any_file(home):
    config, messages = Config().apply(
        {"target": {"path": "~/m.gguf"}, "draft": "sub/d.gguf", "grammar": "g.gbnf"}, "", home
    )
    assert messages == []
    assert config.target.path == str(home / "m.gguf")
    assert config.draft == str(home / "sub/d.gguf")
    assert config.grammar == str(home / "g.gbnf")


NOBODYS = "~no-such-user-here/x"


@pytest.mark.parametrize("key", ["draft", "target", "target_lora", "draft_lora", "grammar"])
def test_a_home_that_nobody_has_is_a_bad_path(key):
    path = NOBODYS + (".gbnf" if key == "grammar" else ".gguf")
    config, messages = Config().apply({key: {"path": path} if key == "target" else path}, "here")
    assert (config, len(messages)) == (Config(), 1)
    assert "is ignored: not a file name" in messages[0]


@pytest.mark.parametrize("find", [find_target, lambda name: find_draft(name, by_id("python")), find_adapter])
def test_a_model_at_a_home_that_nobody_has(find):
    with pytest.raises(CodespecError, match="there is no such user"):
        find(f"{NOBODYS}.gguf")
