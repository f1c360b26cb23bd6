"use strict";
// The map and its controls: pan, zoom, hover, lasso, colours, legend, search. Texts of the run are only ever set as text.
const SHARE = 0.94; // of the canvas that the whole map fills
const MOST_STRETCH = 4; // beyond this ratio of extents, axes are scaled one by one
const REST = 160; // milliseconds without a frame, after which all points are drawn
const REACH = 9; // pixels from the pointer to a point
const PLAIN = "#50afff";
const MOST_RINGS = 2000; // around points that a text was found in, or that could lie elsewhere
const STILL = 4; // pixels that a pointer may move in a click
const $ = (id) => document.getElementById(id);

class MapView {
  constructor(points, canvas) {
    Object.assign(this, { points, canvas, element: $("points"), overlay: $("overlay").getContext("2d") });
    this.column = -1; // no column: one colour
    this.shown = [true];
    this.chosen = new Uint8Array(points.count);
    this.marked = this.pinned = -1;
    this.path = null;
    this.middles = this.words = null;
    this.found = new Uint32Array(0);
    this.selected = [];
    this.pace = new Pace(points.count);
    this.fill();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.whole();
    this.colourBy(points.codes.length ? 0 : -1);
  }

  // Geometry: places are in [0, 1] along each axis; pixels are those of the page.

  resize() {
    const ratio = devicePixelRatio || 1;
    for (const element of [this.element, this.overlay.canvas]) {
      element.width = Math.max(1, Math.round(element.clientWidth * ratio));
      element.height = Math.max(1, Math.round(element.clientHeight * ratio));
    }
    this.draw();
  }

  unit() {
    const { axes } = this.points.description, { across, up } = this.points;
    const wide = axes[across].high - axes[across].low, tall = axes[up].high - axes[up].low;
    const x = (SHARE * this.element.clientWidth) / wide, y = (SHARE * this.element.clientHeight) / tall;
    const even = Math.max(x, y) <= MOST_STRETCH * Math.min(x, y);
    const least = Math.min(x, y);
    return [(even ? least : x) * wide * this.zoom, (even ? least : y) * tall * this.zoom];
  }

  toScreen(x, y) {
    const [across, up] = this.unit();
    return [this.element.clientWidth / 2 + (x - this.x) * across, this.element.clientHeight / 2 - (y - this.y) * up];
  }

  toPlace(left, top) {
    const [across, up] = this.unit();
    return [this.x + (left - this.element.clientWidth / 2) / across, this.y - (top - this.element.clientHeight / 2) / up];
  }

  whole() {
    Object.assign(this, { x: 0.5, y: 0.5, zoom: 1 });
    this.draw();
  }

  pan(left, top) {
    const [across, up] = this.unit();
    this.x -= left / across;
    this.y += top / up;
    this.move();
  }

  zoomBy(factor, left = this.element.clientWidth / 2, top = this.element.clientHeight / 2) {
    const [x, y] = this.toPlace(left, top);
    this.zoom = Math.min(5000, Math.max(0.2, this.zoom * factor));
    const [otherX, otherY] = this.toPlace(left, top);
    this.x += x - otherX;
    this.y += y - otherY;
    this.move();
  }

  // Drawing: few points while the map moves, all when it rests.

  move() { this.draw(this.pace.points); }

  draw(most = Infinity) {
    clearTimeout(this.resting);
    this.most = most;
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      const began = performance.now();
      this.frame = 0;
      this.drawAtOnce();
      if (this.most !== Infinity) this.learn(began, this.most);
    });
  }

  // A frame of motion takes until the next begins. The map rests from then on, however long the frame was.
  learn(began, drawn) {
    requestAnimationFrame(() => {
      this.pace.learn(drawn, performance.now() - began);
      if (!this.frame) this.resting = setTimeout(() => this.draw(), REST);
    });
  }

  drawAtOnce() {
    const { element, points } = this;
    const [across, up] = this.unit();
    const [sx, sy] = [(2 * across) / element.clientWidth, (2 * up) / element.clientHeight];
    const style = getComputedStyle(document.documentElement), count = Math.min(points.count, this.most);
    element.dataset.discs = this.canvas.draw({
      view: [sx, sy, -this.x * sx, -this.y * sy],
      size: Number($("size").value),
      strength: 2 ** Number($("opacity").value),
      paper: numbers(style.getPropertyValue("--paper")),
      missing: this.described()?.missing ?? null,
      count,
      moving: this.most !== Infinity,
      behind: $("tiles").checked,
    });
    if (this.most === Infinity) this.middles = this.words = null; // names follow the view when it rests
    this.drawOver(style);
    if (this.marked >= 0) this.placeTip(...this.screenOf(this.marked));
    element.dataset.view = JSON.stringify([...this.toPlace(0, 0), ...this.toPlace(element.clientWidth, element.clientHeight)]);
    element.dataset.drawn = count;
    if (points.tiles && this.most === Infinity) this.tellView();
  }

  // Of a map with tiles: how much of it is in view.
  tellView() {
    const [x0, y1] = this.toPlace(0, 0), [x1, y0] = this.toPlace(this.element.clientWidth, this.element.clientHeight);
    let drawn = 0;
    this.points.within(x0 * 65535, y0 * 65535, x1 * 65535, y1 * 65535, (point) => {
      const x = this.points.x[point] / 65535, y = this.points.y[point] / 65535;
      if (x >= x0 && x <= x1 && y >= y0 && y <= y1) drawn++;
    });
    const counted = this.points.tiles.within(x0, y0, x1, y1);
    $("in-sight").textContent = `In view: ${counted.toLocaleString("en")} points counted, ${drawn.toLocaleString("en")} drawn.`;
  }

  drawOver(style) {
    const pen = this.overlay, ratio = devicePixelRatio || 1, points = this.points;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
    pen.strokeStyle = pen.fillStyle = style.getPropertyValue("--ink");
    pen.lineWidth = 2;
    if (this.path) {
      pen.beginPath();
      this.path.forEach(([x, y]) => pen.lineTo(...this.toScreen(x / 65535, y / 65535)));
      pen.closePath();
      pen.stroke();
    }
    this.ring(pen, this.found.subarray(0, MOST_RINGS), 5);
    $("ringed").textContent = $("rings").checked ? this.ringDoubtful(pen) : "";
    if (this.pinned >= 0) {
      const start = this.screenOf(this.pinned);
      this.ring(pen, [this.pinned], 8);
      for (const neighbor of points.neighborsOf(this.pinned)) {
        pen.beginPath();
        pen.moveTo(...start);
        pen.lineTo(...this.screenOf(neighbor));
        pen.stroke();
        this.ring(pen, [neighbor], 5);
      }
    }
    if ($("names").checked) drawNames(this, pen, style);
    if (this.marked >= 0) this.ring(pen, [this.marked], 8);
  }

  screenOf(point) { return this.toScreen(this.points.x[point] / 65535, this.points.y[point] / 65535); }

  // Points are ringed by one path: thousands of paths take twice the time.
  ring(pen, points, radius) {
    pen.beginPath();
    for (const point of points) {
      const [x, y] = this.screenOf(point);
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 7);
    }
    pen.stroke();
  }

  // Ring the points in view and in the legend that could lie elsewhere, of very many some, spread evenly over the rows; say how many.
  ringDoubtful(pen) {
    const isInView = this.inView(), isShown = this.visible();
    const inView = this.points.doubtful.filter((point) => isInView(point) && isShown(point));
    const ringed = inView.length <= MOST_RINGS ? inView : Uint32Array.from({ length: MOST_RINGS }, (_, k) => inView[Math.floor((k * inView.length) / MOST_RINGS)]);
    this.ring(pen, ringed, 5);
    const counts = [ringed, inView].map(({ length }) => length.toLocaleString("en"));
    return `(${counts[0] === counts[1] ? counts[1] : counts.join(" of ")} in view)`;
  }

  // Whether a point is in view, by where it is.
  inView() {
    const [x0, y1] = this.toPlace(0, 0), [x1, y0] = this.toPlace(this.element.clientWidth, this.element.clientHeight);
    const { x, y } = this.points, [left, right, low, high] = [x0, x1, y0, y1].map((place) => place * 65535);
    return (point) => x[point] >= left && x[point] <= right && y[point] >= low && y[point] <= high;
  }

  // Colours, legend, and which points are shown.

  described() { return this.points.description.columns[this.column]; }

  // The colours by code; that of points without a label is as pale as on this paper.
  colours() {
    const column = this.described(), colours = column ? [...column.colours] : [PLAIN];
    if ((column?.missing ?? null) !== null) colours[column.missing] = getComputedStyle(document.documentElement).getPropertyValue("--nothing").trim();
    return colours;
  }

  visible() {
    const codes = this.points.codes[this.column], shown = this.shown;
    return codes ? (point) => shown[codes[point]] : () => true;
  }

  colourBy(number) {
    this.column = number;
    this.middles = null;
    $("column").value = String(number);
    this.shown = this.colours().map(() => true);
    this.canvas.setCodes(this.points.codes[number]);
    makeLegend(this);
    this.tellSelection();
    this.filter();
  }

  filter() {
    const colours = this.colours();
    this.canvas.setPalette(colours, this.shown, Boolean(this.described()?.limits));
    if (this.points.tiles) this.canvas.setTiles(this.column, colours, this.shown);
    this.draw();
  }

  legendOfValues(legend, column) {
    const last = column.colours.length - 2, ramp = made("div", "");
    ramp.className = "ramp";
    ramp.style.background = `linear-gradient(to right, ${column.colours.slice(0, -1).filter((_, k) => k % 16 === 0 || k === last)})`;
    const value = (code) => column.limits[0] + (code / last) * (column.limits[1] - column.limits[0]);
    const text = made("span", "");
    const ends = [["from", 0], ["to", last]].map(([name, code]) => {
      const label = made("label", `${name} `), range = document.createElement("input");
      Object.assign(range, { type: "range", min: 0, max: last, value: code });
      range.addEventListener("input", update);
      label.append(range);
      legend.append(label);
      return range;
    });
    const view = this;
    function update() {
      const [low, high] = ends.map((range) => Number(range.value));
      for (let code = 0; code <= last; code++) view.shown[code] = code >= low && code <= high;
      text.textContent = `${value(low).toPrecision(3)} to ${value(high).toPrecision(3)}`;
      view.filter();
    }
    legend.append(ramp, text);
    update();
    if (column.missing !== null && column.counts[column.missing]) {
      legendBox(this, legend, column.missing, `no value (${column.counts[column.missing].toLocaleString("en")})`);
    }
  }

  // Points under the pointer, searched for, and chosen.

  // What is said of a point: its row, texts, the columns chosen for that, the one it is coloured by, and its place.
  describe(point) {
    const { axes, columns, texts } = this.points.description, { across, up } = this.points;
    const lines = [`row ${this.points.row(point)}`, ...texts.map((name, number) => `${name}: ${this.points.texts[number][point] || "none"}`)];
    columns.forEach((column, number) => {
      if (!this.told[number] && number !== this.column) return;
      const code = this.points.codes[number][point];
      lines.push(`${column.name}: ${code === column.missing ? "none" : (column.classes ? "" : "about ") + textOf(column, code)}`);
    });
    for (const [axis, places] of [[axes[across], this.points.x], [axes[up], this.points.y]]) {
      lines.push(`${axis.name}: ${(axis.low + (places[point] / 65535) * (axis.high - axis.low)).toPrecision(4)}`);
    }
    return lines;
  }

  // What is said of the tile at a place where no point is drawn; nothing where it is empty or hidden.
  describeTile(x, y) {
    const column = this.described(), tile = this.points.tiles?.at(x, y, this.column);
    if (!tile?.count || !$("tiles").checked || !this.shown[tile.code ?? 0]) return [];
    const lines = [`${tile.count.toLocaleString("en")} ${tile.count === 1 ? "point" : "points"} counted in this tile`];
    if (column && tile.code === column.missing) lines.push(`${column.name}: none`);
    else if (column) lines.push(`${column.name}: ${column.classes ? "most are" : "mean about"} ${textOf(column, tile.code)}`);
    return lines;
  }

  near(left, top) {
    const [x, y] = this.toPlace(left, top), [across, up] = this.unit();
    return this.points.nearest(x * 65535, y * 65535, (REACH / across) * 65535, (REACH / up) * 65535, this.visible());
  }

  mark(point) {
    this.marked = point;
    if (point < 0) this.tip([]);
    else this.tip(this.describe(point), ...this.screenOf(point));
    this.drawOver(getComputedStyle(document.documentElement));
  }

  tip(lines, left, top) {
    $("tip").textContent = lines.join("\n");
    this.placeTip(left, top);
  }

  // Put what is said next to a place, and hide it where there is nothing to say or the place is out of view.
  placeTip(left, top) {
    const tip = $("tip"), { clientWidth: width, clientHeight: height } = this.element;
    tip.hidden = !tip.textContent || !(left >= 0 && top >= 0 && left <= width && top <= height);
    if (tip.hidden) return;
    const right = left > width * 0.65;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${width - left + 14}px` : "";
    tip.style.top = `${Math.max(4, Math.min(top + 10, height - tip.offsetHeight - 4))}px`;
  }

  search() {
    const row = Number($("row").value), point = this.points.find(row);
    if ($("row").value === "" || point < 0) {
      $("status").textContent = this.points.rows ? `row ${row} is not among the points drawn` : `there is no row ${row}`;
      return;
    }
    this.goTo(point);
  }

  // Bring a point to the middle, and say who it and its neighbours are.
  goTo(point) {
    Object.assign(this, { x: this.points.x[point] / 65535, y: this.points.y[point] / 65535, zoom: Math.max(this.zoom, 8) });
    this.pin(point);
    this.drawAtOnce();
    this.mark(point);
    $("status").textContent = this.describe(point).join(", ");
  }

  // Have lines to the neighbours of a point drawn, and list them; -1 for none.
  pin(point) {
    this.pinned = point;
    const list = $("neighbors"), neighbors = point < 0 ? [] : this.points.neighborsOf(point);
    list.hidden = !neighbors.length;
    list.replaceChildren(made("strong", `Nearest in the data to ${this.nameOf(point)}: `));
    for (const neighbor of neighbors) {
      const button = made("button", this.nameOf(neighbor));
      button.type = "button";
      button.addEventListener("click", () => { this.goTo(neighbor); this.element.focus(); });
      list.append(button);
    }
    this.drawOver(getComputedStyle(document.documentElement));
  }

  nameOf(point) {
    const text = this.points.texts[0]?.[point];
    return point < 0 ? "" : `row ${this.points.row(point)}${text ? ` (${text.slice(0, 40)})` : ""}`;
  }

  // Ring the points that hold the text searched for.
  findText() {
    this.found = matching(this.points, $("words").value);
    this.at = -1;
    $("next").disabled = $("choose-found").disabled = !this.found.length;
    const count = this.found.length.toLocaleString("en");
    $("status").textContent = `${this.found.length ? count : "no"} ${this.found.length === 1 ? "point holds" : "points hold"} this text`;
    this.drawOver(getComputedStyle(document.documentElement)); // the map below it is as it was
  }

  nextFound() {
    this.at = (this.at + 1) % this.found.length;
    this.goTo(this.found[this.at]);
  }

  choose(points) {
    this.chosen.fill(0);
    for (const point of points) this.chosen[point] = 1;
    this.selected = points;
    this.canvas.setChosen(this.chosen);
    const of = this.points.tiles ? " of the points drawn" : " points";
    $("status").textContent = points.length ? `${points.length.toLocaleString("en")}${of} selected` : "no point selected";
    $("download").disabled = $("save").disabled = $("clear").disabled = !points.length;
    this.tellSelection();
    requestAnimationFrame(() => this.draw()); // what is told is painted before the map, which takes longer
  }

  // How the selected points differ from the rest.
  tellSelection() {
    const tables = this.selected.length ? selectionTables(this.points, this.selected, this.column) : [];
    $("selection").hidden = !tables.length;
    $("selection").replaceChildren(...tables);
  }

  chooseView() {
    const [x0, y1] = this.toPlace(0, 0), [x1, y0] = this.toPlace(this.element.clientWidth, this.element.clientHeight);
    this.choose(this.points.inside([[x0, y0], [x1, y0], [x1, y1], [x0, y1]].map(([x, y]) => [x * 65535, y * 65535]), this.visible()));
  }

  download(content, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  downloadRows() {
    this.download(Array.from(this.selected, (point) => this.points.row(point)).join("\n") + "\n", "rows.txt", "text/plain");
  }

  // Events.

  fill() {
    const option = (select, value, text) => { const one = made("option", text); one.value = value; select.append(one); };
    const { axes, columns, texts, tiles } = this.points.description;
    option($("column"), -1, "nothing");
    columns.forEach((column, number) => option($("column"), number, column.name));
    for (const id of ["across", "up"]) {
      axes.forEach((axis, number) => option($(id), number, axis.name));
      $(id).value = id === "up" ? 1 : 0;
      $(id).parentElement.hidden = axes.length < 3;
      $(id).addEventListener("change", () => {
        this.points.choose(Number($("across").value), Number($("up").value));
        this.canvas.setPlaces();
        this.middles = null;
        this.mark(-1);
        this.pin(-1);
        this.whole();
      });
    }
    $("tiles").parentElement.hidden = !tiles;
    $("rings").parentElement.hidden = !this.points.doubtful?.length;
    $("find").hidden = !texts.length && !columns.some(({ classes }) => classes);
    $("told").hidden = columns.length < 2;
    this.told = columns.map((_, number) => number < FIRST_TOLD);
    columns.forEach((column, number) => {
      const label = document.createElement("label"), box = document.createElement("input");
      Object.assign(box, { type: "checkbox", checked: this.told[number] });
      box.addEventListener("change", () => { this.told[number] = box.checked; });
      label.append(box, column.name);
      $("told-columns").append(label);
    });
  }

  listen() {
    const on = (id, kind, call) => $(id).addEventListener(kind, call);
    on("column", "change", () => this.colourBy(Number($("column").value)));
    for (const id of ["size", "opacity", "names", "tiles", "rings"]) on(id, "input", () => this.draw());
    on("whole", "click", () => this.whole());
    on("closer", "click", () => this.zoomBy(1.5));
    on("farther", "click", () => this.zoomBy(1 / 1.5));
    on("search", "submit", (event) => { event.preventDefault(); this.search(); });
    on("lasso", "click", () => $("lasso").setAttribute("aria-pressed", String($("lasso").getAttribute("aria-pressed") !== "true")));
    on("in-view", "click", () => this.chooseView());
    on("download", "click", () => this.downloadRows());
    on("save", "click", () => this.download(tableOf(this.points, this.selected), "rows.csv", "text/csv"));
    on("find", "submit", (event) => { event.preventDefault(); this.findText(); });
    on("next", "click", () => this.nextFound());
    on("choose-found", "click", () => this.choose(this.found));
    on("clear", "click", () => this.choose([]));
    document.addEventListener("themechange", () => this.filter());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.filter());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
      this.element.addEventListener(kind, (event) => this[kind](event));
    }
    this.element.addEventListener("pointerleave", () => { if (!this.dragging && !this.path) this.mark(-1); });
  }

  key(event) {
    const step = 60, moves = {
      ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoomBy(1.5), "=": () => this.zoomBy(1.5), "-": () => this.zoomBy(1 / 1.5), 0: () => this.whole(),
      Enter: () => this.tellMiddle(), Escape: () => { this.mark(-1); this.pin(-1); this.choose([]); },
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  tellMiddle() {
    const reach = 8;
    const [x, y] = [this.x * 65535, this.y * 65535], [across, up] = this.unit();
    const point = this.points.nearest(x, y, (reach * REACH * 65535) / across, (reach * REACH * 65535) / up, this.visible());
    this.pin(point);
    this.mark(point);
    $("status").textContent = point < 0 ? "no point near the middle" : this.describe(point).join(", ");
  }

  pointerdown(event) {
    this.element.setPointerCapture(event.pointerId);
    const [x, y] = this.toPlace(event.offsetX, event.offsetY);
    if (event.shiftKey || $("lasso").getAttribute("aria-pressed") === "true") this.path = [[x * 65535, y * 65535]];
    else this.dragging = [event.offsetX, event.offsetY];
    this.pressed = [event.offsetX, event.offsetY];
  }

  pointermove(event) {
    if (this.path) {
      const [x, y] = this.toPlace(event.offsetX, event.offsetY);
      this.path.push([x * 65535, y * 65535]);
      this.drawOver(getComputedStyle(document.documentElement));
    } else if (this.dragging) {
      this.pan(event.offsetX - this.dragging[0], event.offsetY - this.dragging[1]);
      this.dragging = [event.offsetX, event.offsetY];
    } else {
      this.mark(this.near(event.offsetX, event.offsetY));
      if (this.marked < 0) this.tip(this.describeTile(...this.toPlace(event.offsetX, event.offsetY)), event.offsetX, event.offsetY);
    }
  }

  pointerup(event) {
    const still = this.pressed && Math.hypot(event.offsetX - this.pressed[0], event.offsetY - this.pressed[1]) < STILL;
    if (still && this.dragging) this.pin(this.near(event.offsetX, event.offsetY));
    const path = this.path, moved = this.dragging && !still;
    this.path = this.dragging = null;
    if (path && path.length > 2) this.choose(this.points.inside(path, this.visible()));
    if (moved) this.draw(); else this.drawOver(getComputedStyle(document.documentElement));
  }

  pointercancel() {
    this.path = this.dragging = null;
    this.draw();
  }
}

function numbers(colour) {
  const number = parseInt(colour.trim().slice(1), 16);
  return [(number >> 16) / 255, ((number >> 8) & 255) / 255, (number & 255) / 255];
}

async function startMap() {
  const points = await Points.read(JSON.parse($("map-data").textContent));
  const section = $("map");
  document.documentElement.classList.add("live"); // before sizes are taken
  const canvas = Canvas.make($("points"), points);
  if (!canvas) {
    document.documentElement.classList.remove("live");
    $("no-map").textContent = "This browser has no WebGL 2, so here is a picture instead of the map.";
    return;
  }
  new MapView(points, canvas);
  section.dataset.ready = "true";
}

if ($("map-data")) startMap().catch((error) => {
  document.documentElement.classList.remove("live");
  $("no-map").textContent = `The map could not be drawn, so here is a picture: ${error.message}`;
});
