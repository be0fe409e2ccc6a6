// Two runs side by side: what each step did in both.

import { get } from '../api.js';
import { badge, h, link, replace, section, table } from '../dom.js';
import { refused } from '../problem.js';
import { at, length, millis, now } from '../time.js';
import { lanesOf } from '../timeline/lanes.js';
import { errorText } from '../words.js';

/** How many characters of a result are shown. */
const SHOWN = 200;

export function show(page) {
  const { one, other, run, with: second } = page.query;
  let isWhole = page.query.all === '1';
  const side = async (id, number, signal) => {
    const [{ execution }, { entries }] = await Promise.all([get(['executions', id], { run: number }, signal), get(['executions', id, 'timeline'], { run: number }, signal)]);
    return { execution, entries };
  };
  const load = (signal) => Promise.all([side(one, run, signal), side(other ?? one, second, signal)]);
  let known = null;
  const draw = (data) => {
    if (refused(page.root, data)) return;
    known = data;
    const [first, last] = data.map(({ entries }) => new Map(lanesOf(entries, now()).filter((lane) => ['step', 'child', 'timer', 'value', 'event'].includes(lane.kind)).map((lane) => [lane.key, lane])));
    const keys = [...new Set([...first.keys(), ...last.keys()])];
    const pairs = keys.map((key) => [key, first.get(key), last.get(key)]);
    const differing = pairs.filter(([, before, after]) => said(before) !== said(after));
    const shown = isWhole ? pairs : differing;
    const all = h('input', { type: 'checkbox', id: 'compare-all', checked: isWhole, onchange: () => { isWhole = all.checked; page.keep({ all: isWhole ? '1' : null }); draw(known); } });
    const name = ({ execution }) => `${execution.id}, run ${execution.run}`;
    const inputs = data.map(({ execution }) => JSON.stringify(execution.input) ?? '');
    replace(page.root,
      section('The two runs', table('The two runs', ['Run', 'Status', 'Started', 'Took', 'Input', 'End'], data.map((one) => whole(one)))),
      inputs[0] === inputs[1] ? h('p', { class: 'quiet' }, 'Both have the same input.') : h('p', { class: 'banner' }, 'Their inputs differ.'),
      section('What they did', h('p', { class: 'tools' }, h('label', { for: 'compare-all' }, all, ` Also the ${pairs.length - differing.length} that are the same`)),
        shown.length === 0 ? h('p', { class: 'quiet' }, 'Each step did the same.') : table('What they did', ['What', name(data[0]), name(data[1])], shown.map(([key, before, after]) => [key, cell(before), cell(after)]))));
  };
  page.live(load, draw, 10_000);
}

function whole({ execution }) {
  const began = execution.run_started_at ?? execution.created_at;
  return [
    link(['executions', execution.id], `${execution.id}, run ${execution.run}`, {}), badge(execution.status), at(began), execution.ended_at ? length(millis(execution.ended_at) - millis(began)) : '',
    h('code', {}, cut(JSON.stringify(execution.input) ?? '')), execution.error ? h('span', { class: 'error' }, errorText(execution.error)) : h('code', {}, cut(JSON.stringify(execution.output) ?? '')),
  ];
}

/** What a lane came to, as text: its last result or error. */
function result(lane) {
  const last = lane.entries.findLast((entry) => entry.output !== undefined || entry.step_error !== undefined || entry.error || entry.output_bytes);
  if (!last) return '';
  if (last.error) return errorText(last.error);
  return last.output_bytes ? `${last.output_bytes.toLocaleString()} bytes` : JSON.stringify(last.step_error ?? last.output);
}

/** What of a lane is compared: not its instants. */
const said = (lane) => (lane ? `${lane.status} ${result(lane)}` : '');

function cell(lane) {
  if (!lane) return h('span', { class: 'quiet' }, 'not there');
  const [from, to] = [lane.bars[0]?.from, lane.bars.at(-1)?.to];
  const attempts = Math.max(...lane.entries.map((entry) => entry.attempts ?? entry.attempt ?? 0));
  return [badge(lane.status || 'open'), attempts > 1 ? ` ${attempts} attempts` : '', to > from ? ` ${length(to - from)}` : '', h('div', {}, h('code', {}, cut(result(lane))))];
}

const cut = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
