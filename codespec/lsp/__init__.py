"""The language server."""

from codespec.lsp.connection.transport import serve
from codespec.lsp.session import create_server

__all__ = ["create_server", "serve"]
