// The time axis: from instants to positions from 0 to 1, with long gaps folded to a small width.

/** A gap is folded if it takes more than this share of what is left. */
const SHARE = 0.15;
/** Shorter gaps are never folded, in milliseconds. */
const GAP_MIN = 1000;
const FOLDS_MAX = 12;
/** The width of a fold, as a share of the axis. */
const FOLD_WIDTH = 0.05;

export class Scale {
  /** An axis from `from` to `to`, in milliseconds. `moments` are the instants at which something happens, `busy` the times
   * in which work runs: only what is between them is folded. */
  constructor(from, to, moments, busy, isFolding) {
    this.from = from;
    this.to = Math.max(to, from + 1);
    this.folds = isFolding ? this.#gaps(moments, busy) : [];
    this.pieces = this.#layOut();
  }

  #gaps(moments, busy) {
    const taken = [...busy.map(([from, to]) => [from, to]), ...moments.map((at) => [at, at]), [this.from, this.from], [this.to, this.to]];
    taken.sort((one, other) => one[0] - other[0]);
    const gaps = [];
    let end = this.from;
    for (const [from, to] of taken) {
      if (from - end >= GAP_MIN) gaps.push([end, Math.min(from, this.to)]);
      end = Math.max(end, to);
    }
    gaps.sort((one, other) => other[1] - other[0] - (one[1] - one[0]));
    let left = this.to - this.from;
    const folds = [];
    for (const gap of gaps) {
      const ms = gap[1] - gap[0];
      // Something is left to be shown: a timeline of gaps alone keeps its shortest ones.
      if (ms < left * SHARE || left - ms < 1 || folds.length === FOLDS_MAX) break;
      folds.push(gap);
      left -= ms;
    }
    return folds.sort((one, other) => one[0] - other[0]);
  }

  /** The pieces of the axis in order, each with its times and its positions. */
  #layOut() {
    const folded = this.folds.reduce((sum, [from, to]) => sum + to - from, 0);
    const plain = this.to - this.from - folded;
    const width = this.folds.length === 0 ? 0 : plain > 0 ? FOLD_WIDTH : 1 / this.folds.length;
    const rate = plain > 0 ? (1 - width * this.folds.length) / plain : 0;
    const pieces = [];
    let [at, position] = [this.from, 0];
    const add = (to, size, isFold) => {
      pieces.push({ from: at, to, start: position, end: position + size, isFold });
      [at, position] = [to, position + size];
    };
    for (const [from, to] of this.folds) {
      if (from > at) add(from, (from - at) * rate, false);
      add(to, width, true);
    }
    if (at < this.to) add(this.to, (this.to - at) * rate, false);
    return pieces;
  }

  /** The position of an instant, from 0 to 1. */
  position(at) {
    const piece = this.pieces.find((one) => at <= one.to) ?? this.pieces.at(-1);
    const share = (Math.max(at, piece.from) - piece.from) / (piece.to - piece.from || 1);
    return piece.start + Math.min(share, 1) * (piece.end - piece.start);
  }

  /** The instant at a position. */
  instant(position) {
    const piece = this.pieces.find((one) => position <= one.end) ?? this.pieces.at(-1);
    const share = (position - piece.start) / (piece.end - piece.start || 1);
    return piece.from + Math.min(Math.max(share, 0), 1) * (piece.to - piece.from);
  }
}
