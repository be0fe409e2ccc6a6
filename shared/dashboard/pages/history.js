// The last day as small charts: a bar for each half an hour.

import { Problem, get } from './api.js';
import { command } from './actions.js';
import { commands } from './commands.js';
import { address, h, section } from './dom.js';
import { length, local, millis, now } from './time.js';

const DAY_MS = 86_400_000;
const BARS = 48;
const BAR_MS = DAY_MS / BARS;
/** How often the day is asked for, in milliseconds. */
const EVERY_MS = 60_000;

/** How many parts at the end are asked for again: CloudWatch fills the last minutes late. */
const LATE_PARTS = 4;

/** What a bar without data means on one machine. */
const OFF = 'the server didn’t run';

const known = new Map();

/** The last day of a queue, or of all: its parts, what is to be known of them, and a refusal. No parts, where the system keeps
 * none. It is asked for once a minute, and only the end of what is known again. */
export async function history(queue, signal) {
  const key = queue ?? '';
  const kept = known.get(key);
  if (kept && performance.now() < kept.at + EVERY_MS) return kept.day;
  const from = kept?.day.parts?.at(-LATE_PARTS)?.at;
  let day = { parts: null };
  try {
    day = await get(['history'], { queue, from }, signal);
    if (from) day.parts = [...kept.day.parts.filter(({ at }) => at < from && millis(at) > now() - DAY_MS), ...day.parts];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // The rest of the view doesn't need it.
    if (![404, 501].includes(error.status)) day = { ...kept?.day, refusal: error };
  }
  known.set(key, { at: performance.now(), day });
  return day;
}

const CHARTS = [
  ['Completed', 'completed', 'sum', String],
  ['Failed', 'failed', 'sum', String],
  ['Latest start', 'late_ms', 'max', length],
  ['Waiting', 'depth', 'max', String],
  ['Oldest waited', 'oldest_ms', 'max', length],
  ['With workers', 'running', 'max', String],
];

/** The charts of a day. Each bar with failures is a link to them. */
export function day({ parts, note, refusal }, queue) {
  const name = queue ? `The last day of ${queue}` : 'The last day';
  const refused = refusal ? h('div', { class: 'problem' }, h('p', {}, h('strong', {}, 'The last day can’t be read.')), h('p', {}, `${refusal.title}: ${refusal.message}`)) : null;
  if (!parts) return section(name, refused ?? h('p', { class: 'quiet' }, 'This system keeps no history at this address. A deployment’s is in CloudWatch, and shown by ', h('code', {}, 'tickover --stack NAME dashboard')));
  const from = (Math.floor(now() / BAR_MS) + 1 - BARS) * BAR_MS;
  const bars = Array.from({ length: BARS }, () => []);
  for (const part of parts) bars[Math.floor((millis(part.at) - from) / BAR_MS)]?.push(part);
  const charts = CHARTS.map(([name, field, how, text]) => {
    const values = bars.map((all) => (how === 'sum' ? all.reduce((sum, part) => sum + part[field], 0) : Math.max(0, ...all.map((part) => part[field]))));
    return chart(name, values, bars, from, how, text, note ? 'no data' : OFF);
  });
  const fails = bars.map((all, place) => [from + place * BAR_MS, all.reduce((sum, part) => sum + part.failed, 0)]).filter(([, count]) => count > 0);
  const worst = [...fails].sort(([, one], [, other]) => other - one)[0];
  const text = worst ? ['Most failed ', h('a', { href: failuresOf(worst[0]) }, `from ${clock(worst[0])} to ${clock(worst[0] + BAR_MS)}: ${worst[1]}`), '. '] : 'It has no failures. ';
  return section(name, refused, h('div', { class: 'charts' }, charts),
    h('p', { class: 'quiet' }, text, note ?? `Gray: ${OFF}.`, ' The same in a shell: ', command(commands.history(queue))));
}

const clock = (ms) => local(ms).replace(/(\d\d:\d\d):\d\d/, '$1');
const failuresOf = (ms) => address(['failures'], { from: new Date(ms).toISOString(), before: new Date(ms + BAR_MS).toISOString() });

function chart(name, values, bars, from, how, text, gap) {
  const most = Math.max(...values, 1);
  const all = how === 'sum' ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
  const when = values.indexOf(Math.max(...values));
  const label = `${name}: ${how === 'sum' ? 'in all' : 'at most'} ${text(all)}${all > 0 ? `, most from ${clock(from + when * BAR_MS)}: ${text(values[when])}` : ''}`;
  const svg = node('svg', { viewBox: `0 0 ${BARS * 4} 40`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none', class: name === 'Failed' ? 'fails' : '' });
  values.forEach((value, place) => {
    const height = value > 0 ? Math.max((value / most) * 38, 2) : 0;
    const bar = node('rect', { x: place * 4, width: 3, y: bars[place].length > 0 ? 40 - height : 38, height: bars[place].length > 0 ? height : 2, class: bars[place].length > 0 ? '' : 'off' });
    const title = node('title', {});
    title.textContent = `${clock(from + place * BAR_MS)}: ${bars[place].length > 0 ? text(value) : gap}`;
    bar.append(title);
    svg.append(bar);
  });
  return h('figure', {}, h('figcaption', {}, name, ' ', h('b', {}, text(all))), svg);
}

function node(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) if (value !== '') element.setAttribute(key, value);
  return element;
}
