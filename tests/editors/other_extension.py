"""Another extension of VS Code, with ghost text of its own: ``<another>`` behind lines that end in ``nothing``;
parameter hints behind an opening bracket; and everything is referred to in the first two lines."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

GHOST = "<another>"

_PACKAGE = {
    "name": "another",
    "publisher": "tests",
    "version": "0.0.1",
    "engines": {"vscode": "^1.91.0"},
    "activationEvents": ["onStartupFinished"],
    "main": "./extension.js",
}

_CODE = f"""const vscode = require('vscode');
exports.activate = ({{ subscriptions }}) => {{
  const provideInlineCompletionItems = (document, position) => {{
    const before = document.lineAt(position).text.slice(0, position.character);
    const item = new vscode.InlineCompletionItem('{GHOST}', new vscode.Range(position, position));
    return before.endsWith('nothing') ? [item] : [];
  }};
  const provider = {{ provideInlineCompletionItems }};
  const all = {{ pattern: '**' }};
  subscriptions.push(vscode.languages.registerInlineCompletionItemProvider(all, provider));
  const provideSignatureHelp = () => {{
    const help = new vscode.SignatureHelp();
    help.signatures = [new vscode.SignatureInformation('f(first, second)')];
    help.activeSignature = help.activeParameter = 0;
    return help;
  }};
  subscriptions.push(vscode.languages.registerSignatureHelpProvider(all, {{ provideSignatureHelp }}, '('));
  const provideReferences = ({{ uri }}) => [0, 1].map((line) => new vscode.Location(uri, new vscode.Position(line, 0)));
  subscriptions.push(vscode.languages.registerReferenceProvider(all, {{ provideReferences }}));
}};
"""

_MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="another" Version="0.0.1" Publisher="tests"/>
    <DisplayName>another</DisplayName>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="^1.91.0"/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
  </Assets>
</PackageManifest>
"""

_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="json" ContentType="application/json"/>
  <Default Extension="js" ContentType="application/javascript"/>
  <Default Extension="vsixmanifest" ContentType="text/xml"/>
</Types>
"""


def package(folder: Path) -> Path:
    """The extension as VS Code installs it."""
    path = folder / "another.vsix"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension.vsixmanifest", _MANIFEST)
        packed.writestr("[Content_Types].xml", _TYPES)
        packed.writestr("extension/package.json", json.dumps(_PACKAGE))
        packed.writestr("extension/extension.js", _CODE)
    return path
