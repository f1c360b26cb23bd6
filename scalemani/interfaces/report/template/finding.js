"use strict";
// What a text is found in, and how selected points differ from the rest. A page holds the class of a point by its code, and
// values as one of 255 levels.
const MOST_COUNTED = 20; // classes of a selection that are listed
const MOST_DIFFERING = 8; // columns that are listed
const FIRST_TOLD = 6; // columns that a tooltip has until others are chosen

// Points (ascending) of which a text, or the name of a class, holds what is searched for.
function matching(points, wanted) {
  const found = new Uint8Array(points.count), text = wanted.trim().toLowerCase();
  if (!text) return new Uint32Array(0);
  points.lower = points.lower || points.texts.map(lowered);
  for (const { texts, starts } of points.lower) {
    for (let point = 0, at = texts.indexOf(text); at >= 0; at = texts.indexOf(text, starts[point])) {
      while (starts[point + 1] <= at) point++;
      found[point++] = 1;
    }
  }
  points.description.columns.forEach((column, number) => {
    const holds = (column.classes || []).map((name) => Number(name.toLowerCase().includes(text)));
    if (!holds.includes(1)) return;
    const codes = points.codes[number], marks = new Uint8Array(column.colours.length);
    marks.set(holds);
    for (let point = 0; point < points.count; point++) found[point] |= marks[codes[point]];
  });
  return pointsOf(found);
}

// All texts in small letters as one, which is searched in a tenth of the time, and where each starts in it.
function lowered(texts) {
  const all = texts.join("\0").toLowerCase();
  const starts = new Uint32Array(texts.length + 1);
  let count = 1;
  for (let at = all.indexOf("\0"); at >= 0; at = all.indexOf("\0", at + 1)) starts[count++] = at + 1;
  if (count !== texts.length) return lowered(texts.map((one) => one.replaceAll("\0", " "))); // one holds what parts them
  starts[texts.length] = all.length + 1;
  return { texts: all, starts };
}

function countCodes(codes, number, points) {
  const counts = new Float64Array(number);
  if (points) for (let k = 0; k < points.length; k++) counts[codes[points[k]]]++;
  else for (let point = 0; point < codes.length; point++) counts[codes[point]]++;
  return counts;
}

// How many selected points (`inner`) and others (`outer`) have each code of a column; those without a label are no part.
function splitCounts(points, number, selected) {
  const column = points.description.columns[number], codes = points.codes[number];
  points.totals = points.totals || [];
  const total = points.totals[number] = points.totals[number] || countCodes(codes, column.colours.length);
  const inner = countCodes(codes, column.colours.length, selected), outer = total.map((count, code) => count - inner[code]);
  if (column.missing !== null) inner[column.missing] = outer[column.missing] = 0;
  const sum = (counts) => counts.reduce((all, count) => all + count, 0);
  return { column, inner, outer, n: sum(inner), m: sum(outer) };
}

// Columns, those first in which selected points differ most from others, from 0 to 1: of classes half the sum of the
// differences of their shares, of values the largest difference of the shares below one (Kolmogorov and Smirnov).
function differing(points, selected) {
  const found = points.description.columns.map((_, number) => {
    const { column, inner, outer, n, m } = splitCounts(points, number, selected);
    if (!n || !m) return null;
    const shares = [...inner].map((count, code) => [count / n, outer[code] / m]);
    if (column.classes) {
      const apart = shares.map(([one, other]) => one - other), most = apart.indexOf(Math.max(...apart));
      const words = shares[most].map((share) => `${column.classes[most]}: ${percent(share)}`);
      return { name: column.name, effect: apart.reduce((sum, one) => sum + Math.abs(one), 0) / 2, words };
    }
    let effect = 0;
    const sums = [0, 0], medians = [null, null];
    shares.forEach((both, code) => {
      both.forEach((share, side) => {
        sums[side] += share;
        if (medians[side] === null && sums[side] >= 0.5) medians[side] = code;
      });
      effect = Math.max(effect, Math.abs(sums[0] - sums[1]));
    });
    return { name: column.name, effect, words: medians.map((code) => `median about ${textOf(column, code ?? 0)}`) };
  });
  return found.filter(Boolean).sort((a, b) => b.effect - a.effect).slice(0, MOST_DIFFERING);
}

// Classes of a column by how many of the selected points have them.
function counted(points, number, selected) {
  const { column, inner, outer, n, m } = splitCounts(points, number, selected);
  const classes = column.classes.map((name, code) => ({ name, count: inner[code], share: inner[code] / Math.max(1, n), other: outer[code] / Math.max(1, m) }));
  return classes.filter(({ count }) => count).sort((a, b) => b.count - a.count);
}

function percent(share) { return `${(100 * share).toFixed(1)} %`; }

function textOf(column, code) {
  const last = column.colours.length - 2;
  return column.classes?.[code] ?? (column.limits[0] + (code / last) * (column.limits[1] - column.limits[0])).toPrecision(3);
}

// What the page knows of selected points, as a table for spreadsheets.
function tableOf(points, selected) {
  const { texts, columns, axes } = points.description;
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const place = (axis, step) => (axis.low + (step / 65535) * (axis.high - axis.low)).toPrecision(6);
  const shownAxes = axes.filter(({ name }) => name !== "nothing");
  const lines = [["row", ...texts, ...columns.map(({ name }) => name), ...shownAxes.map(({ name }) => name)]];
  for (const point of selected) {
    const labels = columns.map((column, number) => {
      const code = points.codes[number][point];
      return code === column.missing ? "" : textOf(column, code);
    });
    const places = shownAxes.map((axis, number) => place(axis, points.axes[number][point]));
    lines.push([String(points.row(point)), ...points.texts.map((one) => one[point]), ...labels, ...places]);
  }
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

// A table of texts with a heading, as elements.
function tableElement(title, head, rows) {
  const table = document.createElement("table"), caption = made("caption", title), top = document.createElement("thead");
  const line = (cells, kind, body) => {
    const row = document.createElement("tr");
    cells.forEach((text, place) => {
      const cell = made(place ? kind : "th", text);
      cell.scope = place ? (kind === "th" ? "col" : "") : kind === "th" ? "col" : "row";
      row.append(cell);
    });
    body.append(row);
  };
  const body = document.createElement("tbody");
  line(head, "th", top);
  for (const cells of rows) line(cells, "td", body);
  table.append(caption, top, body);
  return table;
}

// The tables about selected points, with the classes of a column (-1: of the first that has some).
function selectionTables(points, selected, colour) {
  const { columns } = points.description, first = columns[colour]?.classes ? colour : columns.findIndex(({ classes }) => classes);
  const tables = [];
  if (first >= 0) {
    const classes = counted(points, first, selected), more = classes.length - MOST_COUNTED;
    const rows = classes.slice(0, MOST_COUNTED).map(({ name, count, share, other }) => [name, count.toLocaleString("en"), percent(share), percent(other)]);
    if (more > 0) rows.push([`and ${more.toLocaleString("en")} more`, "", "", ""]);
    tables.push(tableElement(`Selected points by ${columns[first].name}`, ["Class", "Points", "Of the selection", "Of the rest"], rows));
  }
  const rows = differing(points, selected).map(({ name, effect, words }) => [name, effect.toFixed(2), ...words]);
  if (rows.length) tables.push(tableElement("Columns that differ most", ["Column", "Difference, 0 to 1", "Selection", "Rest"], rows));
  return tables;
}
