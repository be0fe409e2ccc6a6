// Makes one lane of a large fan-out: the steps or children that one call has started under one name, numbered.

import { millis } from '../time.js';

/** From how many members on a fan-out is one lane. */
const FOLDED_FROM = 10;
const MEMBER = /^(.+)\[\d+\]$/;
/** The order of its members below it: what failed, what is under way, what has ended. */
const RANKS = [['failed', 'exhausted', 'timed_out', 'deadline_exceeded', 'result_expired'], ['retrying'], ['open', 'cancel_requested', ''], ['cancelled', 'abandoned', 'terminated'], ['completed']];

const rank = ({ status }) => RANKS.findIndex((statuses) => statuses.includes(status));

/** The key of the fan-out of which the lane with this key is a member, if it is one. */
export const fanOf = (key) => (MEMBER.test(key ?? '') ? `${key.match(MEMBER)[1]}[]` : null);

/** The lanes, with one for each large fan-out. The members of the one with the key `opened` follow it, failed ones first. */
export function folded(lanes, opened) {
  const fans = new Map();
  for (const lane of lanes) {
    const key = fanOf(lane.key);
    if (key && !fans.has(key)) fans.set(key, []);
    if (key) fans.get(key).push(lane);
  }
  return lanes.flatMap((lane) => {
    const key = fanOf(lane.key);
    const members = fans.get(key) ?? [];
    if (members.length < FOLDED_FROM) return [lane];
    if (members[0] !== lane) return [];
    return key === opened ? [fan(key, members, true), ...members.toSorted((one, other) => rank(one) - rank(other))] : [fan(key, members, false)];
  });
}

/** The lane that stands for all members: where some of them run, and where some have failed. */
function fan(key, members, isOpened) {
  const counts = new Map();
  for (const { status } of members.toSorted((one, other) => rank(one) - rank(other))) counts.set(status, (counts.get(status) ?? 0) + 1);
  const status = [...counts].map(([word, count]) => `${count.toLocaleString()} ${word.replaceAll('_', ' ') || 'begun'}`).join(', ');
  const name = `${members[0].name.match(MEMBER)[1]} × ${members.length.toLocaleString()}`;
  const entry = { kind: 'fan_out', name: `${name}: ${status}`, at: members[0].entries[0].at };
  const failed = members.filter((one) => rank(one) === 0);
  return {
    key, kind: members[0].kind, name, status, isOpened, entries: [], bars: joined(members, entry),
    marks: failed.map((one) => ({ at: one.bars.at(-1)?.to ?? millis(one.entries.at(-1).at), tone: 'failed', entry })),
  };
}

/** The bars of all members, those that overlap as one. */
function joined(members, entry) {
  const bars = members.flatMap((one) => one.bars).sort((one, other) => one.from - other.from);
  const all = [];
  for (const bar of bars) {
    const last = all.at(-1);
    if (last && bar.from <= last.to) {
      last.to = Math.max(last.to, bar.to);
      last.isOpen ||= bar.isOpen;
      if (last.isOpen) last.tone = 'remote';
    } else {
      all.push({ from: bar.from, to: bar.to, isOpen: bar.isOpen, busy: true, tone: bar.isOpen ? 'remote' : 'done', entry });
    }
  }
  return all;
}
