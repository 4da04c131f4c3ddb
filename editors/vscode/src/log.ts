import { performance } from 'node:perf_hooks';
import * as vscode from 'vscode';

/** Work on the extension host's thread that takes longer than a frame keeps other extensions waiting. */
const FRAME_MS = 16;

/** The output channel; its level is chosen with "Developer: Set Log Level…". */
export const log = vscode.window.createOutputChannel('codespec', { log: true });

/** Of the steps on this thread the one that held it longest, and the one that computed longest, where Node tells. */
const longest: Record<'ms' | 'cpuMs', { ms: number; name: string }> = {
  ms: { ms: 0, name: 'nothing' },
  cpuMs: { ms: 0, name: 'nothing' },
};

/** What this thread has computed so far; on a busy machine far less passes than by the clock. Not in every Node. */
const { threadCpuUsage } = process as { threadCpuUsage?: () => { user: number; system: number } };

function cpuMs(): number {
  const { user, system } = threadCpuUsage?.() ?? { user: 0, system: 0 };
  return (user + system) / 1_000;
}

/** The step that held the thread longest so far, and where Node tells, the one that computed longest. */
export function longestStep(): string {
  const [held, computed] = [longest.ms, longest.cpuMs].map(({ name, ms }) => `${name}, ${ms.toFixed(1)} ms`);
  return `${held}${threadCpuUsage ? `; longest of CPU: ${computed}` : ''}`;
}

/** A function that notes how long it holds the thread: up to its first `await` if it has one. */
export function timed<A extends unknown[], R>(name: string, action: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    const [began, beganCpu] = [performance.now(), cpuMs()];
    try {
      return action(...args);
    } finally {
      const spent = { ms: performance.now() - began, cpuMs: cpuMs() - beganCpu };
      for (const kind of ['ms', 'cpuMs'] as const) {
        if (spent[kind] > longest[kind].ms) {
          longest[kind] = { ms: spent[kind], name };
        }
      }
      if (spent.ms > FRAME_MS) {
        log.debug(`${name} held the thread for ${spent.ms.toFixed(1)} ms`);
      }
    }
  };
}

/** What went wrong, in one line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
