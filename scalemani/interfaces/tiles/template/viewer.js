"use strict";
// The map and its controls: pan, zoom, hover, colours, legend, search. Texts of the run are only ever set as text.
const SHARE = 0.94; // of the canvas that the whole map fills
const REACH = 9; // pixels from the pointer to a point
const LEAST_ZOOM = 0.2, MOST_ZOOM = 2 ** 24;
const SMALLEST_DISC = 1.5, LARGEST_DISC = 9; // pixels across
const REST = 160; // milliseconds without a frame, after which all points are drawn
const MOST_PACED = 1e6; // points of a frame of motion
const MOST_STEP = 63; // WebGL has strides of 255 bytes at most
const FAINTEST_DISC = 0.5; // next to pixels that count as few points
const PLAIN = "#3f90da";
const $ = (id) => document.getElementById(id);
const counted = (number) => number.toLocaleString("en");

class Viewer {
  constructor(store, painter) {
    Object.assign(this, { store, painter, element: $("points"), overlay: $("overlay").getContext("2d") });
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1, frames: 0, marked: null, pictures: [], leaves: [] });
    Object.assign(this, { moving: false, pace: new Pace(MOST_PACED) });
    const { columns } = store.description;
    ["nothing", ...columns.map((column) => column.name)].forEach((name, place) => {
      const option = made("option", name);
      option.value = place - 1;
      $("column").append(option);
    });
    this.colourBy(columns.length ? 0 : -1);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  // Geometry: places are in [0, 1] along each axis; pixels are those of the page.

  resize() {
    const ratio = devicePixelRatio || 1;
    for (const element of [this.element, this.overlay.canvas]) {
      element.width = Math.max(1, Math.round(element.clientWidth * ratio));
      element.height = Math.max(1, Math.round(element.clientHeight * ratio));
    }
    this.drawAtOnce();
  }

  unit() { return SHARE * Math.min(this.element.clientWidth, this.element.clientHeight) * this.zoom; }

  toScreen(x, y) {
    const unit = this.unit();
    return [this.element.clientWidth / 2 + (x - this.x) * unit, this.element.clientHeight / 2 - (y - this.y) * unit];
  }

  toPlace(left, top) {
    const unit = this.unit();
    return [this.x + (left - this.element.clientWidth / 2) / unit, this.y - (top - this.element.clientHeight / 2) / unit];
  }

  show(x, y, zoom) {
    Object.assign(this, { x, y, zoom });
    this.draw();
  }

  pan(left, top) {
    this.moving = true;
    this.show(this.x - left / this.unit(), this.y + top / this.unit(), this.zoom);
  }

  zoomBy(factor, left = this.element.clientWidth / 2, top = this.element.clientHeight / 2) {
    const [x, y] = this.toPlace(left, top);
    this.moving = true;
    this.zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.zoom * factor));
    const [otherX, otherY] = this.toPlace(left, top);
    this.show(this.x + x - otherX, this.y + y - otherY, this.zoom);
  }

  // Drawing: the tiles of the level whose pixels are those of the screen; what is not there yet, from a tile above.

  draw() {
    this.frame ||= requestAnimationFrame(() => this.drawAtOnce());
  }

  drawAtOnce() {
    const began = performance.now();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.resting);
    this.frame = 0;
    this.frames++;
    const { element, store } = this, ratio = devicePixelRatio || 1, unit = this.unit();
    const [x0, y1] = this.toPlace(0, 0), [x1, y0] = this.toPlace(element.clientWidth, element.clientHeight);
    this.level = Math.max(0, Math.round(Math.log2((unit * ratio) / SIDE)));
    Object.assign(this, { view: [x0, y0, x1, y1], pictures: [], leaves: [] });
    store.wanted = [];
    this.gather(store.root, null);
    const boxOf = (tile) => {
      const share = 2 ** -tile.level, side = share * unit * ratio;
      return [(tile.x * share - x0) * unit * ratio, (tile.y * share - y0) * unit * ratio, side, side];
    };
    const chosen = 2 ** Number($("size").value) * ratio, deep = Math.log2((unit * ratio) / SIDE);
    const lookOf = (tile) => { // discs are larger and stronger the closer one is
      const depth = Math.max(0, deep - tile.level);
      return [chosen * Math.min(LARGEST_DISC, SMALLEST_DISC * 2 ** (depth / 2)), Math.min(1, FAINTEST_DISC + depth / 4)];
    };
    const inView = this.leaves.reduce((sum, tile) => sum + tile.data.x.length, 0);
    const step = this.moving ? Math.min(MOST_STEP, Math.max(1, Math.ceil(inView / this.pace.points))) : 1;
    this.painter.draw(this.pictures, this.leaves, boxOf, lookOf, step);
    if (this.moving) this.learn(began, inView / step);
    this.drawOver();
    store.trim(this.frames, (tile) => this.painter.release(tile));
    store.fetchWanted(() => this.draw(), (error) => { $("status").textContent = `A part of the map is missing. ${error.message}`; });
    const missing = store.wanted.filter((tile) => !tile.failed).length;
    Object.assign(element.dataset, { view: JSON.stringify(this.view), missing, level: this.level, leaves: this.leaves.length });
  }

  // A frame of motion takes until the next begins. The map rests from then on, however long the frame was.
  learn(began, drawn) {
    requestAnimationFrame(() => {
      this.pace.learn(drawn, performance.now() - began);
      if (!this.frame) this.resting = setTimeout(() => { this.moving = false; this.draw(); }, REST);
    });
  }

  // `above` is the nearest tile of counts above that is there.
  gather(tile, above) {
    const share = 2 ** -tile.level, [x0, y0, x1, y1] = this.view;
    if (tile.x * share > x1 || tile.y * share > y1 || (tile.x + 1) * share < x0 || (tile.y + 1) * share < y0) return;
    const final = tile.kind === LEAF || tile.level >= this.level;
    if (tile.data) tile.used = this.frames;
    if (!final) {
      for (const child of tile.children) if (child) this.gather(child, tile.data ? tile : above);
    } else if (!tile.data) {
      this.store.wanted.push(tile);
      if (above) this.pictures.push([above, tile]);
    } else if (tile.kind === LEAF) {
      this.leaves.push(tile);
    } else {
      this.pictures.push([tile, tile]);
    }
  }

  drawOver() {
    const pen = this.overlay, ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
    if (!this.marked) return;
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(...this.toScreen(...this.marked.place), 8, 0, 2 * Math.PI);
    pen.stroke();
  }

  // Colours, legend, and what is shown.

  described() { return this.store.description.columns[this.column]; }

  colourBy(number) {
    this.column = number;
    $("column").value = String(number);
    this.shown = (this.described()?.colours ?? [PLAIN]).map(() => true);
    makeLegend(this);
    this.filter();
  }

  filter() {
    const column = this.described(), nothing = getComputedStyle(document.documentElement).getPropertyValue("--nothing").trim();
    const codes = (column?.colours ?? [PLAIN]).map((colour, code) => (code === column?.missing ? nothing : colour));
    this.painter.colourBy(this.column, codes.map((colour, code) => [...numbers(colour), this.shown[code] ? 255 : 0]));
    this.draw();
  }

  legendOfValues(legend, column) {
    const levels = column.colours.slice(0, this.store.description.levels_of_values), ramp = made("div", "");
    ramp.className = "ramp";
    ramp.style.background = `linear-gradient(to right, ${levels.filter((_, k) => k % 16 === 0 || k === levels.length - 1)})`;
    legend.append(ramp, made("span", column.limits.map((limit) => limit.toPrecision(3)).join(" to ")));
    if (column.counts[column.missing]) legendBox(this, legend, column.missing, `no value (${counted(column.counts[column.missing])})`);
  }

  // What is at a place.

  // The point nearest to a place of the screen, among those that are drawn; null where none is within reach.
  nearest(left, top, reach) {
    const unit = this.unit(), [x, y] = this.toPlace(left, top);
    let best = null, least = (reach / unit) ** 2;
    for (const tile of this.leaves) {
      const { data } = tile, share = 2 ** -tile.level, code = data.codes[this.column];
      const [fromX, fromY] = [(x / share - tile.x) * PLACES - 0.5, (y / share - tile.y) * PLACES - 0.5];
      for (let point = 0; point < data.x.length; point++) {
        const distance = ((data.x[point] - fromX) ** 2 + (data.y[point] - fromY) ** 2) * (share / PLACES) ** 2;
        if (distance <= least && (!code || this.shown[code[point]])) { least = distance; best = { tile, point }; }
      }
    }
    return best;
  }

  describe({ tile, point }) {
    const values = this.store.description.columns.map((column, number) => `${column.name}: ${textOf(column, tile.data.codes[number][point])}`);
    return [`row ${tile.data.rows[point]}`, ...values];
  }

  describePixel(x, y) {
    const inside = ([, tile]) => Math.floor(x * 2 ** tile.level) === tile.x && Math.floor(y * 2 ** tile.level) === tile.y;
    const found = this.pictures.find(inside);
    if (!found) return [];
    const [tile] = found, scale = 2 ** tile.level * SIDE;
    const pixel = (Math.floor(y * scale) - tile.y * SIDE) * SIDE + Math.floor(x * scale) - tile.x * SIDE, count = tile.data.counts[pixel];
    if (!count) return [];
    const lines = [`${counted(count)} point${count > 1 ? "s" : ""} here`], column = this.described();
    if (column) {
      const code = tile.data.codes[this.column][pixel], word = column.classes ? "most are" : "mean about";
      lines.push(`${column.name}: ${code === column.missing ? "" : `${word} `}${textOf(column, code)}`);
    }
    return lines;
  }

  mark(found) {
    this.marked = found && { place: placeOf(found) };
    this.tip(found ? this.describe(found) : [], ...(found ? this.toScreen(...placeOf(found)) : []));
    this.drawOver();
  }

  hover(left, top) {
    this.mark(this.nearest(left, top, REACH));
    if (!this.marked) this.tip(this.describePixel(...this.toPlace(left, top)), left, top);
  }

  tip(lines, left, top) {
    const tip = $("tip");
    tip.hidden = !lines.length;
    if (!lines.length) return;
    tip.textContent = lines.join("\n");
    const right = left > this.element.clientWidth * 0.65;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${this.element.clientWidth - left + 14}px` : "";
    tip.style.top = `${Math.max(0, Math.min(top + 10, this.element.clientHeight - tip.offsetHeight - 4))}px`;
  }

  async search() {
    const text = $("row").value, found = text === "" ? null : await this.store.find(Number(text));
    if (!found) {
      $("status").textContent = text === "" ? "give the number of a row" : `there is no row ${text} in the map`;
      return;
    }
    const close = 2 ** (found.tile.level + 1) * (SIDE / this.unit()) * this.zoom; // the tile is two tiles wide
    this.show(...placeOf(found), Math.max(this.zoom, close));
    this.drawAtOnce();
    this.mark(found);
    $("status").textContent = this.describe(found).join(", ");
  }

  // Events.

  listen() {
    const on = (id, kind, call) => $(id).addEventListener(kind, call);
    on("column", "change", () => this.colourBy(Number($("column").value)));
    on("size", "input", () => this.draw());
    on("whole", "click", () => this.show(0.5, 0.5, 1));
    on("closer", "click", () => this.zoomBy(1.5));
    on("farther", "click", () => this.zoomBy(1 / 1.5));
    on("search", "submit", (event) => {
      event.preventDefault();
      this.search().catch((error) => { $("status").textContent = `The row could not be looked up. ${error.message}`; });
    });
    document.addEventListener("themechange", () => this.filter());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.filter());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      this.dragging = [event.offsetX, event.offsetY];
      this.mark(null);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!this.dragging) { this.hover(event.offsetX, event.offsetY); return; }
      this.pan(event.offsetX - this.dragging[0], event.offsetY - this.dragging[1]);
      this.dragging = [event.offsetX, event.offsetY];
    });
    for (const kind of ["pointerup", "pointercancel"]) this.element.addEventListener(kind, () => { this.dragging = null; });
    this.element.addEventListener("pointerleave", () => { if (!this.dragging) this.mark(null); });
  }

  key(event) {
    const step = 60, moves = {
      ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoomBy(1.5), "=": () => this.zoomBy(1.5), "-": () => this.zoomBy(1 / 1.5), 0: () => this.show(0.5, 0.5, 1),
      Enter: () => this.describeMiddle(), Escape: () => { this.mark(null); $("status").textContent = ""; },
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  describeMiddle() {
    const found = this.nearest(this.element.clientWidth / 2, this.element.clientHeight / 2, 8 * REACH);
    this.mark(found);
    const lines = found ? this.describe(found) : this.describePixel(this.x, this.y);
    $("status").textContent = lines.length ? lines.join(", ") : "no point near the middle";
  }
}

function textOf(column, code) {
  if (code === column.missing) return "none";
  const last = column.colours.length - 2;
  return column.classes?.[code] ?? (column.limits[0] + (code / last) * (column.limits[1] - column.limits[0])).toPrecision(3);
}

function numbers(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

let viewer = null;

async function startMap() {
  const description = JSON.parse($("map-data").textContent), painter = Painter.make($("points"), description);
  if (!painter) throw new Error("this browser has no WebGL 2");
  viewer = new Viewer(await Store.read(description), painter);
  viewer.resize();
  performance.mark("first-picture");
  $("map").dataset.ready = "true";
  if (location.protocol === "file:") {
    $("no-map").textContent = "This is the first tile alone: browsers read no others from a disk. Run `python -m http.server` in this folder, and open http://localhost:8000.";
  }
}

startMap().catch((error) => { $("no-map").textContent = `The map could not be drawn: ${error.message}.`; });
