"""Who may ask."""

import asyncio
import base64

import httpx
import pytest

from codespec.errors import CodespecError
from codespec.http.security import Access
from codespec.http.server import keys_of
from tests.http.http_servers import serving
from tests.http.raw_client import ask

KEY = "k" * 20


@pytest.fixture(scope="module")
def closed():
    with serving(access=Access("127.0.0.1", ("other" * 5, KEY), ("http://page.example",))) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/nothing"])
def test_a_key_is_wanted(closed, path):
    assert httpx.get(closed.url + path).status_code == 401
    assert httpx.get(closed.url + path, headers={"Authorization": f"Bearer {KEY}x"}).status_code == 401
    assert httpx.get(closed.url + path, headers={"Authorization": f"Bearer {KEY}"}).status_code in (200, 404)
    assert httpx.get(closed.url + path, headers={"X-Api-Key": KEY}).status_code in (200, 404)


def test_health_needs_none(closed):
    assert httpx.get(closed.url + "/health").status_code == 200


def test_origins(closed):
    allowed, other = {"Origin": "http://page.example"}, {"Origin": "http://evil.example"}
    key = {"X-Api-Key": KEY}
    answer = httpx.get(closed.url + "/v1/models", headers=allowed | key)
    assert answer.headers["access-control-allow-origin"] == "http://page.example"
    assert httpx.get(closed.url + "/v1/models", headers=other | key).status_code == 403
    wanted = "authorization,content-type,x-stainless-os"  # of openai's client in a page
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted}
    answer = httpx.options(closed.url + "/v1/completions", headers=allowed | asked)
    assert (answer.status_code, answer.headers["access-control-allow-headers"]) == (204, wanted)
    assert httpx.options(closed.url + "/v1/completions", headers=other | asked).status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("localhost:8080", 200), ("[::1]:80", 200), ("127.0.0.1", 200), ("evil.example", 403)],
)
def test_hosts(server, host, status):
    assert httpx.get(server.url + "/v1/models", headers={"Host": host}).status_code == status


def test_beyond_this_machine_a_key_is_wanted():
    with pytest.raises(CodespecError, match="give a key"):
        Access("0.0.0.0").check()
    Access("0.0.0.0", (KEY,)).check()
    with pytest.raises(CodespecError, match="16 characters"):
        Access("127.0.0.1", ("short",)).check()
    with pytest.raises(CodespecError, match="an origin"):
        Access("127.0.0.1", origins=("*",)).check()


def test_keys(tmp_path, monkeypatch):
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n\n  {KEY}2 \n")
    assert keys_of(file) == (KEY, KEY + "2")
    file.write_text("\n")
    with pytest.raises(CodespecError, match="holds no key"):
        keys_of(file)
    monkeypatch.setenv("CODESPEC_HTTP_KEY", KEY)
    assert keys_of(None) == (KEY,)


def told(port, data):
    """The answer to some bytes."""
    return asyncio.run(ask(port, data, seconds=20, method="GET"))


def get(path, *headers):
    return f"GET {path} HTTP/1.1\r\n{''.join(f'{each}{chr(13)}{chr(10)}' for each in headers)}\r\n".encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Host: evil.example"], 403),
        (["Host: evil.example:8080"], 403),
        (["Host: localhost.evil.example"], 403),
        (["Host: 127.0.0.1.evil.example"], 403),
        (["Host: evil.example#localhost"], 403),
        (["Host: localhost@evil.example"], 403),
        (["Host: evil.example, localhost"], 403),
        (["Host: evil.example", "Host: localhost"], 400),
        (["Host: localhost", "Host: evil.example"], 400),
        (["Host: evil.example", "X-Forwarded-Host: localhost"], 403),
        (["Host: evil.example", "Forwarded: host=localhost"], 403),
        (["Host: 0.0.0.0"], 403),
        (["Host: 192.168.0.1"], 403),
        (["Host: 169.254.169.254"], 403),
        (["Host: [::]"], 403),
        (["Host: [fe80::1]"], 403),
        ([], 400),
        (["Host: LOCALHOST:1"], 200),
        (["Host: localhost."], 200),
        (["Host: 127.0.0.1:80"], 200),
        (["Host: [::1]"], 200),
        (["Host: [::1]:8080"], 200),
    ],
)
def test_names_that_a_page_had_resolved_to_this_machine(server, headers, status):
    for path in ("/v1/models", "/health", "/metrics", "/props", "/nothing"):
        answered = told(server.port, get(path, *headers)).status
        assert answered == (404 if status == 200 and path == "/nothing" else status)


@pytest.mark.parametrize("target", ["http://evil.example/v1/models", "//evil.example/v1/models", "evil.example:443"])
def test_targets_that_name_a_host(server, target):
    assert told(server.port, get(target, "Host: localhost")).status in (400, 404)
    assert told(server.port, get(target, "Host: evil.example")).status in (400, 403)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("file://", 403),
        ("chrome-extension://abcdef", 403),
        ("http://localhost.evil.example", 403),
        ("http://localhost:1", 403),  # another server's page
        ("https://localhost:{port}", 403),
        ("http://localhost:{port}.evil.example", 403),
        ("", 403),
        ("http://localhost:{port}", 200),
    ],
)
def test_pages_of_other_servers(server, origin, status):
    headers = {"Host": f"localhost:{server.port}", "Origin": origin.format(port=server.port)}
    for path in ("/v1/models", "/health", "/props", "/metrics"):
        answer = httpx.get(server.url + path, headers=headers)
        assert answer.status_code == status
        assert "access-control-allow-origin" not in answer.headers
    answer = httpx.post(server.url + "/v1/completions", headers=headers, json={"prompt": "a", "max_tokens": 1})
    assert answer.status_code == status


def test_a_form_of_a_page_is_no_request(server):
    """What a page may send without being asked first: a text, a form."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        body, headers = b'{"prompt": "a", "max_tokens": 1}', {"Content-Type": kind}
        assert httpx.post(server.url + "/v1/completions", content=body, headers=headers).status_code == 415


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Authorization: "],
        ["Authorization: Bearer"],
        ["Authorization: Bearer "],
        [f"Authorization: {KEY}"],
        [f"Authorization: Basic {KEY}"],
        [f"Authorization: Bearer {KEY[:-1]}"],
        [f"Authorization: Bearer {KEY}{KEY}"],
        [f"Authorization: Bearer {KEY.upper()}"],
        [f"Authorization: Bearer {KEY},{KEY}"],
        [f"Authorization: Bearer {base64.b64encode(KEY.encode()).decode()}"],
        [f"Authorization: Bearer %6B{KEY[1:]}"],
        [f"Authorization: Bearer {KEY[:-1]}\xeb"],  # as a Latin-1 byte
        [f"Authorization: Bearer {KEY}\xc2\xa0"],
        [f"Authorization: Bearer {'k' * 10_000}"],
        [f"Cookie: key={KEY}"],
        ["X-Api-Key: "],
        [f"X-Api-Key: Bearer {KEY}"],
        ["Authorization: Bearer wrong-key-0123456789", f"X-Api-Key: {KEY}"],
    ],
)
def test_what_is_no_key(closed, headers):
    data = get("/v1/models", "Host: localhost", *headers).decode("utf-8").encode("latin-1")
    reply = told(closed.port, data)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    assert KEY not in reply.body.decode()
    assert told(closed.port, get(f"/v1/models?key={KEY}&api_key={KEY}", "Host: localhost")).status == 401


def test_with_a_key_any_name_will_do(closed):
    headers = {"Host": "models.example", "Authorization": f"bearer  {KEY}"}
    assert httpx.get(closed.url + "/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        f"{KEY}\r\n{KEY}2\r\n",
        f"\n\n{KEY}\n \t \n{KEY}2",
        f"\ufeff{KEY}\n{KEY}2\n",  # as Windows' editor writes it
        f"  {KEY}  \r\n\r\n\r\n{KEY}2\r\n\r\n",
    ],
)
def test_key_files(tmp_path, content):
    file = tmp_path / "keys"
    file.write_bytes(content.encode())
    assert keys_of(file) == (KEY, KEY + "2")


@pytest.mark.parametrize("content", [b"", b"\r\n\r\n", b" \t ", b"\xff\xfe", b"\xef\xbb\xbf"])
def test_key_files_without_a_key(tmp_path, content):
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(CodespecError) as caught:
        keys_of(file)
    assert "keys" in str(caught.value)
    with pytest.raises(CodespecError, match="cannot be read"):
        keys_of(tmp_path / "missing")


def test_no_key_of_letters_beyond_ascii():
    with pytest.raises(CodespecError) as caught:
        Access("127.0.0.1", ("schlüssel" * 3,)).check()
    assert "schlüssel" not in str(caught.value)
