"""Values that stand for a secret and are none: placeholders, and examples that everybody knows."""
# ruff: noqa: E501  # forms that are cut in two are read by nobody

from __future__ import annotations

import re

PLACEHOLDER = re.compile(
    r"example|sample|dummy|fake|placeholder|redacted|change[-_]?me|your[-_@]|xxxx|\.\.\.|abcdef|12345|^random|\*\*\*"
    r"|^[$%][\w(]+\)?$|^\$[A-Z_]{3,}"
    r"|^(?:my|the|some|test|user|db|auth)?[-_]?(?:pass|pw|pwd|passwd|pass?wo?r?d|secret|token|key|auth|foo|bar|test|user|admin|root)[-_]?\d{0,4}$"
    r"|^p(?:@|%40)ss(?:w[o0]rd)?\d{0,4}$",
    re.IGNORECASE,
)
PUBLISHED = frozenset(
    {
        # Examples of RFC 2617, 5849, 6749, 6750 and 7617, and of who repeats them.
        "2YotnFZFEjr1zCsicMWpAA", "tGzv3JOkF0XG5Qx2TlKWIA", "SplxlOBeZQQYbYS6WxSbIA", "czZCaGRSa3F0MzpnWDFmQmF0M2JW",
        "czZCaGRSa3F0MzpnWDFmQmF0M2JX", "gX1fBat3bV", "7Fjfp0ZBr1KtDRbnfVdmIw", "czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3",
        "mF_9.B5f-4.1JqM", "dpf43f3p2l4k3l03", "kd94hf93k423kf44", "hh5s93j4hdidpola", "hdhd0244k9j7ao03", "nnch734d00sl2jdk",
        "pfkkdhi9sl3r4s00", "9djdj82h48djs9d2", "j49sk3j29djd", "kkk9d7dh3k39sjv7", "dh893hdasih9", "h480djs93hd8",
        "ja893SD9", "A3ddj3w", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "QWxhZGRpbjpPcGVuU2VzYW1l", "dGVzdDoxMjPCow==",
        "ad180jjd733klru7", "0685bd9184jfhq22", "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b", "401f7ac837da42b97f613d789819ff93537bee6a",
        # jwt.io, Azure's emulators, Redis's and Oracle's documentation, RabbitMQ.
        "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", "TJVA95OrM7E2cBab30RMHrHDcEfxjoYZgeFONFh7HgQ",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
        "foobared", "tiger", "guest",
    }
)  # fmt: skip
"""Values that everybody knows, since they stand in specifications and documentation."""
