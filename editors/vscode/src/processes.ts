// Programs: where they are, and running them to their end.

import { spawn } from 'node:child_process';
import * as fs from 'node:fs/promises';
import * as os from 'node:os';
import * as path from 'node:path';

export interface Ran {
  readonly code: number | null;
  readonly output: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with each line of both outputs. */
  readonly onLine?: (line: string) => void;
}

/** The most that is kept of what a program prints. */
const MOST_OUTPUT = 1 << 20;

/** Runs a program to its end; where it is to stop before, its child processes end with it. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32', // a process group of its own, which can be ended as a whole
      windowsHide: true,
    });
    let output = '';
    let rest = '';
    const end = () => killTree(child.pid);
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(end, options.timeoutMs);
    options.signal?.addEventListener('abort', end);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-MOST_OUTPUT);
        const lines = (rest + text).split(/\r?\n|\r/);
        rest = lines.pop() as string;
        lines.filter((line) => line.trim()).forEach((line) => options.onLine?.(line));
      });
    }
    const cleanUp = () => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', end);
    };
    child.on('error', (error) => {
      cleanUp();
      reject(error);
    });
    child.on('close', (code) => {
      cleanUp();
      resolve({ code, output });
    });
  });
}

function killTree(pid: number | undefined): void {
  if (pid === undefined) {
    return;
  }
  if (process.platform === 'win32') {
    spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true }).on('error', () => {});
    return;
  }
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // It has ended by itself.
  }
}

/** The absolute path of a program, undefined where there is none: a bare name is looked up on the PATH and in ~/.local/bin. */
export async function findProgram(name: string): Promise<string | undefined> {
  if (name.startsWith('~/')) {
    name = path.join(os.homedir(), name.slice(2));
  }
  const bare = path.basename(name) === name;
  const folders = bare
    ? [...(process.env['PATH'] ?? '').split(path.delimiter), path.join(os.homedir(), '.local', 'bin')]
    : [''];
  const suffixes = process.platform === 'win32' && !path.extname(name) ? ['.exe'] : [''];
  for (const folder of folders) {
    for (const suffix of suffixes) {
      const file = path.join(folder, name + suffix);
      if (path.isAbsolute(file) && (await isProgram(file))) {
        return file;
      }
    }
  }
  return undefined;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await fs.access(file, fs.constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}
