"""Known forms of keys and tokens.

The forms are those that the issuers document, as collected by detect-secrets 1.5 and CredSweeper 1.19.
"""
# ruff: noqa: E501  # forms that are cut in two are read by nobody

from __future__ import annotations

import re

from codespec.privacy.budget import private_when_spent, spend

_FORMS = {
    # What every secret of a form holds, and the form; what is drawn at random in it is its last group, if it has one.
    "PRIVATE KEY": (
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:\\[nr]|[\s\"'`+,;#*/|\\>]){1,100}(?:[\w-]{1,40}: [^\n]{0,200}\n[\s\"'`+,;#*/|\\]{0,20}){0,5}([A-Za-z0-9+/=]{16,80})"
    ),
    "DEK-Info": r"\bDEK-Info: [A-Z0-9-]{3,20},([0-9A-Fa-f]{16,64})",  # it stands before an encrypted key
    "PuTTY-User-Key-File-": r"PuTTY-User-Key-File-\d: (?:ssh-|ecdsa-)\w+",
    "AGE-SECRET-KEY-1": r"\bAGE-SECRET-KEY-1([0-9A-Z]{58})\b",
    "AKIA": r"\bAKIA([A-Z2-7]{16})\b",
    "ASIA": r"\bASIA([A-Z2-7]{16})\b",
    "ABIA": r"\bABIA([A-Z2-7]{16})\b",
    "ACCA": r"\bACCA([A-Z2-7]{16})\b",
    "amzn.mws.": r"\bamzn\.mws\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
    "LTAI": r"\bLTAI([0-9A-Za-z]{17,20})\b",
    "ghp_": r"\bghp_([A-Za-z0-9]{36})\b",
    "gho_": r"\bgho_([A-Za-z0-9]{36})\b",
    "ghu_": r"\bghu_([A-Za-z0-9]{36})\b",
    "ghs_": r"\bghs_([A-Za-z0-9]{36})\b",
    "ghr_": r"\bghr_([A-Za-z0-9]{36,76})\b",
    "github_pat_": r"\bgithub_pat_([A-Za-z0-9_]{60,})\b",
    "glpat-": r"\bglpat-([\w-]{20,})",
    "gldt-": r"\bgldt-([\w-]{20,})",
    "glrt-": r"\bglrt-([\w-]{20,})",
    "glptt-": r"\bglptt-([\w-]{20,})",
    "glft-": r"\bglft-([\w-]{20,})",
    "gloas-": r"\bgloas-([\w-]{20,})",
    "glsoat-": r"\bglsoat-([\w-]{20,})",
    "glcbt-": r"\bglcbt-([\w-]{20,})",
    "GR1348941": r"\bGR1348941([\w-]{20,})",
    "xox": r"\bxox[abeoprs]-(?:\d-)?([0-9A-Za-z-]{20,})",
    "xapp-": r"\bxapp-\d-[A-Z0-9]+-\d+-([a-z0-9]{20,})",
    "hooks.slack.com": r"hooks\.slack\.com/(?:services|workflows|triggers)/T\w{6,}/\w{6,}/(\w{16,})",
    "/api/webhooks/": r"\bdiscord(?:app)?\.com/api/webhooks/\d{16,22}/([\w-]{60,})",
    "_live_": r"\b(?:sk|rk|pk_secret)_live_([0-9a-zA-Z]{20,})",
    "whsec_": r"\bwhsec_([0-9A-Za-z+/]{24,})",
    "sq0csp-": r"\bsq0csp-([\w-]{43})",
    "access_token$production$": r"access_token\$production\$[0-9a-z]{16}\$([0-9a-f]{32})",
    "AIza": r"\bAIza([\w-]{35})(?![\w-])",
    "GOCSPX-": r"\bGOCSPX-([\w-]{28})",
    "ya29.": r"\bya29\.([\w-]{40,})",
    "npm_": r"\bnpm_([A-Za-z0-9]{36})\b",
    "pypi-": r"\bpypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)([\w-]{50,})",
    "rubygems_": r"\brubygems_([0-9a-f]{48})\b",
    "CLOJARS_": r"\bCLOJARS_([0-9a-f]{60})\b",
    "oy2": r"\boy2([a-z0-9]{43})\b",
    "dckr_": r"\bdckr_[op]at_([\w-]{27})",
    "hf_": r"\bhf_([A-Za-z]{34})\b",
    "T3BlbkFJ": r"(?<![\w-])sk-([\w-]{20,120}T3BlbkFJ[\w-]{20,120})",
    "sk-proj-": r"\bsk-proj-([\w-]{40,})",
    "sk-ant-": r"\bsk-ant-(?:api|admin|oat)\d\d-([\w-]{40,})",
    "sk-or-v1-": r"\bsk-or-v1-([0-9a-f]{64})\b",
    "gsk_": r"\bgsk_([A-Za-z0-9]{52})\b",
    "xai-": r"\bxai-([\w-]{80})",
    "pplx-": r"\bpplx-([0-9A-Za-z]{40,64})\b",
    "SG.": r"\bSG\.[\w-]{22}\.([\w-]{43})\b",
    "-us": r"\b([0-9a-f]{32})-us\d{1,2}\b",
    "key-": r"(?<![\w-])key-([0-9a-f]{32})\b",
    "xkeysib-": r"\bxkeysib-([0-9a-f]{64})",
    "SK": r"(?<![A-Za-z0-9+/=])SK([0-9a-f]{32})(?![A-Za-z0-9+/=])",
    ":AA": r"(?<![\w:])\d{8,10}:(AA[\w-]{33})(?![\w-])",
    "shp": r"\bshp(?:at|ca|pa|ss)_([0-9a-fA-F]{32})\b",
    "_v1_": r"\b(?:do[opr]|tgp)_v1_([\w-]{43,64})\b",
    "hvs.": r"\bhvs\.([\w-]{80,})",
    "hvb.": r"\bhvb\.([\w-]{80,})",
    ".atlasv1.": r"\b[\w-]{14}\.atlasv1\.([\w-]{60,})",
    "dapi": r"\bdapi([0-9a-f]{32})\b",
    "ATATT3x": r"\bATATT3x([\w-]{80,})",
    "ATCTT3x": r"\bATCTT3x([\w-]{80,})",
    "ATBB": r"\bATBB([0-9A-Za-z]{32})\b",
    "glsa_": r"\bglsa_([0-9A-Za-z]{32})_[0-9a-f]{8}\b",
    "glc_eyJ": r"\bglc_eyJ([\w-]{60,})",
    "sntry": r"\bsntry(?:s_eyJ[\w-]{60,}|u_([0-9a-f]{64}))",
    "NRAK-": r"\bNRAK-([0-9A-Z]{27})\b",
    "lin_api_": r"\blin_api_([0-9A-Za-z]{40})\b",
    "ntn_": r"\bntn_(\d{9}[0-9A-Za-z]{36,})\b",
    "figd_": r"\bfigd_([\w-]{40})",
    "dp.": r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.([0-9A-Za-z]{43})\b",
    "pul-": r"\bpul-([0-9a-f]{40})\b",
    "pscale_": r"\bpscale_(?:tkn|oauth|pw)_([\w.-]{32,64})",
    "tskey-": r"\btskey-(?:api|auth|client|scim|webhook)-([0-9A-Za-z]{12,24}-[0-9A-Za-z]{32})",
    "PMAK-": r"\bPMAK-([0-9a-f]{24}-[0-9a-f]{34})\b",
    "sbp_": r"\bsbp_([0-9a-f]{40})\b",
    "SWMTKN-1-": r"\bSWMTKN-1-([0-9a-z]{50}-[0-9a-z]{25})",
    "CCIPAT_": r"\bCCIPAT_\w{22}_([0-9a-f]{40})\b",
    "AccountKey=": r"\bAccountKey=([A-Za-z0-9+/]{86}==)",
    "SharedAccessKey=": r"\bSharedAccessKey=([A-Za-z0-9+/]{43}=)",
    "8Q~": r"\b([A-Za-z0-9~._-]{3}8Q~[A-Za-z0-9~._-]{31,34})",
    "eyJ": r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.([\w-]{20,})",
    "://": (
        r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>{}$%]{0,64}:"
        r"((?:[^\s:/@\"'`<>{}%]|%[0-9A-Fa-f]{2}){4,256})@[\w.-]+"
    ),
}
_COMPILED = {part: re.compile(form) for part, form in _FORMS.items()}
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


@private_when_spent
def holds_token(text: str) -> bool:
    """Whether a text holds a private key, an access token of a known form, or a URL with a password, and not just an
    example of one. Takes a few milliseconds for 100 KB."""
    return any(_holds(form, text) for part, form in _COMPILED.items() if part in text)


def _holds(form: re.Pattern[str], text: str) -> bool:
    spend()
    for match in form.finditer(text):
        spend()
        if _is_drawn(match):
            return True
    return False


def _is_drawn(match: re.Match[str]) -> bool:
    drawn = match[match.lastindex or 0]
    if drawn in PUBLISHED or (match[0].find("://") > 0 and _NO_PASSWORD.search(drawn)):
        return False
    return not PLACEHOLDER.search(drawn) and len(set(drawn)) > min(5, len(drawn) // 2)


_NO_PASSWORD = re.compile(r"[\[\]]|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^(?:postgres|foobar|prefix)$")
"""What stands for a password in a URL: a form with brackets, the name of a variable, a database's default."""
