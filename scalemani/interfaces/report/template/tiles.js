"use strict";
// Tiles: every point of the run counted, on grids of which each has half the tiles a side of the one before.
const TILE_FAINTEST = 0.25, TILE_FULLEST = 0.8; // opacity of a tile with one point, and with the most

class Tiles {
  static async read(description) {
    const tiles = new Tiles(), { side, resolutions } = description.tiles;
    const counts = joinPlanes(await readBytes("counts"), side * side, 4)[0];
    tiles.grids = [{ side, counts, start: 0 }];
    for (let start = side * side; tiles.grids.length < resolutions;) {
      const finer = tiles.grids[tiles.grids.length - 1], half = finer.side >> 1, sums = new Uint32Array(half * half);
      for (let tile = 0; tile < finer.counts.length; tile++) {
        const row = (tile / finer.side) >> 1, column = (tile % finer.side) >> 1;
        sums[row * half + column] += finer.counts[tile];
      }
      tiles.grids.push({ side: half, counts: sums, start });
      start += half * half;
    }
    const total = tiles.grids.reduce((sum, grid) => sum + grid.counts.length, 0);
    tiles.codes = [];
    for (let number = 0; number < description.columns.length; number++) {
      const bytes = await readBytes(`tiles-${number}`);
      tiles.codes.push(joinPlanes(bytes, total, bytes.length / total)[0]);
    }
    for (const grid of tiles.grids) grid.most = grid.counts.reduce((most, count) => Math.max(most, count), 1);
    tiles.counted = counts.reduce((sum, count) => sum + count, 0);
    tiles.mean = tiles.counted / Math.max(1, counts.reduce((sum, count) => sum + Number(count > 0), 0)); // of those with points
    return tiles;
  }

  // The texels of a grid, colours times opacity, for a column of codes (or none), its colours, and which are shown.
  texels(grid, column, colours, shown) {
    const codes = column < 0 ? null : this.codes[column], texels = new Uint8Array(4 * grid.counts.length);
    const inks = colours.map((colour) => parseInt(colour.slice(1), 16));
    const scale = (TILE_FULLEST - TILE_FAINTEST) / Math.max(Math.log(grid.most), 1e-9);
    for (let tile = 0; tile < grid.counts.length; tile++) {
      const count = grid.counts[tile], code = codes ? codes[grid.start + tile] : 0;
      if (!count || !shown[code]) continue;
      const alpha = TILE_FAINTEST + scale * Math.log(count), ink = inks[code];
      texels[4 * tile] = (ink >> 16) * alpha;
      texels[4 * tile + 1] = ((ink >> 8) & 255) * alpha;
      texels[4 * tile + 2] = (ink & 255) * alpha;
      texels[4 * tile + 3] = 255 * alpha;
    }
    return texels;
  }

  // The finest tile at a place, from 0 to 1 along each axis: its count, and its code by a column; null outside.
  at(x, y, column) {
    const { side, counts } = this.grids[0];
    if (x < 0 || y < 0 || x > 1 || y > 1) return null;
    const tile = Math.min(side - 1, Math.floor(y * side)) * side + Math.min(side - 1, Math.floor(x * side));
    return { count: counts[tile], code: column < 0 ? null : this.codes[column][tile] };
  }

  // How many points the finest tiles hold whose middles are in a box.
  within(x0, y0, x1, y1) {
    const { side, counts } = this.grids[0];
    const first = (low) => Math.max(0, Math.ceil(low * side - 0.5)), last = (high) => Math.min(side - 1, Math.floor(high * side - 0.5));
    let sum = 0;
    for (let row = first(y0); row <= last(y1); row++) {
      for (let column = first(x0); column <= last(x1); column++) sum += counts[row * side + column];
    }
    return sum;
  }
}
