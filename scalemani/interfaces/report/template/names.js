"use strict";
// Names on the map: of classes, and of points where there is room. They follow the view when it rests.
const NAMED_POINTS = 50000; // that say where the middle of a class is
const MOST_WORDS = 60, WORDS_TRIED = 3000; // texts of points in view that are drawn, and looked at

// The names of classes at the middles of their points in view, largest first, and texts of points where there is room.
function drawNames(view, pen, style) {
  const column = view.described(), { points } = view, taken = [];
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = style.getPropertyValue("--paper");
  const write = (text, x, y) => {
    const name = text.slice(0, 40), half = pen.measureText(name).width / 2 + 3, box = [x - half, y - 10, x + half, y + 10];
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) return false;
    taken.push(box);
    pen.strokeText(name, x, y);
    pen.fillText(name, x, y);
    return true;
  };
  pen.font = "600 13px system-ui, sans-serif";
  if (column?.classes) {
    view.middles = view.middles || middles(points, points.codes[view.column], column.classes.length, view.inView());
    const order = column.classes.map((_, code) => code).sort((a, b) => column.counts[b] - column.counts[a] || a - b);
    for (const code of order) if (view.shown[code] && view.middles[code]) write(column.classes[code], ...view.toScreen(...view.middles[code]));
  }
  pen.font = "12px system-ui, sans-serif";
  if (points.texts.length) {
    const [texts] = points.texts, written = [];
    for (const point of view.words || pointsTried(view)) {
      const [x, y] = view.screenOf(point);
      if (texts[point] && write(texts[point], x, y - 12)) written.push(point);
      if (written.length >= MOST_WORDS) break;
    }
    view.words = view.words || written;
  }
  pen.strokeStyle = style.getPropertyValue("--ink");
  pen.lineWidth = 2;
}

// Some points in view that are shown, for their texts.
function pointsTried(view) {
  const tried = [], { points } = view, inView = view.inView(), visible = view.visible();
  for (let k = 0; k < points.count && tried.length < WORDS_TRIED; k++) {
    const point = points.order[k];
    if (inView(point) && visible(point)) tried.push(point);
  }
  return tried;
}

// The median place of each class among some of the points in view.
function middles(points, codes, count, inView) {
  const places = Array.from({ length: count }, () => [[], []]);
  for (let k = 0; k < Math.min(points.count, NAMED_POINTS); k++) {
    const point = points.order[k], place = places[codes[point]];
    if (place && inView(point)) { place[0].push(points.x[point]); place[1].push(points.y[point]); }
  }
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1] / 65535;
  return places.map(([x, y]) => (x.length ? [median(x), median(y)] : null));
}
