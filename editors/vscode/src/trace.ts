// The page that shows where each token of a completion came from.

import { escape } from './html';
import { modelName } from './statusBar';

export interface Pass {
  readonly ms: number;
  readonly tokens: readonly string[];
  readonly sources: readonly string[];
  readonly rejected: readonly string[];
}

/** The answer of `codespec.trace`. */
export interface Trace {
  readonly document: string;
  readonly language: string;
  readonly text: string;
  readonly finish_reason: string;
  /** How many characters before the cursor the tokens begin: half a word, and the signs before it, are written anew. */
  readonly backed_up: number;
  readonly tokens: number;
  readonly target_calls: number;
  readonly drafted: number;
  readonly accepted: number;
  readonly prefill_tokens: number;
  readonly reused_tokens: number;
  readonly grammar: string;
  readonly draft: string;
  readonly target: string;
  readonly timings_ms: Readonly<Record<string, number>>;
  readonly passes: readonly Pass[];
  /** Why nothing of it was shown; empty where something was. */
  readonly nothing?: string;
}

const KINDS: Readonly<Record<string, string>> = {
  target: "the target's own",
  model: 'drafted by the model, accepted',
  ngram: 'drafted by n-grams, accepted',
  forced: 'forced by the grammar',
  rejected: 'drafted, rejected',
};

const REASONS: Readonly<Record<string, string>> = {
  stop: 'it was complete',
  length: 'the limit of tokens was reached',
  time: 'the time was up',
  cancelled: 'it was cancelled',
  grammar: 'the grammar left no continuation',
};

export const NO_TRACE =
  '<h1>Trace</h1><p>There is no completion yet. Type in a file until ghost text appears; this page then shows where each of its tokens came from.</p>';

export function tracePage(trace: Trace): string {
  const used = new Set(
    trace.passes.flatMap(({ sources, rejected }) => [...sources, ...(rejected.length > 0 ? ['rejected'] : [])]),
  );
  const legend = Object.entries(KINDS)
    .filter(([kind]) => used.has(kind))
    .map(([kind, what]) => `<li>${token(kind, what)}</li>`);
  const share =
    trace.drafted > 0 ? `${trace.accepted} of ${trace.drafted} drafted tokens accepted` : 'nothing was drafted';
  const facts: [string, string][] = [
    ['File', decodeURIComponent(trace.document.split('/').pop() ?? '')],
    ['Target', modelName(trace.target)],
    ['Draft', trace.draft],
    ['Grammar', trace.grammar],
    ['Prompt', `${trace.prefill_tokens} tokens read, ${trace.reused_tokens} known already`],
    ...(trace.backed_up > 0
      ? [['Began', `${trace.backed_up} characters before the cursor, so that they may be parts of longer tokens`] as [string, string]]
      : []),
    ['Ended because', REASONS[trace.finish_reason] ?? trace.finish_reason],
  ];
  return `<h1>Where each token came from</h1>
<p>${trace.tokens} tokens in ${trace.target_calls} passes of the target; ${share}.</p>
${trace.nothing ? `<p><strong>Nothing of it was shown.</strong> ${escape(trace.nothing)}.</p>` : ''}
<ul class="legend" aria-label="Legend">${legend.join('')}</ul>
<pre class="text" tabindex="0" aria-label="The completion">${trace.passes.map(written).join('')}</pre>
<h2>Time</h2>
${times(trace.timings_ms)}
<h2>Pass by pass</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Passes"><table>
<thead><tr><th scope="col">Pass</th><th scope="col">ms</th><th scope="col">Proposed</th><th scope="col">Accepted</th><th scope="col">Tokens</th></tr></thead>
<tbody>${trace.passes.map(row).join('')}</tbody>
</table></div>
<h2>Circumstances</h2>
<dl>${facts.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join('')}</dl>`;
}

function written(pass: Pass): string {
  return pieces(pass, (text) => escape(text).replace(/\n/g, '<i>⏎</i>\n'));
}

function row(pass: Pass, index: number): string {
  const accepted = pass.sources.filter((source) => source !== 'target').length;
  const shown = pieces(pass, (text) => escape(text).replace(/\n/g, '⏎'));
  return `<tr><td>${index + 1}</td><td>${pass.ms.toFixed(1)}</td><td>${accepted + pass.rejected.length}</td><td>${accepted}</td><td class="code">${shown}</td></tr>`;
}

/** The tokens of a pass; what was rejected stands where it was proposed, before the target's own token. */
function pieces(pass: Pass, show: (text: string) => string): string {
  const tokens = pass.tokens.map((text, index) => ({ kind: pass.sources[index] ?? 'target', text }));
  const accepted = tokens.filter(({ kind }) => kind !== 'target');
  const rejected = pass.rejected.map((text) => ({ kind: 'rejected', text: text.replace(/\n/g, '⏎') }));
  const own = tokens.filter(({ kind }) => kind === 'target');
  return [...accepted, ...rejected, ...own]
    .filter(({ text }) => text !== '')
    .map(({ kind, text }) => token(kind, show(text), true))
    .join('');
}

function token(kind: string, content: string, isHtml = false): string {
  const tag = kind === 'rejected' ? 'del' : 'span';
  return `<${tag} class="token ${kind in KINDS ? kind : 'model'}" title="${escape(KINDS[kind] ?? kind)}">${isHtml ? content : escape(content)}</${tag}>`;
}

function times(timings: Readonly<Record<string, number>>): string {
  const total = timings['total'] ?? 0;
  const names: Readonly<Record<string, string>> = {
    prefill: 'reading the prompt',
    draft: 'drafting',
    verify: 'verifying',
    grammar: 'of that, the grammar',
  };
  const rows = Object.entries(names).map(([key, name]) => {
    const ms = timings[key] ?? 0;
    return `<tr><th scope="row">${name}</th><td>${ms.toFixed(1)} ms</td><td><meter min="0" max="${Math.max(total, 0.001)}" value="${ms}"></meter></td></tr>`;
  });
  return `<table class="times"><tbody>${rows.join('')}<tr><th scope="row">all</th><td>${total.toFixed(1)} ms</td><td></td></tr></tbody></table>`;
}
