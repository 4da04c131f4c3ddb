"""The values that forms of secrets are filled with: drawn at run time, so that no file holds one."""
# ruff: noqa: SIM905  # a list with a word on each line is read by nobody

from __future__ import annotations

import base64
import random
import string
from dataclasses import dataclass

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
_SYLLABLES = "ba de ki lo mu na pe ri so tu va wo xy za chi dra fel gon hul jax kor lem".split()
_SIGNS = "!$*+-=?_~^"


@dataclass(frozen=True)
class Form:
    """A file with a secret.

    Attributes:
        kind: names the format.
        path: of the file; it alone tells nothing unless ``text`` is empty.
        text: with names of values in double angle brackets, as in ``<<weak>>``.
    """

    kind: str
    path: str
    text: str

    def filled(self, seed: int) -> str:
        """The text with values of this seed."""
        text = self.text
        for name, value in values(seed).items():
            text = text.replace(f"<<{name}>>", value)
        assert "<<" not in text.replace("<<EOF", ""), text
        return text


def values(seed: int) -> dict[str, str]:
    """A value of every kind, all of them others with each seed."""
    generator = random.Random(seed)

    def draw(count: int, letters: str = LETTERS) -> str:
        return "".join(generator.choices(letters, k=count))

    def word(count: int) -> str:
        return "".join(generator.choices(_SYLLABLES, k=count))

    def token(count: int, letters: str = LETTERS) -> str:
        return draw(count - 3, letters) + draw(1, "bkq") + draw(2, string.digits)

    user = word(2)
    return {
        # Passwords as people and generators make them.
        "word": word(4),
        "short": word(2) + draw(1, string.digits),
        "phrase": " ".join(word(2) for _ in range(4)),
        "mixed": word(2).capitalize() + draw(4, string.digits) + draw(1, "!?#"),
        "strong": draw(1, string.ascii_letters) + draw(9) + draw(2, _SIGNS) + draw(6) + draw(2, string.digits),
        "digits": draw(10, string.digits),
        "dollar": draw(5) + draw(1, "$*") + draw(6) + draw(1, "*$") + draw(3),
        # Keys and tokens.
        "hex32": draw(32, HEX),
        "hex40": draw(40, HEX),
        "hex64": draw(64, HEX),
        "key20": token(20),
        "key32": token(32),
        "key40": token(40, LETTERS + "+/"),
        "key64": token(64),
        "base64": base64.b64encode(generator.randbytes(33)).decode(),
        "base64weak": base64.b64encode(word(5).encode()).decode(),
        "basic": base64.b64encode(f"{user}:{draw(12)}".encode()).decode(),
        "uuid": "-".join(draw(n, HEX) for n in (8, 4, 4, 4, 12)),
        "user": user,
        # Tokens of known forms, in parts.
        "aws": "AK" + "IA" + draw(16, BASE32),
        "github": "gh" + "p_" + draw(36),
        "gitlab": "gl" + "pat-" + draw(20),
        "slack": "xo" + "xb-" + draw(12, string.digits) + "-" + draw(24),
        "stripe": "sk_" + "live_" + draw(24),
        "google": "AI" + "za" + draw(35),
        "jwt": ".".join(
            base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
            for part in ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{draw(10)}"}}', draw(32))
        ),
        "telegram": draw(10, string.digits[1:]) + ":" + "AA" + draw(33),
        "twilio": "S" + "K" + draw(32, HEX),
        "mailchimp": draw(32, HEX) + "-us" + draw(2, "12"),
        "sendgrid": "S" + "G." + draw(22) + "." + draw(43),
        "pem": "-----BEGIN RSA PRI" + "VATE KEY-----\n" + "\n".join(draw(64) for _ in range(4)),
        "pembody": "\n".join("    " + draw(64) for _ in range(4)),
        "pemhead": "-----BEGIN PRI" + "VATE KEY-----",
    }
