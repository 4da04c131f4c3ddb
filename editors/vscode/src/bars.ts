// Work of the server's that the user may cancel, as a notification with a bar and a button: vscode-languageclient shows
// it in the status bar, with neither.

import * as vscode from 'vscode';
import {
  type LanguageClient,
  type Middleware,
  type ProgressToken,
  State,
  WorkDoneProgressCancelNotification,
  type WorkDoneProgressBegin,
  type WorkDoneProgressReport,
} from 'vscode-languageclient/node';

type Handle = NonNullable<Middleware['handleWorkDoneProgress']>;

class Bar {
  private progress: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  private reached = 0;
  private finish: () => void = () => undefined;

  constructor(begin: WorkDoneProgressBegin, cancel: () => void) {
    const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title: begin.title };
    const ended = new Promise<void>((resolve) => (this.finish = resolve));
    void vscode.window.withProgress(options, (progress, token) => {
      this.progress = progress;
      token.onCancellationRequested(cancel);
      this.tell(begin);
      return ended;
    });
  }

  tell({ message, percentage = this.reached }: WorkDoneProgressBegin | WorkDoneProgressReport): void {
    this.progress?.report({ ...(message === undefined ? {} : { message }), increment: percentage - this.reached });
    this.reached = percentage;
  }

  end(): void {
    this.finish();
  }
}

export class Bars {
  private readonly shown = new Map<ProgressToken, Bar>();
  private client: LanguageClient | undefined;

  readonly handle: Handle = (token, params, next) => {
    const bar = this.shown.get(token);
    if (params.kind === 'begin' && params.cancellable === true) {
      this.shown.set(token, new Bar(params, () => this.cancel(token)));
    } else if (bar === undefined) {
      next(token, params);
    } else if (params.kind === 'end') {
      this.shown.delete(token);
      bar.end();
    } else {
      bar.tell(params);
    }
  };

  /** Follow a client: what its server worked on is over when that ends. */
  follow(client: LanguageClient): void {
    this.client = client;
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped) {
        this.shown.forEach((bar) => bar.end());
        this.shown.clear();
      }
    });
  }

  private cancel(token: ProgressToken): void {
    void this.client?.sendNotification(WorkDoneProgressCancelNotification.type, { token });
  }
}
