"""The language server."""

from codespec.lsp.server import create_server
from codespec.lsp.transport import serve

__all__ = ["create_server", "serve"]
