// Pages without scripts: all they need is in the HTML and one style sheet.

import * as vscode from 'vscode';

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}

/** A panel whose page is made anew whenever there is something new to show. */
export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private body = '';

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly id: string,
    private readonly title: string,
  ) {}

  get visible(): boolean {
    return this.panel?.visible ?? false;
  }

  dispose(): void {
    this.panel?.dispose();
  }

  show(body: string): void {
    const media = vscode.Uri.joinPath(this.context.extensionUri, 'media');
    if (this.panel === undefined) {
      const options = { enableScripts: false, enableFindWidget: true, localResourceRoots: [media] };
      // Beside the code, but pages of ours are not put beside each other.
      const column = vscode.window.activeTextEditor === undefined ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside;
      this.panel = vscode.window.createWebviewPanel(this.id, this.title, column, options);
      this.panel.onDidDispose(() => (this.panel = undefined));
      this.body = '';
    } else {
      this.panel.reveal(undefined, false);
    }
    this.update(body);
  }

  /** Shows another body in a panel that is open. */
  update(body: string): void {
    if (this.panel === undefined || body === this.body) {
      return;
    }
    this.body = body;
    const { webview } = this.panel;
    const style = webview.asWebviewUri(vscode.Uri.joinPath(this.context.extensionUri, 'media', 'view.css'));
    const policy = `default-src 'none'; style-src ${webview.cspSource}`;
    webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>${escape(this.title)}</title>
</head>
<body>${body}</body>
</html>`;
  }
}
