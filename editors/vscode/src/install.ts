// The extension's own virtual environment, made by one button.

import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { activeInterpreter } from './environment';
import { log, messageOf } from './log';
import { findProgram, run, type Ran } from './processes';
import type { Settings } from './settings';

declare const CHECKOUT: string;

const CHECK = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))';
const NO_PYTHON_REMEDY: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'Install it, for instance with "brew install python"',
  win32: 'Install it, for instance with "winget install Python.Python.3.12"',
};

/** What pip says, what that means, and what helps. The first that matches counts. */
const CAUSES: readonly [RegExp, string][] = [
  [
    /DO NOT MATCH THE HASHES/,
    'The package index has another codespec than the one that this extension was released with, which was not installed. Set codespec.installFrom to a wheel that you trust.',
  ],
  [/No space left on device|ENOSPC/, 'The disk is full.'],
  [
    /CMAKE_C(XX)?_COMPILER not set|No CMAKE_C(XX)?_COMPILER|C compiler cannot|Microsoft Visual C\+\+|nmake|Failed building wheel for llama-cpp-python/,
    'llama.cpp could not be built, which needs a C/C++ compiler: install build-essential (Debian, Ubuntu), the command line tools (macOS: xcode-select --install) or the Build Tools for Visual Studio with C++ (Windows).',
  ],
  [
    /NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|ProxyError|SSLError|Could not find a version that satisfies/,
    'pip could not fetch a package: check the network, or name your package index in the setting codespec.pipArguments.',
  ],
];

export class Failure extends Error {}

/** The Python of the extension's own environment, whether it is there or not. */
export function ownPython(context: vscode.ExtensionContext): string {
  const venv = path.join(context.globalStorageUri.fsPath, 'venv');
  return process.platform === 'win32' ? path.join(venv, 'Scripts', 'python.exe') : path.join(venv, 'bin', 'python');
}

/**
 * Makes the extension's own environment and installs codespec there, with progress; it can be cancelled.
 * @returns whether codespec is there now
 * @throws Failure with cause and remedy
 */
export async function install(context: vscode.ExtensionContext, settings: Settings): Promise<boolean> {
  const base = await findPython(settings);
  if (base === undefined) {
    const remedy =
      NO_PYTHON_REMEDY[process.platform] ?? 'Install it, for instance with "sudo apt install python3 python3-venv"';
    throw new Failure(
      `codespec needs Python 3.10 or newer, which was not found. ${remedy}, then try again, or name one in the setting codespec.python.`,
    );
  }
  const sources = await sourcesOf(context, settings);
  log.info(`installing ${sources.at(-1)} with ${base}`);
  const options = { location: vscode.ProgressLocation.Notification, title: 'codespec', cancellable: true };
  return vscode.window.withProgress(options, async (progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    const done = await installInto(
      context,
      base,
      sources.map((source) => [...settings.get<string[]>('pipArguments'), ...source]),
      abort.signal,
      (message) => progress.report({ message }),
    );
    if (!done) {
      log.info('the installation was cancelled');
    }
    return done;
  });
}

async function installInto(
  context: vscode.ExtensionContext,
  base: string,
  sources: readonly string[][],
  signal: AbortSignal,
  report: (message: string) => void,
): Promise<boolean> {
  const storage = context.globalStorageUri.fsPath;
  const venv = path.join(storage, 'venv');
  const steps: [string, string, string[]][] = [
    ['making a Python environment', base, ['-m', 'venv', '--clear', venv]],
  ];
  for (const source of sources) {
    const args = ['-m', 'pip', 'install', '--no-cache-dir', '--disable-pip-version-check', ...source];
    steps.push(['fetching packages', ownPython(context), args]);
  }
  await fs.mkdir(storage, { recursive: true });
  const began = Date.now();
  let latest = '';
  const say = () => {
    const minutes = Math.floor((Date.now() - began) / 60_000);
    report(minutes > 0 ? `${latest} (${minutes} min)` : latest);
  };
  const timer = setInterval(say, 20_000);
  try {
    for (const [message, command, args] of steps) {
      latest = message;
      say();
      const onLine = (line: string) => {
        log.info(line);
        latest = inWords(line) ?? latest;
        say();
      };
      const ran = await run(command, args, { cwd: storage, env: buildFlags(), signal, onLine });
      if (ran.code !== 0) {
        await fs.rm(venv, { recursive: true, force: true }); // half an environment would be taken for a whole one
        if (signal.aborted) {
          return false;
        }
        throw new Failure(causeOf(ran));
      }
    }
    return true;
  } finally {
    clearInterval(timer);
  }
}

/** Same as in the Makefile: GCC 12 drops stores that AMX needs, unless these two passes are off. */
function buildFlags(): Record<string, string> {
  const ours = process.platform === 'linux' && process.env['CMAKE_ARGS'] === undefined;
  return ours ? { CMAKE_ARGS: "-DCMAKE_CXX_FLAGS='-fno-tree-dse -fno-dse' -DLLAVA_BUILD=OFF" } : {};
}

/** What a line of pip's means to somebody who waits. */
function inWords(line: string): string | undefined {
  const name = /^Collecting ([\w.-]+)/.exec(line)?.[1];
  if (name !== undefined) {
    return `fetching ${name}`;
  }
  const built = /Building wheel for ([\w.-]+)/.exec(line)?.[1];
  if (built !== undefined) {
    return built.startsWith('llama') ? 'building llama.cpp for this machine: 5 to 10 minutes' : `building ${built}`;
  }
  return line.startsWith('Installing collected packages') ? 'installing' : undefined;
}

function causeOf({ output }: Ran): string {
  const found = CAUSES.find(([pattern]) => pattern.test(output))?.[1];
  const said =
    output
      .split('\n')
      .filter((line) => /^\s*(ERROR|error|Error)\b/.test(line))
      .pop() ?? output.trim().split('\n').pop();
  return (
    found ?? `The server could not be installed: ${said?.trim().replace(/^error:\s*/i, '') || 'pip did not say why'}`
  );
}

/** A Python that can make an environment. */
async function findPython(settings: Settings): Promise<string | undefined> {
  const names = ['python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3', 'python'];
  const candidates = [settings.get<string>('python') || undefined, await activeInterpreter(), ...names];
  for (const candidate of candidates) {
    const python = candidate === undefined ? undefined : await findProgram(candidate);
    if (python === undefined) {
      continue;
    }
    try {
      const ran = await run(python, ['-I', '-c', CHECK], { timeoutMs: 30_000 });
      if (ran.code === 0) {
        return python;
      }
      log.info(
        `${python} is too old, or cannot make environments (Debian: sudo apt install python3-venv): ${ran.output.trim()}`,
      );
    } catch (error) {
      log.info(`${python}: ${messageOf(error)}`);
    }
  }
  return undefined;
}

/**
 * What pip is to install, in one call after the other. No name alone: an index might have given it to somebody else.
 * @throws Error where nothing says where codespec is.
 */
async function sourcesOf(context: vscode.ExtensionContext, settings: Settings): Promise<string[][]> {
  const chosen = settings.get<string>('installFrom');
  if (chosen) {
    return [[chosen]];
  }
  if (CHECKOUT === '') {
    // The wheel of this release, by its checksum; what it needs has none here, and is installed after it.
    const file = path.join(context.extensionPath, 'dist', 'wheel.txt');
    const [requirement = ''] = (await fs.readFile(file, 'utf8')).split(' ');
    return [['--no-deps', '--only-binary', 'codespec', '--require-hashes', '--requirement', file], [requirement]];
  }
  const there = await fs.access(path.join(CHECKOUT, 'pyproject.toml')).then(
    () => true,
    () => false,
  );
  if (!there) {
    throw new Error(
      'The folder that this extension was built in is gone. Set codespec.installFrom to a folder that holds codespec, or to the URL of its wheel, then try again.',
    );
  }
  return [[CHECKOUT]];
}
