// Calls of the HTTP API, with addresses relative to this page. An answer is as the OpenAPI document says.

import { learn } from './time.js';

/** The API refused a call: problem details (RFC 9457). */
export class Problem extends Error {
  constructor(status, fields) {
    super(fields.detail || fields.title || `HTTP status ${status}`);
    this.status = status;
    this.title = fields.title || `HTTP status ${status}`;
    this.detail = fields.detail ?? '';
    this.code = fields.code ?? `http_${status}`;
    this.field = fields.field;
  }

  /** Whether the same call may succeed soon. */
  get isTransient() {
    return [408, 429, 500, 502, 503, 504].includes(this.status);
  }
}

/** No answer came. */
export class Unreachable extends Error {}

/** What the server says about itself; the crate's `Settings`. */
export let settings = { read_only: true, command: ['tickover'], place: null, metrics: false, refresh_ms: 2000, version: '' };

export async function loadSettings() {
  settings = await answer('GET', new URL('dashboard/settings.json', document.baseURI));
}

/** Keeps each number of a payload as it was written, where the browser can. */
function exact(_key, value, context) {
  const isOther = typeof value === 'number' && context?.source !== undefined && String(value) !== context.source;
  return isOther && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

/** Reads JSON; the numbers of payloads stay as they were written. */
export const parse = (text) => JSON.parse(text, exact);

async function answer(method, url, body, signal) {
  const headers = method === 'GET' || method === 'DELETE' ? {} : { 'content-type': 'application/json' };
  const sentAt = Date.now();
  let response;
  let text;
  try {
    response = await fetch(url, { method, headers, body, signal, cache: 'no-store' });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(error.message);
  }
  learn(response.headers.get('date'), sentAt, Date.now());
  let json = {};
  try {
    json = parse(text);
  } catch {
    if (response.ok) throw new Problem(response.status, { title: 'Not an answer of Tickover', detail: text.slice(0, 200), code: 'not_json' });
    json = { detail: text.slice(0, 200) };
  }
  // A gateway or a proxy before the system has its own form.
  if (!response.ok) throw new Problem(response.status, json.title || json.detail ? json : { ...json, detail: json.message ?? json.Message ?? text.slice(0, 200) });
  return json;
}

function url(path, query) {
  if (path.some((part) => part === '.' || part === '..')) {
    // Browsers take these as steps in the path, encoded or not.
    throw new Problem(0, { title: 'No such address', detail: 'A browser can’t call an address with the id “.” or “..”.', code: 'unaddressable' });
  }
  const address = new URL(`v1/${path.map(encodeURIComponent).join('/')}`, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== '') address.searchParams.set(name, value);
  }
  return address;
}

/** A key of flow control as a part of a path, which stays the same if a gateway decodes it. */
export function keyPart(key) {
  const dots = /^\.+$/.test(key);
  return [...new TextEncoder().encode(key)].map((byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9_:@-]/.test(char) || (char === '.' && !dots) ? char : `~${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

let why = null;
/** Makes a call that changes something, with the reason for it. The call begins at once. */
export function because(reason, call) {
  why = reason;
  try {
    return call();
  } finally {
    why = null;
  }
}

export const get = (path, query, signal) => answer('GET', url(path, query), undefined, signal);
export const post = (path, body, query = {}) => answer('POST', url(path, { reason: why, ...query }), body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
export const put = (path, body) => answer('PUT', url(path, { reason: why }), body);
export const remove = (path) => answer('DELETE', url(path, { reason: why }));

/** The metrics of a local server, as their text; `null` where there are none. */
export async function scrape(signal) {
  if (!settings.metrics) return null;
  try {
    const response = await fetch(new URL('metrics', document.baseURI), { signal, cache: 'no-store' });
    return response.ok ? await response.text() : null;
  } catch (error) {
    if (signal?.aborted) throw error;
    return null;
  }
}
