// The language client, in a bundle of its own: it is large, and loaded once the editor is up.

import type * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type ServerOptions,
  type Middleware,
} from 'vscode-languageclient/node';
import { Bars } from './bars';

/**
 * A client for one server process, which it does not start again when that dies.
 * @param configuration gives what the server is to know of the user's settings
 * @param complete is called for completions, with the server's answer as `next`
 */
export function createClient(
  program: ServerOptions,
  log: vscode.LogOutputChannel,
  configuration: () => Record<string, unknown>,
  complete: NonNullable<Middleware['provideInlineCompletionItems']>,
): LanguageClient {
  const bars = new Bars();
  const client = new LanguageClient('codespec', 'codespec', program, {
    documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }, { scheme: 'vscode-notebook-cell' }],
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => ({ action: CloseAction.DoNotRestart, handled: true, message: 'The server has ended.' }),
    },
    middleware: {
      workspace: { configuration: ({ items }) => items.map(configuration) },
      provideInlineCompletionItems: complete,
      handleWorkDoneProgress: bars.handle,
    },
  });
  bars.follow(client);
  return client;
}
