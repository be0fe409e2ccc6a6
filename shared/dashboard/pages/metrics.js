// Numbers from a local server's metrics, in Prometheus' text format.

const LATENESS = 'tickover_deadline_lateness_seconds_bucket';
const ENDED = 'tickover_tasks_ended_total';
const SHARES = [50, 99];

/** The tasks that ended by queue, and how late deadlines fired; `null` without metrics. */
export function metrics(scraped) {
  if (!scraped) return null;
  const endedByQueue = new Map();
  const buckets = new Map();
  for (const row of scraped.split('\n')) {
    const [, name, labels, value] = row.match(/^(\w+)\{(.*)\} ([0-9.e+-]+)$/) ?? [];
    const label = (key) => labels.match(new RegExp(`(?:^|,)${key}="((?:[^"\\\\]|\\\\.)*)"`))?.[1];
    if (name === ENDED) {
      const queue = label('queue');
      endedByQueue.set(queue, (endedByQueue.get(queue) ?? 0) + Number(value));
    } else if (name === LATENESS) {
      const bound = label('le') === '+Inf' ? Infinity : Number(label('le'));
      buckets.set(bound, (buckets.get(bound) ?? 0) + Number(value));
    }
  }
  const bounds = [...buckets].sort(([one], [other]) => one - other);
  const count = bounds.at(-1)?.[1] ?? 0;
  const within = SHARES.map((share) => [share, bounds.find(([, below]) => below >= (count * share) / 100)?.[0]]);
  return { endedByQueue, late: { count, within } };
}
