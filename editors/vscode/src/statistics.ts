// The page that shows how completions have done.

import { escape } from './html';
import { modelName } from './statusBar';

interface Counts {
  readonly shown: number;
  readonly accepted: number;
  readonly accepted_partly: number;
  readonly rejected: number;
  readonly edits_shown: number;
  readonly edits_applied: number;
  readonly edits_rejected: number;
  readonly edits_reverted: number;
}

/** What of the answer of `codespec.status` is shown. */
export interface Figures {
  readonly target?: string;
  readonly draft?: string;
  readonly completions?: number;
  readonly tokens?: number;
  readonly tokens_per_second?: number;
  readonly drafted?: number;
  readonly accepted?: number;
  readonly requests: number;
  readonly from_memory: number;
  readonly prefill_tokens?: number;
  readonly reused_tokens?: number;
  readonly statistics: Readonly<Record<string, Counts>> | null;
}

export function statisticsPage(figures: Figures): string {
  const rows = Object.entries(figures.statistics ?? {}).sort(([, a], [, b]) => b.shown - a.shown);
  const facts: [string, string][] = [
    ['Target', modelName(figures.target)],
    ['Draft', figures.draft ?? 'none'],
    [
      'Requests',
      `${figures.requests}, of which ${share(figures.from_memory, figures.requests)} were answered from memory`,
    ],
    [
      'Tokens written',
      `${figures.tokens ?? 0}${figures.tokens_per_second ? `, ${Math.round(figures.tokens_per_second)} a second` : ''}`,
    ],
    [
      'Drafted tokens',
      `${figures.drafted ?? 0}, of which ${share(figures.accepted ?? 0, figures.drafted ?? 0)} were accepted`,
    ],
    ['Prompt tokens', `${figures.prefill_tokens ?? 0} read, ${figures.reused_tokens ?? 0} known already`],
  ];
  return `<h1>Statistics</h1>
<p>Counted on this machine alone; nothing is sent anywhere.</p>
<h2>This session</h2>
<dl>${facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join('')}</dl>
<h2>Since counting began</h2>
${rows.length > 0 ? table(rows) + editsTable(rows.filter(([, counts]) => counts.edits_shown > 0)) : `<p>${figures.statistics === null ? 'Counting is switched off (codespec.statistics).' : 'Nothing was shown yet.'}</p>`}`;
}

function table(rows: readonly [string, Counts][]): string {
  const lines = rows.map(
    ([language, counts]) => `<tr><th scope="row">${escape(language)}</th><td>${counts.shown}</td>
<td>${counts.accepted} (${share(counts.accepted, counts.shown)})</td><td>${counts.accepted_partly}</td><td>${counts.rejected}</td></tr>`,
  );
  return `<div class="scroll" tabindex="0" role="region" aria-label="By language"><table>
<thead><tr><th scope="col">Language</th><th scope="col">Shown</th><th scope="col">Accepted</th><th scope="col">In part</th><th scope="col">Dismissed</th></tr></thead>
<tbody>${lines.join('')}</tbody></table></div>`;
}

function editsTable(rows: readonly [string, Counts][]): string {
  const lines = rows.map(
    ([language, counts]) => `<tr><th scope="row">${escape(language)}</th><td>${counts.edits_shown}</td>
<td>${counts.edits_applied} (${share(counts.edits_applied, counts.edits_shown)})</td><td>${counts.edits_rejected}</td>
<td>${counts.edits_reverted}</td></tr>`,
  );
  return rows.length === 0
    ? ''
    : `<h2>Next edits</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Next edits by language"><table>
<thead><tr><th scope="col">Language</th><th scope="col">Shown</th><th scope="col">Applied</th><th scope="col">Dropped</th><th scope="col">Taken back within 30 seconds</th></tr></thead>
<tbody>${lines.join('')}</tbody></table></div>`;
}

function share(part: number, all: number): string {
  return all > 0 ? `${Math.round((100 * part) / all)} %` : 'none';
}
