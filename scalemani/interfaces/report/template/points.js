"use strict";
// Points of the map: read from the page, searched by place. Positions are 16-bit integers; codes number classes or levels.
const CELL_BITS = 6; // 1024 x 1024 cells, by which points are searched
const CELLS = 1 << (16 - CELL_BITS);

async function readBytes(name) {
  const text = atob(document.getElementById(`array-${name}`).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

// Integers of `size` bytes from planes of their first, second, ... bytes: one typed array a column.
function joinPlanes(bytes, count, size) {
  const kind = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[size];
  const columns = [];
  for (let start = 0; start < bytes.length; start += count * size) {
    const column = new kind(count);
    for (let plane = 0; plane < size; plane++) {
      const from = start + plane * count;
      for (let i = 0; i < count; i++) column[i] += bytes[from + i] * 2 ** (8 * plane);
    }
    columns.push(column);
  }
  return columns;
}

class Points {
  static async read(description) {
    const count = description.points;
    const points = new Points();
    points.description = description;
    points.count = count;
    points.axes = joinPlanes(await readBytes("positions"), count, 2);
    points.codes = [];
    for (let number = 0; number < description.columns.length; number++) {
      const bytes = await readBytes(`column-${number}`);
      points.codes.push(joinPlanes(bytes, count, bytes.length / count)[0]);
    }
    points.texts = [];
    for (let number = 0; number < description.texts.length; number++) {
      points.texts.push(JSON.parse(new TextDecoder().decode(await readBytes(`texts-${number}`))));
    }
    if (document.getElementById("array-neighbors")) {
      const bytes = await readBytes("neighbors"), { neighbors: width } = description;
      points.neighbors = joinPlanes(bytes, count, bytes.length / count / width);
    }
    points.doubtful = description.doubtful === null ? null : pointsOf(await readBytes("doubtful"));
    if (document.getElementById("array-rows")) {
      points.rows = joinPlanes(await readBytes("rows"), count, 4)[0];
      for (let i = 1; i < count; i++) points.rows[i] += points.rows[i - 1];
    }
    points.tiles = description.tiles ? await Tiles.read(description) : null;
    points.order = shuffled(count);
    points.choose(0, 1);
    return points;
  }

  // The nearest points in the data, by the graph of the run; none where the page does not hold it.
  neighborsOf(point) {
    return (this.neighbors || []).map((column) => column[point]).filter((neighbor) => neighbor < this.count);
  }

  // The row of the input points to which a point belongs, and the way back: -1 where it is not drawn.
  row(point) { return this.rows ? this.rows[point] : point; }
  find(row) {
    if (!this.rows) return row >= 0 && row < this.count ? row : -1;
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < row) low = middle + 1; else high = middle;
    }
    return low < this.count && this.rows[low] === row ? low : -1;
  }

  // Take two of the axes, and sort the points by the cells in which they lie.
  choose(across, up) {
    this.across = across;
    this.up = up;
    this.x = this.axes[across];
    this.y = this.axes[up];
    const starts = new Uint32Array(CELLS * CELLS + 1);
    const cell = (i) => (this.y[i] >> CELL_BITS) * CELLS + (this.x[i] >> CELL_BITS);
    for (let i = 0; i < this.count; i++) starts[cell(i) + 1]++;
    for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
    const next = starts.slice(0, -1);
    this.byCell = new Uint32Array(this.count);
    for (let i = 0; i < this.count; i++) this.byCell[next[cell(i)]++] = i;
    this.starts = starts;
  }

  // Call `visit` with every point in the cells that touch a box.
  within(x0, y0, x1, y1, visit) {
    const clamp = (value) => Math.max(0, Math.min(CELLS - 1, value >> CELL_BITS));
    for (let row = clamp(y0); row <= clamp(y1); row++) {
      const first = this.starts[row * CELLS + clamp(x0)], last = this.starts[row * CELLS + clamp(x1) + 1];
      for (let k = first; k < last; k++) visit(this.byCell[k]);
    }
  }

  // The point nearest to a place within a reach along each axis, distances measured in units of that reach; or -1.
  nearest(x, y, reachX, reachY, visible) {
    let best = -1, least = 1;
    this.within(x - reachX, y - reachY, x + reachX, y + reachY, (i) => {
      const distance = ((this.x[i] - x) / reachX) ** 2 + ((this.y[i] - y) / reachY) ** 2;
      if (distance <= least && visible(i) && (distance < least || best < 0 || i < best)) { best = i; least = distance; }
    });
    return best;
  }

  // The points inside a closed polygon of [x, y] corners, ascending.
  inside(polygon, visible) {
    const marks = new Uint8Array(this.count), edges = Float64Array.from(polygon.flatMap((corner, i) => [...corner, ...polygon.at(i - 1)]));
    const near = new Float64Array(edges.length);
    for (let row = 0; row < CELLS; row++) {
      const low = row << CELL_BITS, high = low + (1 << CELL_BITS);
      let used = 0; // numbers of edges that cross lines at these heights: all others count for no point of the row
      for (let k = 0; k < edges.length; k += 4) {
        if ((edges[k + 1] < high || edges[k + 3] < high) && (edges[k + 1] >= low || edges[k + 3] >= low)) {
          for (let part = 0; part < 4; part++) near[used++] = edges[k + part];
        }
      }
      const last = used ? this.starts[(row + 1) * CELLS] : 0;
      for (let k = this.starts[row * CELLS]; k < last; k++) {
        const i = this.byCell[k];
        if (isInside(near, used, this.x[i], this.y[i]) && visible(i)) marks[i] = 1;
      }
    }
    return pointsOf(marks);
  }
}

// The points that are marked, ascending.
function pointsOf(marks) {
  let count = 0;
  for (let point = 0; point < marks.length; point++) count += marks[point];
  const points = new Uint32Array(count);
  count = 0;
  for (let point = 0; point < marks.length; point++) if (marks[point]) points[count++] = point;
  return points;
}

// Whether a place lies inside edges, `used` numbers: x and y of both ends of each.
function isInside(edges, used, x, y) {
  let inside = false;
  for (let k = 0; k < used; k += 4) {
    const xi = edges[k], yi = edges[k + 1], xj = edges[k + 2], yj = edges[k + 3];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

// The same order in every browser, so that no class always lies on top and a part of the points stands for all.
function shuffled(count) {
  const order = new Uint32Array(count);
  let state = 88172645;
  for (let i = 0; i < count; i++) {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    const j = Math.floor(((state >>> 0) / 2 ** 32) * (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}
