// Which program is the language server: a setting, the active interpreter, `codespec` on the PATH, the extension's own.

import { PythonExtension } from '@vscode/python-extension';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { log, messageOf } from './log';
import { findProgram, run } from './processes';
import type { Settings } from './settings';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** Where it was found, for the log. */
  readonly origin: string;
}

/** Something that the user has set, and that cannot be. */
export class BadSetting extends Error {
  constructor(
    readonly setting: string,
    message: string,
  ) {
    super(message);
  }
}

/** How long a Python may take to say whether it has codespec: it may come from a network drive. */
const ASK_MS = 30_000;

/** How long the Python extension may take to be active. */
const PYTHON_EXTENSION_MS = 10_000;

const HAS_CODESPEC = "import importlib.util, sys; sys.exit(importlib.util.find_spec('codespec') is None)";

/** The server's program; undefined where codespec is not installed anywhere. */
export async function findServer(settings: Settings, own: string): Promise<Program | undefined> {
  const [name, ...args] = settings.get<string[]>('command');
  if (name !== undefined) {
    const command = await findProgram(name);
    if (command === undefined) {
      throw new BadSetting(
        'command',
        `There is no program ${JSON.stringify(name)}, which the setting codespec.command names.`,
      );
    }
    return { command, args, origin: 'the setting codespec.command' };
  }
  const chosen = settings.get<string>('python');
  if (chosen) {
    const python = await findProgram(chosen);
    if (python === undefined) {
      throw new BadSetting(
        'python',
        `There is no program ${JSON.stringify(chosen)}, which the setting codespec.python names.`,
      );
    }
    if (await hasCodespec(python)) {
      return withPython(python, 'the setting codespec.python');
    }
    log.info(`${python}, which the setting codespec.python names, does not have codespec`);
  }
  const active = await activeInterpreter();
  if (active !== undefined && (await hasCodespec(active))) {
    return withPython(active, 'the active interpreter of the Python extension');
  }
  const program = await findProgram('codespec');
  if (program !== undefined) {
    return { command: program, args: ['serve'], origin: 'the PATH' };
  }
  return (await hasCodespec(own)) ? withPython(own, "the extension's own environment") : undefined;
}

function withPython(command: string, origin: string): Program {
  return { command, args: ['-m', 'codespec', 'serve'], origin };
}

async function hasCodespec(python: string): Promise<boolean> {
  try {
    // -I: nothing of the current folder counts.
    return (await run(python, ['-I', '-c', HAS_CODESPEC], { timeoutMs: ASK_MS })).code === 0;
  } catch {
    return false; // it cannot be run
  }
}

/** The interpreter that the Python extension uses here; never that of a workspace that is not trusted. */
export async function activeInterpreter(): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted || vscode.extensions.getExtension('ms-python.python') === undefined) {
    return undefined;
  }
  try {
    const api = await within(PYTHON_EXTENSION_MS, PythonExtension.api());
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const environment = await api?.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
    const found = environment?.executable.uri?.fsPath;
    return found !== undefined && path.isAbsolute(found) ? found : undefined;
  } catch (error) {
    log.warn(`The Python extension does not name its interpreter: ${messageOf(error)}`);
    return undefined;
  }
}

function within<T>(ms: number, promise: PromiseLike<T>): Promise<T | undefined> {
  return Promise.race([promise, new Promise<undefined>((resolve) => setTimeout(resolve, ms, undefined))]);
}
