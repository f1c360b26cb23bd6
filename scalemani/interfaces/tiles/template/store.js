"use strict";
// Tiles: which there are, and their content, fetched when it is first needed. Files are gzip of planes of bytes.
const SIDE = 256, PLACES = 65536;
const LEAF = 1, INNER = 2; // kinds of tiles; 0 is one without points
const NOWHERE = 0xffffffff; // in the index, of a row that is not in the map
const MOST_HELD = 384; // tiles in memory, some 200 MB
const MOST_REQUESTS = 8; // at once
const GZIP = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];

// A server that names the encoding of files has the browser unpack them.
async function unzipped(bytes) {
  if (GZIP.some((byte, place) => bytes[place] !== byte)) return bytes;
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

function inlineBytes(name) {
  const text = atob(document.getElementById(`array-${name}`).textContent);
  return unzipped(Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
}

async function fetchedBytes(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: the server says ${answer.status}`);
  return unzipped(new Uint8Array(await answer.arrayBuffer()));
}

// Arrays of integers of so many bytes each, from planes of their first, second, ... bytes.
function joinPlanes(bytes, sizes) {
  const count = bytes.length / sizes.reduce((sum, size) => sum + size, 0);
  let from = 0;
  return sizes.map((size) => {
    const values = new { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[size](count);
    for (let plane = 0; plane < size; plane++, from += count) {
      const unit = 2 ** (8 * plane);
      for (let i = 0; i < count; i++) values[i] += bytes[from + i] * unit;
    }
    return values;
  });
}

class Store {
  static async read(description) {
    const store = new Store(), first = await inlineBytes("first");
    Object.assign(store, { description, leaves: [], held: new Set(), wanted: [], requests: 0, blocks: new Map() });
    store.plant(await inlineBytes("kinds"));
    store.take(store.root, first);
    return store;
  }

  // Tiles come each before its children, which only inner ones have.
  plant(kinds) {
    let next = 0;
    const tile = (level, x, y) => {
      const kind = kinds[next++];
      if (!kind) return null;
      const made = { level, x, y, kind, data: null, asked: false, failed: false, used: 0 };
      if (kind === LEAF) made.number = this.leaves.push(made) - 1;
      else made.children = [0, 1, 2, 3].map((place) => tile(level + 1, 2 * x + (place & 1), 2 * y + (place >> 1)));
      return made;
    };
    this.root = tile(0, 0, 0);
  }

  take(tile, bytes) {
    const sizes = this.description.code_bytes;
    if (tile.kind === INNER) {
      const [counts, ...codes] = joinPlanes(bytes, [4, ...sizes]);
      tile.data = { counts, codes };
    } else {
      const [x, y, rows, ...codes] = joinPlanes(bytes, [2, 2, 4, ...sizes]);
      for (let i = 1; i < rows.length; i++) rows[i] += rows[i - 1];
      tile.data = { x, y, rows, codes };
    }
    this.held.add(tile);
  }

  async load(tile) {
    if (tile.data) return;
    tile.loading ??= fetchedBytes(`${tile.kind === LEAF ? "points" : "counts"}/${tile.level}/${tile.x}-${tile.y}.bin`)
      .then((bytes) => this.take(tile, bytes))
      .finally(() => { tile.loading = null; });
    await tile.loading;
  }

  // Fetch what the last picture lacked, the coarsest first, and call `arrived` after each.
  fetchWanted(arrived, failed) {
    this.wanted.sort((one, other) => one.level - other.level);
    for (const tile of this.wanted) {
      if (this.requests >= MOST_REQUESTS) return;
      if (tile.asked || tile.failed) continue;
      tile.asked = true;
      this.requests++;
      this.load(tile)
        .catch((error) => { tile.failed = true; failed(error); })
        .finally(() => { tile.asked = false; this.requests--; arrived(); });
    }
  }

  // Let go of what was not used for longest; `frame` is the last.
  trim(frame, release) {
    if (this.held.size <= MOST_HELD) return;
    const old = [...this.held].filter((tile) => tile.used < frame && tile !== this.root).sort((one, other) => one.used - other.used);
    for (const tile of old.slice(0, this.held.size - MOST_HELD)) {
      release(tile);
      tile.data = null;
      this.held.delete(tile);
    }
  }

  // The tile with a row and the place of the row there; null where it is not in the map.
  async find(row) {
    const { of, block_rows } = this.description, block = Math.floor(row / block_rows);
    if (!(row >= 0 && row < of)) return null;
    if (!this.blocks.has(block)) this.blocks.set(block, joinPlanes(await fetchedBytes(`rows/${block}.bin`), [4])[0]);
    const number = this.blocks.get(block)[row % block_rows];
    if (number === NOWHERE) return null;
    const tile = this.leaves[number];
    await this.load(tile);
    return { tile, point: tile.data.rows.indexOf(row) };
  }
}

// Where a point of a tile is on the map, from 0 to 1 along each axis.
function placeOf({ tile, point }) {
  const share = 2 ** -tile.level;
  return [(tile.x + (tile.data.x[point] + 0.5) / PLACES) * share, (tile.y + (tile.data.y[point] + 0.5) / PLACES) * share];
}
