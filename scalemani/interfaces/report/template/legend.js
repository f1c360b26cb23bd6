"use strict";
// The legend of a map: boxes that show and hide what has a colour.
//
// A view has `described()`, the column that points are coloured by, `shown` by code, `filter()`, which draws by these,
// and `legendOfValues(legend, column)`.

function made(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

function makeLegend(view) {
  const legend = document.getElementById("legend"), column = view.described();
  legend.replaceChildren();
  if (!column) return;
  legend.append(made("strong", column.name));
  if (column.classes) legendOfClasses(view, legend, column);
  else view.legendOfValues(legend, column);
}

function legendOfClasses(view, legend, column) {
  const boxes = [];
  for (const [text, on] of [["All", true], ["None", false]]) {
    const button = made("button", text);
    button.type = "button";
    button.addEventListener("click", () => {
      boxes.forEach((box, code) => { box.checked = view.shown[code] = on; });
      view.filter();
    });
    legend.append(button);
  }
  const names = column.missing === null ? column.classes : [...column.classes, "no label"];
  names.forEach((name, code) => {
    boxes.push(legendBox(view, legend, code, `${name} (${column.counts[code].toLocaleString("en")})`));
  });
}

function legendBox(view, legend, code, text) {
  const label = document.createElement("label"), box = document.createElement("input"), swatch = made("span", "");
  const column = view.described();
  Object.assign(box, { type: "checkbox", checked: true });
  box.addEventListener("change", () => { view.shown[code] = box.checked; view.filter(); });
  swatch.className = "swatch";
  swatch.style.background = code === column.missing ? "var(--nothing)" : column.colours[code];
  label.append(box, swatch, text);
  legend.append(label);
  return box;
}
