"""Where an engine is, and by which key it is used."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from codespec import hosts
from codespec.remote.errors import Refused

KEY_SERVICE = "codespec"
"""Name of the service under which the system's keyring holds keys; the user name is the engine's host."""


@dataclass(frozen=True)
class Address:
    """An engine's address.

    Attributes:
        url: without a path below the API's root, such as ``http://127.0.0.1:8080``.
        key: sent with every request; empty is none. It is no part of any text that is shown or kept.
        certificate: a file with the certificates that may sign the engine's; empty: those of the system.
    """

    url: str
    key: str = field(default="", repr=False)
    certificate: str = ""

    @classmethod
    def checked(cls, url: str, key_env: str, certificate: str = "") -> Address:
        """The address of the settings, with the key of the environment or the system's keyring.

        Raises:
            Refused: it is none, or it holds a password.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Refused(f"`remote.url` is no address ({error}); give one such as http://127.0.0.1:8080") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise Refused("`remote.url` is no address; give one such as http://127.0.0.1:8080")
        if parts.username is not None or parts.password is not None:
            raise Refused(f"`remote.url` holds a password; put it into the environment variable {key_env} instead")
        return cls(url.rstrip("/"), os.environ.get(key_env, "") or _from_keyring(parts.hostname), certificate)

    @property
    def host(self) -> str:
        """Name or number of the machine."""
        return urlsplit(self.url).hostname or ""

    @property
    def warning(self) -> str:
        """What is wrong with sending code there; empty where nothing is."""
        if self.url.startswith("https:") or is_loopback(self.host):
            return ""
        return (
            f"{self.host} is asked without TLS: whoever is on the way reads your code"
            f"{' and the key' if self.key else ''}; use https, or a tunnel such as ssh -L"
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if hosts.is_loopback(host):
        return True
    try:
        found = {each[4][0] for each in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(hosts.is_loopback(str(each).partition("%")[0]) for each in found)


def _from_keyring(host: str) -> str:
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEY_SERVICE, host) or ""
    except Exception:  # no keyring here, or a locked one: whatever its back end raises
        return ""
