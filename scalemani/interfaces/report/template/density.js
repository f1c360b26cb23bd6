"use strict";
// Points of a view, counted by pixel: where they are dense the map draws averages over enough of them, elsewhere discs.
// Values are averaged; of classes, whose averages would look like others, a pixel shows one.
// That is how `scalemani plot` shades its pixels, and what the numbers in `shading` are those of.
const CELL_LEVEL = 4; // the coarsest of the grids, of which each has half the pixels a side of the one before
const USUAL_LEVEL = 2; // of the widest averages, and whose pixels give the density of the densest places
const MOST_ON_PIXEL = 60000; // more are not counted: 16-bit floats, which textures hold, end there
const SPLINE_AREA = 5.2; // pixels of a level that a cubic B-spline over it averages over: 4 pi (1 / 12 + 1 / 3)
const BLENDED_AREA = 3.1; // that a mean of the nearest 2 x 2 averages over: 4 pi (1 / 12 + 1 / 6)
const OWN_SHARE = 0.22; // of a pixel in the spline at its corner, where it has least

// Points a pixel, on grids of which each has the means of 2 x 2 pixels of the one before; and sums of their red, green and
// blue, or where these are not to be averaged the colour of the first point in the finest pixel.
class Density {
  constructor(width, height) {
    this.width = padded(width);
    this.height = padded(height);
    this.levels = Array.from({ length: CELL_LEVEL + 1 }, (_, level) => {
      const across = this.width >> level, up = this.height >> level;
      return { width: across, height: up, sums: new Float32Array(4 * across * up) };
    });
  }

  holds(width, height) { return padded(width) === this.width && padded(height) === this.height; }

  clear(averaged) {
    this.levels[0].sums.fill(0);
    this.count = 0;
    this.averaged = averaged;
  }

  // Count a point in a pixel, from the lower left corner: its colour is that of `inks` from `ink` on, from 0 to 1.
  add(column, row, inks, ink) {
    const sums = this.levels[0].sums, at = 4 * (row * this.width + column);
    this.count++;
    if (sums[at + 3] >= MOST_ON_PIXEL) return;
    if (this.averaged || !sums[at + 3]) {
      sums[at] += inks[ink];
      sums[at + 1] += inks[ink + 1];
      sums[at + 2] += inks[ink + 2];
    }
    sums[at + 3]++;
  }

  // Fill the levels after the first, down to one.
  halve(deepest) {
    for (let level = 1; level <= deepest; level++) {
      const { height, sums } = this.levels[level], finer = this.levels[level - 1].sums, line = 4 * this.levels[level - 1].width;
      for (let row = 0, to = 0; row < height; row++) {
        for (let from = 2 * row * line, end = from + line; from < end; from += 4) {
          for (const last = from + 4; from < last; from++, to++) {
            sums[to] = (finer[from] + finer[from + 4] + finer[from + line] + finer[from + line + 4]) / 4;
          }
        }
      }
    }
  }

  // The density that so many percent of the filled pixels of a level are not above.
  highest(percent, level) {
    const { sums } = this.levels[level], filled = new Float32Array(sums.length / 4);
    let count = 0;
    for (let at = 3; at < sums.length; at += 4) if (sums[at]) filled[count++] = sums[at];
    return count ? filled.subarray(0, count).sort()[Math.round(((count - 1) * percent) / 100)] : 0;
  }

  // The pixels of the coarsest level, across and up, that hold points or lie next to one that does.
  filledCells() {
    const { width, height, sums } = this.levels[CELL_LEVEL], near = new Uint8Array(width * height), cells = [];
    for (let cell = 0; cell < near.length; cell++) {
      if (!sums[4 * cell + 3]) continue;
      const column = cell % width, row = (cell - column) / width;
      for (let y = Math.max(0, row - 1); y <= Math.min(height - 1, row + 1); y++) {
        for (let x = Math.max(0, column - 1); x <= Math.min(width - 1, column + 1); x++) near[y * width + x] = 1;
      }
    }
    near.forEach((filled, cell) => { if (filled) cells.push(cell % width, Math.floor(cell / width)); });
    return Uint16Array.from(cells);
  }

  // Points that a spline of a level is sure to average over at any place of a pixel.
  least(column, row, level) {
    const { width, sums } = this.levels[level];
    return OWN_SHARE * SPLINE_AREA * 4 ** level * sums[4 * ((row >> level) * width + (column >> level)) + 3];
  }
}

// As many pixels or a few more, so that every level has whole ones.
function padded(side) { return Math.ceil(side / 2 ** CELL_LEVEL) * 2 ** CELL_LEVEL; }

// The radius in pixels at which so many points would cover a small share of a canvas.
function discRadius(count, pixels, { covered, smallest, largest }) {
  return Math.min(largest, Math.max(smallest, Math.sqrt((covered * pixels) / (Math.PI * Math.max(count, 1)))));
}

// The opacity of a lone point: the more points, the fainter.
function loneOpacity(count, { faintest, fullest }) {
  return faintest + (fullest - faintest) * Math.min(1, Math.max(0, (7 - Math.log10(Math.max(count, 1))) / 3));
}
