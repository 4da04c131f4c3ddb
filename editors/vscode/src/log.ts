import { performance } from 'node:perf_hooks';
import * as vscode from 'vscode';

/** Work on the extension host's thread that takes longer than a frame keeps other extensions waiting. */
const FRAME_MS = 16;

/** The output channel; its level is chosen with "Developer: Set Log Level…". */
export const log = vscode.window.createOutputChannel('codespec', { log: true });

const longest = { ms: 0, name: 'nothing' };

/** The step that held the thread longest so far. */
export function longestStep(): string {
  return `${longest.name}, ${longest.ms.toFixed(1)} ms`;
}

/** A function that notes how long it holds the thread: up to its first `await` if it has one. */
export function timed<A extends unknown[], R>(name: string, action: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    const began = performance.now();
    try {
      return action(...args);
    } finally {
      const ms = performance.now() - began;
      if (ms > longest.ms) {
        longest.ms = ms;
        longest.name = name;
      }
      if (ms > FRAME_MS) {
        log.debug(`${name} held the thread for ${ms.toFixed(1)} ms`);
      }
    }
  };
}

/** What went wrong, in one line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
