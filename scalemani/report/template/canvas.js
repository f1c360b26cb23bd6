"use strict";
// The map on a WebGL 2 canvas: points as the graphics card takes them, 7 bytes each, and the tiles behind them.
// Libraries for this take positions as 32-bit floats in textures, and make code at run time, which the page's policy
// forbids: it allows these scripts and no others, whatever a run holds.
const POINT_SHADER = `#version 300 es
in vec2 place;
in uint code;
in uint chosen;
uniform vec4 view; // scale and offset from [0, 1] to clip space
uniform float size;
uniform float faint; // opacity of points outside a selection, 1 where there is none
uniform uint first; // the code that is drawn in this pass alone, or 65535 for all but \`other\`
uniform uint other;
uniform sampler2D palette;
out vec4 colour;
void main() {
  vec4 found = texelFetch(palette, ivec2(int(code) % 256, int(code) / 256), 0);
  bool drawn = found.a > 0.0 && (first == 65535u ? code != other : code == first);
  gl_Position = drawn ? vec4(place * view.xy + view.zw, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = size;
  colour = vec4(found.rgb, chosen == 1u ? 1.0 : faint);
}`;
const POINT_COLOUR = `#version 300 es
precision highp float;
in vec4 colour;
uniform float opacity;
uniform float size;
out vec4 pixel;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  float alpha = opacity * colour.a * (size < 2.5 ? 1.0 : clamp(size * 0.5 - away + 0.5, 0.0, 1.0));
  pixel = vec4(colour.rgb * alpha, alpha);
}`;
const TILE_SHADER = `#version 300 es
uniform vec4 view;
out vec2 place;
void main() {
  place = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
}`;
const TILE_COLOUR = `#version 300 es
precision highp float;
in vec2 place;
uniform sampler2D tiles;
uniform float faint;
out vec4 pixel;
void main() { pixel = faint * texture(tiles, place); }`;
const ALL = 65535;

class Canvas {
  // Returns null where there is no WebGL 2.
  static make(element, points) {
    const gl = element.getContext("webgl2", { antialias: false });
    return gl ? new Canvas(gl, points) : null;
  }

  constructor(gl, points) {
    this.gl = gl;
    this.points = points;
    this.program = linked(gl, POINT_SHADER, POINT_COLOUR);
    this.palette = gl.createTexture();
    this.buffers = { place: gl.createBuffer(), code: gl.createBuffer(), chosen: gl.createBuffer() };
    this.vertices = gl.createVertexArray();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.setPlaces();
    this.setChosen(new Uint8Array(points.count));
    if (points.tiles) this.makeTiles();
  }

  setPlaces() {
    const { x, y, order, count } = this.points;
    const places = new Uint16Array(2 * count);
    for (let k = 0; k < count; k++) { places[2 * k] = x[order[k]]; places[2 * k + 1] = y[order[k]]; }
    this.fill("place", places, () => [2, this.gl.UNSIGNED_SHORT, true]);
  }

  setCodes(codes) {
    const { order, count } = this.points;
    const sorted = new Uint16Array(count);
    if (codes) for (let k = 0; k < count; k++) sorted[k] = codes[order[k]];
    this.fill("code", sorted, () => [1, this.gl.UNSIGNED_SHORT]);
  }

  setChosen(chosen) {
    const { order, count } = this.points;
    const sorted = new Uint8Array(count);
    this.anyChosen = 0;
    for (let k = 0; k < count; k++) this.anyChosen |= sorted[k] = chosen[order[k]];
    this.fill("chosen", sorted, () => [1, this.gl.UNSIGNED_BYTE]);
  }

  fill(name, values, kind) {
    const gl = this.gl, place = gl.getAttribLocation(this.program, name);
    gl.bindVertexArray(this.vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    const [size, type, normalized] = kind();
    if (normalized) gl.vertexAttribPointer(place, size, type, true, 0, 0);
    else gl.vertexAttribIPointer(place, size, type, 0, 0);
  }

  // Colours (#rrggbb) by code, and which codes are drawn.
  setPalette(colours, shown) {
    const gl = this.gl, height = Math.max(1, Math.ceil(colours.length / 256));
    const texels = new Uint8Array(1024 * height);
    colours.forEach((colour, code) => {
      const number = parseInt(colour.slice(1), 16);
      texels.set([number >> 16, (number >> 8) & 255, number & 255, shown[code] ? 255 : 0], 4 * code);
    });
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  makeTiles() {
    const gl = this.gl;
    this.tileProgram = linked(gl, TILE_SHADER, TILE_COLOUR);
    this.tiles = gl.createTexture();
    this.empty = gl.createVertexArray();
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.tiles);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAX_LEVEL, this.points.tiles.grids.length - 1);
  }

  // Colours (#rrggbb) of the tiles by the codes of a column, and which codes are drawn.
  setTiles(column, colours, shown) {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.tiles);
    this.points.tiles.grids.forEach((grid, level) => {
      const texels = this.points.tiles.texels(grid, column, colours, shown);
      gl.texImage2D(gl.TEXTURE_2D, level, gl.RGBA8, grid.side, grid.side, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    });
  }

  // Draw with a view {x, y: scale, u, v: offset}, the first `count` of the shuffled points.
  draw({ view, size, opacity, paper, missing, count, behind }) {
    const gl = this.gl;
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    gl.clearColor(...paper, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (this.points.tiles && behind) {
      gl.useProgram(this.tileProgram);
      gl.bindVertexArray(this.empty);
      gl.uniform4fv(gl.getUniformLocation(this.tileProgram, "view"), view);
      gl.uniform1i(gl.getUniformLocation(this.tileProgram, "tiles"), 1);
      gl.uniform1f(gl.getUniformLocation(this.tileProgram, "faint"), this.anyChosen ? 0.3 : 1);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    const place = (name) => gl.getUniformLocation(this.program, name);
    gl.useProgram(this.program);
    gl.bindVertexArray(this.vertices);
    gl.uniform4fv(place("view"), view);
    gl.uniform1f(place("size"), size);
    gl.uniform1f(place("opacity"), opacity);
    gl.uniform1f(place("faint"), this.anyChosen ? 0.12 : 1);
    gl.uniform1i(place("palette"), 0);
    gl.uniform1ui(place("other"), missing === null ? ALL : missing);
    for (const first of missing === null ? [ALL] : [missing, ALL]) { // points without a label lie under all others
      gl.uniform1ui(place("first"), first);
      gl.drawArrays(gl.POINTS, 0, count);
    }
  }
}

function linked(gl, vertex, fragment) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  return program;
}
