"""The formats of JSON Schema as regular expressions (draft 2020-12, validation, section 7.3).

llguidance has its own for ``duration``, ``email``, ``hostname``, ``uri`` and ``uuid``. For the formats here it has
none, or one that takes wrong texts (29 February in any year, leap seconds at any minute) or refuses right ones.
"""

from __future__ import annotations

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_LEAP = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)


def _leap_second() -> str:
    """23:59:60 UTC, in local times (RFC 3339, 5.7), with offsets of whole quarters of an hour: no place has others."""
    fraction = r"(?:\.[0-9]+)?"
    ways = [f"23:59:60{fraction}[zZ]"]
    for offset in range(-1425, 1440, 15):
        hour, minute = divmod((23 * 60 + 59 + offset) % 1440, 60)
        sign = r"\+" if offset > 0 else "-" if offset else "[+-]"
        ways.append(rf"{hour:02}:{minute:02}:60{fraction}{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}")
    return "|".join(ways)


_TIME = (
    r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
    rf"|{_leap_second()})"
)
_H = "[0-9a-fA-F]{1,4}"
_LS32 = f"(?:{_H}:{_H}|{_IPV4})"
# RFC 3986, 3.2.2
_IPV6 = "|".join([
    f"(?:{_H}:){{6}}{_LS32}",
    *(f"(?:(?:{_H}:){{0,{n}}}{_H})?::(?:{_H}:){{{4 - n}}}{_LS32}" for n in range(5)),
    f"::(?:{_H}:){{5}}{_LS32}",
    f"(?:(?:{_H}:){{0,5}}{_H})?::{_H}",
    f"(?:(?:{_H}:){{0,6}}{_H})?::",
])  # fmt: skip
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_SUB = "!$&'()*+,;="


def _uri(wider: str, relative: bool) -> str:
    """RFC 3986, appendix A, and with ``wider`` characters RFC 3987."""
    escape, plain = "%[0-9a-fA-F]{2}", rf"a-zA-Z0-9\-._~{_SUB}{wider}"
    char = f"(?:[{plain}:@]|{escape})"
    authority = rf"(?:(?:[{plain}:]|{escape})*@)?(?:\[[0-9a-fA-F:.]+\]|(?:[{plain}]|{escape})*)(?::[0-9]*)?"
    rest = f"//{authority}(?:/{char}*)*|/(?:{char}+(?:/{char}*)*)?"
    tail = rf"(?:\?(?:{char}|[/?])*)?(?:#(?:{char}|[/?])*)?"
    whole = rf"[a-zA-Z][a-zA-Z0-9+\-.]*:(?:{rest}|{char}+(?:/{char}*)*|)"
    first = f"(?:[{plain}@]|{escape})"  # no colon, or it would be a scheme
    return f"(?:{whole}|{rest}|{first}+(?:/{char}*)*|){tail}" if relative else f"(?:{whole}){tail}"


def _regex(depth: int) -> str:
    """Regular expressions that JavaScript and Python take alike, with so many groups within groups."""
    escape = r"\\[dDwWsS.\\^$*+?()\[\]{}|/]"
    member = r"[^\\\[\]\^&~|\-\x00-\x1f]"
    one = rf"(?:[^\\\[\](){{}}|*+?.\^$\x00-\x1f]|{escape}|\.|\[\^?(?:a-z|A-Z|0-9|{member}|{escape})+\])"
    counts = "|".join(rf"{low},[{low or 1}-9]" for low in range(10))
    many = rf"(?:(?:[*+?]|\{{(?:[0-9]{{1,2}},?|{counts}|[0-9],[1-9][0-9])\}})\??)?"
    text = rf"(?:{one}{many}|[\^$])*"
    for _ in range(depth):
        text = rf"(?:{one}{many}|[\^$]|\((?:\?:)?{text}(?:\|{text})*\){many})*"
    return rf"{text}(?:\|{text})*"


def _uri_template() -> str:
    """RFC 6570, section 2."""
    escape = "%[0-9a-fA-F]{2}"
    private = r"\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD}"
    literal = rf"[!#$&(-;=?-\[\]_a-z~{_WIDE}{private}]"
    name = rf"(?:\w|{escape})(?:\.?(?:\w|{escape}))*".replace(r"\w", "[0-9A-Za-z_]")
    variable = rf"{name}(?::[1-9][0-9]{{0,3}}|\*)?"
    return rf"(?:{literal}|{escape}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*"


def _json(depth: int) -> str:
    """JSON texts with so many containers within containers."""
    string = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
    space = r"[ \t\n\r]*"
    value = rf"(?:null|true|false|{string}|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    for _ in range(depth):
        array = rf"\[{space}(?:{value}{space}(?:,{space}{value}{space})*)?\]"
        member = rf"{string}{space}:{space}{value}{space}"
        value = rf"(?:{value}|{array}|\{{{space}(?:{member}(?:,{space}{member})*)?\}})"
    return f"{space}{value}{space}"


def _idn_hostname() -> str:
    """Some of RFC 5891's names: letters of a few scripts, all of one direction, no two hyphens in a row.

    The lengths keep each label within 63 octets once it is encoded. Some signs stand only beside certain letters (RFC
    5892, appendix A).
    """
    greek, hebrew = r"[\x{3B1}-\x{3C9}]", r"[\x{5D0}-\x{5EA}]"
    kana_or_han = r"[\x{3041}-\x{3096}\x{30A1}-\x{30FA}\x{3007}\x{4E00}-\x{9FA5}]"
    letter = rf"(?:[a-z\x{{F0B}}\x{{E01}}-\x{{E30}}\x{{AC00}}-\x{{D7A3}}{_SMALL}]|{kana_or_han})"
    one = rf"(?:{letter}|[0-9]|l\x{{B7}}l|\x{{375}}{greek}|[\x{{915}}-\x{{939}}](?:\x{{94D}}[\x{{200C}}\x{{200D}}]?)?)"
    arabic = r"[\x{620}-\x{63A}\x{641}-\x{64A}\x{6FD}\x{6FE}]"
    joining = r"[\x{628}\x{62A}-\x{62E}\x{633}-\x{63A}\x{641}-\x{647}\x{64A}]"
    digits, others = r"[\x{660}-\x{669}]{0,2}", r"[\x{6F0}-\x{6F9}]"
    labels = [
        r"[a-z0-9](?:-?[a-z0-9]){0,30}",
        rf"{one}(?:-?{one}){{0,2}}",
        rf"{letter}{{4,11}}",
        rf"{others}{{1,3}}[0-9]{{0,3}}",
        rf"\x{{30FB}}{kana_or_han}",
    ]
    to_the_left = [
        rf"{hebrew}{{1,6}}[\x{{5F3}}\x{{5F4}}]?{hebrew}{{0,4}}",
        rf"{joining}{{1,4}}\x{{200C}}{joining}{{1,4}}",
        rf"{arabic}{{1,5}}(?:{digits}|{others}{{0,2}}){arabic}{{0,4}}",
    ]
    names = (f"(?:{'|'.join(each)})" for each in (labels, to_the_left))
    return "|".join(rf"{name}(?:[.\x{{3002}}\x{{FF0E}}\x{{FF61}}]{name}){{0,3}}" for name in names)


def _idn_email() -> str:
    word = rf"[a-zA-Z0-9!#$%&'*+/=?^_`{{|}}~\-{_SMALL}\x{{4E00}}-\x{{9FA5}}\x{{AC00}}-\x{{D7A3}}]{{1,15}}"
    return rf"{word}(?:\.{word}){{0,3}}@(?:{_idn_hostname()})"


_SMALL = r"\x{DF}-\x{F6}\x{F8}-\x{FF}\x{3B1}-\x{3C9}\x{430}-\x{45F}"  # Latin, Greek and Cyrillic letters
_WIDE = r"\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{DFFFD}"

FORMATS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[tT]{_TIME}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "json-pointer": _POINTER,
    "uri-reference": _uri("", relative=True),
    "iri": _uri(_WIDE, relative=False),
    "iri-reference": _uri(_WIDE, relative=True),
    "regex": _regex(2),
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
    "uri-template": _uri_template(),
    "idn-hostname": _idn_hostname(),
    "idn-email": _idn_email(),
}
"""Expressions in Rust's syntax for the whole text."""

BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
JSON = _json(1)

ENGINE_FORMATS = ("duration", "email", "hostname", "uri", "uuid")
"""Formats that llguidance enforces."""

ANY_TEXT = ("binary", "byte", "password", "path")
"""Formats outside the specification, written by OpenAPI and pydantic, that say nothing about which texts match."""
