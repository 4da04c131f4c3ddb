"""For mkdocs (``hooks`` in mkdocs.yml): links that leave ``docs/`` become the path as code.

The site holds the pages alone, and no address of the repository is known that such links could lead to.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text as the site shows it; ``page.file.src_uri`` says where it lies under ``docs/``."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def shown(link: re.Match[str]) -> str:
        text, address = link.groups()
        path = posixpath.normpath(posixpath.join(folder, address.partition("#")[0]))
        if ":" in address or address.startswith("#") or path.startswith("docs/"):
            return link[0]
        return f"`{path}`" if text.strip("`") in path else f"{text} (`{path}`)"

    return _LINK.sub(shown, markdown)
