"""What examples/http shows works as it stands there."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.present import present

EXAMPLES = Path(__file__).parents[2] / "examples" / "http"
README = (EXAMPLES / "README.md").read_text("utf-8")
TEXT = {"prompt": "def area(width, height):\n    return ", "suffix": "\n", "max_tokens": 8}


def run(command, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_openai_client(chat_server):
    pytest.importorskip("openai")
    printed = run([sys.executable, str(EXAMPLES / "client.py")], OPENAI_BASE_URL=f"{chat_server.url}/v1")
    assert re.match(r"name='.*' version='\d+\.\d+\.\d+' keywords=\[", printed)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl(server):
    [line] = [each for each in blocks("") if each.startswith("curl")]
    command = shlex.split(line.replace("\\\n", " ").replace("localhost:8080", f"127.0.0.1:{server.port}"))
    answer = json.loads(run([*command, "--silent", "--noproxy", "*"]))
    assert answer["choices"][0]["text"] in ("red", "green", "blue")


def test_llama_vim(client):
    [settings] = blocks("vim")
    path = present(re.search(r"http://127.0.0.1:8080(/\w+)'", settings))[1]
    fields = {"input_prefix": TEXT["prompt"], "input_suffix": "\n", "prompt": "", "n_predict": 8}
    assert client.post(path, json=fields).json()["content"]


def test_zed(client):
    """The names are those of ``CustomEditPredictionProviderSettingsContent`` in its ``crates/settings_content``."""
    [settings] = map(json.loads, blocks("json"))
    provider = settings["edit_predictions"]["provider"]
    assert provider == "open_ai_compatible_api"
    own = settings["edit_predictions"][provider]
    assert set(own) <= {"api_url", "prompt_format", "model", "max_output_tokens"}
    path = own["api_url"].removeprefix("http://localhost:8080")
    fields = {"model": own["model"], "max_tokens": own["max_output_tokens"]}
    assert own["prompt_format"] == "qwen"
    written = f"<|fim_prefix|>{TEXT['prompt']}<|fim_suffix|>{TEXT['suffix']}<|fim_middle|>"
    answer = client.post(path, json={**fields, "prompt": written, "stop": ["<|endoftext|>", "<|fim_pad|>"]}).json()
    assert answer["choices"][0]["text"]
    own = [client.post("/tokenize", json={"content": TEXT[name]}).json()["tokens"] for name in ("prompt", "suffix")]
    assert answer["usage"]["prompt_tokens"] == sum(map(len, own)) + 3  # its markers are tokens


def test_continue(client):
    """As its ``core/llm/llms/OpenAI.ts`` asks, and reads what comes."""
    [settings] = blocks("yaml")
    base = present(re.search(r"apiBase: http://localhost:8080(/\S+)", settings))[1]
    fields = {**TEXT, "model": present(re.search(r"model: (\S+)", settings))[1], "temperature": 0.01, "stop": ["\n\n"]}
    stream = client.post(f"{base}/fim/completions", json={**fields, "stream": True}).text
    chunks = [json.loads(line.removeprefix("data: ")) for line in stream.split("\n\n")[:-2]]
    assert "".join(each["choices"][0]["delta"]["content"] for each in chunks)
