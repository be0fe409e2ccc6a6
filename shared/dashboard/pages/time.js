// Instants and lengths of time. The server's clock counts: a browser's may be off.

const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]];

/** Between which bounds the server's clock is ahead of this one, in milliseconds. */
let bounds = [-Infinity, Infinity];

/** Learns from an answer: its Date (in whole seconds) was made between these two instants of this clock. */
export function learn(dateHeader, sentAt, receivedAt) {
  const date = Date.parse(dateHeader ?? '');
  if (Number.isNaN(date)) return;
  const found = [date - receivedAt, date + 1000 - sentAt];
  const both = [Math.max(bounds[0], found[0]), Math.min(bounds[1], found[1])];
  // Bounds that contradict each other: a clock was set.
  bounds = both[0] <= both[1] ? both : found;
}

/** How far the server's clock is ahead, in milliseconds; 0 if they may agree. */
export function skew() {
  const [least, most] = bounds;
  return least <= 0 && most >= 0 ? 0 : (least + most) / 2;
}

/** The server's time, in milliseconds since 1970. */
export function now() {
  return Date.now() + skew();
}

export const millis = (instant) => Date.parse(instant);

/** A length with its two largest units: `1 h 30 min`, `450 ms`. */
export function length(ms) {
  const sign = ms < 0 ? '−' : '';
  let rest = Math.round(Math.abs(ms));
  if (rest < 1000) return `${sign}${rest} ms`;
  if (rest < 10_000) return `${sign}${(rest / 1000).toFixed(1).replace('.0', '')} s`;
  rest = Math.round(rest / 1000) * 1000;
  const parts = [];
  for (const [name, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return sign + parts.join(' ');
}

/** `in 3 s`, `5 min ago`, `now`. */
export function distance(ms) {
  if (Math.abs(ms) < 500) return 'now';
  const rounded = Math.abs(ms) < 60_000 ? Math.round(ms / 1000) * 1000 : ms;
  return rounded > 0 ? `in ${length(rounded)}` : `${length(-rounded)} ago`;
}

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' };
const DAY = { year: 'numeric', month: 'short', day: 'numeric' };
/** Under this name the browser keeps whether times are in UTC. */
const KEY = 'tickover.utc';
let formats = {};

/** Whether times are shown in UTC. */
export const isUtc = () => formats.zone === 'UTC';

/** Shows times in UTC, or in this browser's zone. */
export function setUtc(value) {
  const zone = value ? 'UTC' : undefined;
  const format = (parts) => new Intl.DateTimeFormat(undefined, { ...parts, timeZone: zone });
  formats = { zone, long: format({ ...DAY, ...CLOCK, ...(value && { timeZoneName: 'short' }) }), day: format(DAY), clock: format(CLOCK) };
  try {
    localStorage.setItem(KEY, String(value));
  } catch {
    // Without storage it isn't remembered.
  }
}

function wasUtc() {
  try {
    return localStorage.getItem(KEY) === 'true';
  } catch {
    return false;
  }
}
setUtc(wasUtc());

/** An instant in the zone that is chosen; the day only if it isn't today. */
export function local(ms) {
  return formats.day.format(ms) === formats.day.format(now()) ? formats.clock.format(ms) : formats.long.format(ms);
}

const localLong = (ms) => formats.long.format(ms);
export const utc = (ms) => `${new Date(ms).toISOString()} (UTC)`;

function element(ms, text) {
  const time = document.createElement('time');
  time.dateTime = new Date(ms).toISOString();
  time.title = utc(ms);
  time.textContent = text;
  return time;
}

/** An instant in the zone that is chosen, with UTC in its title. */
export const at = (instant) => (instant ? element(millis(instant), localLong(millis(instant))) : null);

/** How far away an instant is. It is kept up to date by [`refresh`]. */
export function near(instant) {
  if (!instant) return null;
  const time = element(millis(instant), distance(millis(instant) - now()));
  time.title = `${localLong(millis(instant))}, ${utc(millis(instant))}`;
  time.dataset.near = '';
  return time;
}

/** An instant and how far away it is. */
export const both = (instant) => (instant ? [at(instant), ' (', near(instant), ')'] : null);

/** Brings all distances on the page up to date. */
export function refresh() {
  for (const time of document.querySelectorAll('time[data-near]')) {
    const text = distance(Date.parse(time.dateTime) - now());
    if (time.textContent !== text) time.textContent = text;
  }
}
