"""The language server."""

from codespec.lsp.app import create_server
from codespec.lsp.connection.transport import serve

__all__ = ["create_server", "serve"]
