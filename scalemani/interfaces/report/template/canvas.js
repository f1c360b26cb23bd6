"use strict";
// The map on a WebGL 2 canvas: tiles, then smooth regions where points are dense, and discs where they are sparse.
// Libraries for this take positions as 32-bit floats in textures, and make code at run time, which the page's policy
// forbids: it allows these scripts and no others for any run.
const SPLINE = `#version 300 es
precision highp float;
vec4 spline(highp sampler2D image, vec2 uv, int level) {
  vec2 size = vec2(textureSize(image, level)), at = uv * size - 0.5, f = fract(at), g = 1.0 - f;
  vec2 second = (4.0 - 6.0 * f * f + 3.0 * f * f * f) / 6.0, fourth = f * f * f / 6.0;
  vec2 low = g * g * g / 6.0 + second, high = 1.0 - low;
  vec2 below = (floor(at) - 0.5 + second / low) / size, above = (floor(at) + 1.5 + fourth / high) / size;
  float lod = float(level);
  return low.y * (low.x * textureLod(image, below, lod) + high.x * textureLod(image, vec2(above.x, below.y), lod))
    + high.y * (low.x * textureLod(image, vec2(below.x, above.y), lod) + high.x * textureLod(image, above, lod));
}
`;
const SHARE_OF_REGIONS = `${SPLINE}
uniform highp sampler2D sums; // of red, green, blue and points
uniform float enough, few, regional; // points: for an average, and at which a region begins and ends to be smooth
uniform float splined; // pixels of its level that a spline averages over
float smoothShare(float held) { return held <= few ? 0.0 : min(1.0, log(held / few) / log(regional / few)); }
`;
// A draw from 0 to 1 of a pixel, the same each time: pcg3d of Jarzynski and Olano (2020).
const DRAWS = `
precision highp int;
float drawn(vec2 pixel, uint number) {
  uvec3 v = uvec3(uvec2(pixel), number) * 1664525u + 1013904223u;
  v.x += v.y * v.z; v.y += v.z * v.x; v.z += v.x * v.y;
  v ^= v >> 16u;
  v.x += v.y * v.z; v.y += v.z * v.x; v.z += v.x * v.y;
  return float(v.x >> 8u) / 16777216.0;
}
`;
const DISC_SHADER = `${SHARE_OF_REGIONS}
in vec2 place;
in uint code;
uniform vec4 view; // scale and offset from [0, 1] to clip space
uniform vec2 part; // of the sums, that is in view
uniform int widest;
uniform float size;
uniform sampler2D palette;
out vec4 colour; // red, green, blue, and how far the place is part of a region
void main() {
  vec2 clip = place * view.xy + view.zw;
  float share = smoothShare(splined * exp2(2.0 * float(widest)) * spline(sums, (clip * 0.5 + 0.5) * part, widest).a);
  gl_Position = vec4(share < 1.0 ? clip : vec2(2.0), 0.0, 1.0);
  gl_PointSize = size;
  colour = vec4(texelFetch(palette, ivec2(int(code) % 256, int(code) / 256), 0).rgb, share);
}`;
// Colours are those of the disc on top, or of the region that discs dissolve into: they are not mixed, opacities are.
const DISC_COLOUR = `#version 300 es
precision highp float;
${DRAWS}
in vec4 colour;
uniform float opacity;
uniform float size;
out vec4 pixel;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  float alpha = opacity * clamp(size * 0.5 - away + 0.5, 0.0, 1.0);
  if (alpha <= 0.0 || drawn(gl_FragCoord.xy, 0u) < colour.a) discard;
  pixel = vec4(colour.rgb, alpha);
}`;
const REGION_SHADER = `#version 300 es
in uvec2 cell;
uniform vec2 cells; // a side of the sums
out vec2 uv;
void main() {
  uv = (vec2(cell) + vec2(gl_VertexID & 1, gl_VertexID >> 1)) / cells;
  gl_Position = vec4(uv * 2.0 - 1.0, 0.0, 1.0);
}`;
// The narrowest average that holds enough points, by the next wider one, which has less noise; or the colour of one of the
// points that it is of, found by going from a pixel of its level down to ever finer ones.
const REGION_COLOUR = `${SHARE_OF_REGIONS}${DRAWS}
in vec2 uv;
uniform bool averaged;
uniform int finest, widest;
uniform float blended; // pixels of its level that a bilinear look at it averages over
uniform float thinnest, contrast, highest, strength; // opacities, ratios of densities, the highest density, a factor
out vec4 pixel;
float pointsOf(ivec2 cell, int level) {
  ivec2 last = textureSize(sums, level) - 1;
  return cell == clamp(cell, ivec2(0), last) ? texelFetch(sums, cell, level).a : 0.0;
}
vec4 weightsOf(float f, bool cubic) {
  float g = 1.0 - f;
  if (!cubic) return vec4(0.0, g, f, 0.0);
  return vec4(g * g * g, 4.0 - 6.0 * f * f + 3.0 * f * f * f, 4.0 - 6.0 * g * g + 3.0 * g * g * g, f * f * f) / 6.0;
}
vec3 onePoint(int level) {
  vec2 at = uv * vec2(textureSize(sums, level)) - 0.5;
  ivec2 base = ivec2(floor(at)) - 1, cell = base + 1;
  vec4 across = weightsOf(fract(at.x), level == widest), up = weightsOf(fract(at.y), level == widest);
  float total = 0.0;
  uint number = 16u;
  for (int tap = 0; level > 0 && tap < 16; tap++) {
    ivec2 other = base + ivec2(tap & 3, tap >> 2);
    float weight = across[tap & 3] * up[tap >> 2], mass = weight > 0.0 ? weight * pointsOf(other, level) : 0.0;
    total += mass;
    if (drawn(gl_FragCoord.xy, number++) * total < mass) cell = other;
  }
  if (level == 0) cell = ivec2(uv * vec2(textureSize(sums, 0)));
  for (int finer = level - 1; finer >= 0; finer--) {
    ivec2 first = cell * 2;
    total = 0.0;
    for (int part = 0; part < 4; part++) {
      ivec2 other = first + ivec2(part & 1, part >> 1);
      float mass = texelFetch(sums, other, finer).a;
      total += mass;
      if (drawn(gl_FragCoord.xy, number++) * total < mass) cell = other;
    }
  }
  return texelFetch(sums, cell, 0).rgb;
}
void main() {
  vec4 wide = spline(sums, uv, widest);
  float share = smoothShare(splined * exp2(2.0 * float(widest)) * wide.a), left = 1.0;
  pixel = vec4(0.0);
  if (share == 0.0) return;
  vec4 mixed = vec4(0.0), finer = textureLod(sums, uv, float(finest));
  int chosen = finest;
  for (int level = finest; level < widest; level++) {
    vec4 wider = level + 1 == widest ? wide : textureLod(sums, uv, float(level + 1));
    float pixels = level == 0 ? 1.0 : blended * exp2(2.0 * float(level));
    float used = left * clamp(log2(max(pixels * wider.a / enough, 1e-9)) + 1.0, 0.0, 1.0);
    mixed += used * finer;
    if (drawn(gl_FragCoord.xy, uint(level)) * mixed.a < used * finer.a) chosen = level;
    left -= used;
    finer = wider;
  }
  mixed += left * finer;
  if (drawn(gl_FragCoord.xy, uint(widest)) * mixed.a < left * finer.a) chosen = widest;
  float level = clamp(log(1.0 + contrast * mixed.a / highest) / log(1.0 + contrast), 0.0, 1.0);
  float alpha = min(1.0, strength * share * mix(thinnest, 1.0, level));
  pixel = vec4(averaged ? mixed.rgb / max(mixed.a, 1e-9) : onePoint(chosen), alpha);
}`;
const IMAGE_SHADER = `#version 300 es
uniform vec4 view;
out vec2 place;
void main() {
  place = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
}`;
const IMAGE_COLOUR = `#version 300 es
precision highp float;
in vec2 place;
uniform sampler2D image;
uniform bool straight; // whether colours are not multiplied by their opacity yet
out vec4 pixel;
void main() {
  pixel = texture(image, place);
  if (straight) pixel.rgb *= pixel.a;
}`;
const TILE_COLOUR = `${SPLINE}
in vec2 place;
uniform highp sampler2D image;
uniform float faint, level, near; // the grid, of which a part is taken from the next; how far tiles run into each other
out vec4 pixel;
void main() {
  vec4 colour = texture(image, place);
  if (near > 0.0) {
    vec4 even = mix(spline(image, place, int(level)), spline(image, place, int(ceil(level))), fract(level));
    colour = mix(colour, even, near);
  }
  pixel = faint * colour;
}`;
const FAINT = 0.12, FAINT_TILES = 0.3; // of the opacity of what is not selected, where something is
const EARLIER = 0.25; // of a level, by which averages are wider rather than grainy
const MOST_COARSER = 3; // halvings of the pixels a side on which points are counted while the map moves
const MOST_DOUBLINGS = 2; // of a pixel, up to the tiles of a few pixels that eyes take for even
const DISTINCT = 2.5; // pixels: the radius of discs that are seen one by one, and hide no tiles
const UNITS = { palette: 0, tiles: 1, sums: 2, regions: 3, layer: 4 }; // of textures

class Canvas {
  // Returns null where there is no WebGL 2.
  static make(element, points) {
    const gl = element.getContext("webgl2", { antialias: false });
    return gl ? new Canvas(gl, points) : null;
  }

  constructor(gl, points) {
    this.gl = gl;
    this.points = points;
    this.shading = points.description.shading;
    this.discs = linked(gl, DISC_SHADER, DISC_COLOUR);
    this.regions = linked(gl, REGION_SHADER, REGION_COLOUR);
    this.image = linked(gl, IMAGE_SHADER, IMAGE_COLOUR);
    this.tile = linked(gl, IMAGE_SHADER, TILE_COLOUR);
    this.palette = gl.createTexture();
    this.buffers = { place: gl.createBuffer(), code: gl.createBuffer(), cell: gl.createBuffer() };
    this.vertices = { discs: gl.createVertexArray(), regions: gl.createVertexArray() };
    this.targets = { regions: gl.createFramebuffer(), layer: gl.createFramebuffer() };
    this.empty = gl.createVertexArray();
    gl.enable(gl.BLEND);
    this.blend(true);
    this.layers = [];
    this.places = new Uint16Array(2 * points.count); // of the points in their shuffled order, as codes and chosen are
    this.codes = new Uint16Array(points.count);
    this.chosen = new Uint8Array(points.count);
    this.setPlaces();
    if (points.tiles) this.makeTiles();
  }

  // Have colours mixed, or that of what is drawn last in place of the others; opacities add up.
  blend(mixed) {
    const gl = this.gl;
    gl.blendFuncSeparate(gl.ONE, mixed ? gl.ONE_MINUS_SRC_ALPHA : gl.ZERO, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  setPlaces() {
    const { x, y, order, count } = this.points;
    for (let k = 0; k < count; k++) { this.places[2 * k] = x[order[k]]; this.places[2 * k + 1] = y[order[k]]; }
  }

  setCodes(codes) {
    const { order, count } = this.points;
    for (let k = 0; k < count; k++) this.codes[k] = codes ? codes[order[k]] : 0;
  }

  setChosen(chosen) {
    const { order, count } = this.points;
    this.anyChosen = 0;
    for (let k = 0; k < count; k++) this.anyChosen |= this.chosen[k] = chosen[order[k]];
  }

  // Colours (#rrggbb) by code, which codes are drawn, and whether colours are averaged, as those of values.
  setPalette(colours, shown, averaged) {
    this.averaged = averaged;
    const gl = this.gl, height = Math.max(1, Math.ceil(colours.length / 256));
    const texels = new Uint8Array(1024 * height);
    colours.forEach((colour, code) => {
      const number = parseInt(colour.slice(1), 16);
      texels.set([number >> 16, (number >> 8) & 255, number & 255, 255], 4 * code);
    });
    this.inks = Float32Array.from(texels, (channel) => channel / 255);
    this.shown = Uint8Array.from(shown);
    this.useTexture("palette", this.palette);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }

  useTexture(name, texture) {
    this.gl.activeTexture(this.gl.TEXTURE0 + UNITS[name]);
    this.gl.bindTexture(this.gl.TEXTURE_2D, texture);
  }

  makeTiles() {
    const gl = this.gl;
    this.tiles = gl.createTexture();
    this.useTexture("tiles", this.tiles);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAX_LEVEL, this.points.tiles.grids.length - 1);
  }

  // Colours (#rrggbb) of the tiles by the codes of a column, and which codes are drawn.
  setTiles(column, colours, shown) {
    const gl = this.gl;
    this.useTexture("tiles", this.tiles);
    this.points.tiles.grids.forEach((grid, level) => {
      const texels = this.points.tiles.texels(grid, column, colours, shown);
      gl.texImage2D(gl.TEXTURE_2D, level, gl.RGBA8, grid.side, grid.side, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    });
  }

  // Draw with a view (scale and offset from [0, 1] to clip space) the first `count` of the shuffled points, coarsely where
  // the view is `moving`; `size` and `strength` are what a person chooses. Points without a label, or those not selected,
  // are a layer below the others.
  draw({ view, size, strength, paper, missing, count, moving, behind }) {
    const gl = this.gl, tiled = this.points.tiles && behind, ratio = gl.canvas.width / gl.canvas.clientWidth;
    if (!Number.isFinite(ratio)) return 0; // nothing of the canvas is seen
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    gl.clearColor(...paper, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    // While the map moves, fewer points are counted on so many fewer pixels that an average of as many is as fine as they
    // are; where that would be too few pixels, averages are wider than one.
    const standsFor = this.points.count / Math.max(1, count), lost = Math.round(Math.log2(standsFor) / 2 + EARLIER);
    const coarser = moving ? Math.min(MOST_COARSER, Math.max(1, lost)) : 0;
    const wider = lost - coarser, larger = Math.round(size) + wider;
    const usual = Math.min(CELL_LEVEL, Math.max(0, USUAL_LEVEL + wider));
    const finest = Math.min(CELL_LEVEL - 1, Math.max(0, larger)), widest = Math.min(CELL_LEVEL, Math.max(finest + 1, USUAL_LEVEL + larger));
    const step = Math.max(1, Math.round(ratio)) * 2 ** coarser;
    const grid = { view, moving, step, finest, widest, usual, below: this.anyChosen ? null : missing };
    this.countPoints(grid, count);
    this.makeRoom(this.layers[0]);
    if (tiled) this.drawTiles(grid, this.anyChosen ? FAINT_TILES : 1);
    const { shading } = this, inView = standsFor * this.layers.reduce((sum, layer) => sum + layer.count, 0);
    const highest = Math.max(...this.layers.map((layer) => layer.highest(shading.percent, usual)));
    const radius = discRadius(inView, gl.canvas.clientWidth * gl.canvas.clientHeight, shading);
    grid.crowd = Math.max(1, radius / shading.uncrowded) ** 2;
    const points = Math.max(1, 2 * ratio * radius * 2 ** size), opacity = Math.min(1, strength * loneOpacity(inView, shading));
    const distinct = tiled ? Math.min(1, Math.max(0, radius - shading.smallest) / (DISTINCT - shading.smallest)) : 1;
    let discs = 0;
    this.layers.forEach((layer, number) => {
      if (!layer.count) return;
      const faint = this.anyChosen && number === 0 ? FAINT : 1;
      this.uploadSums(layer, widest);
      this.beginLayer();
      if (!tiled) this.drawRegions(layer, grid, highest, faint * strength); // tiles are regions of all points
      discs += this.drawDiscs(number, grid, count, points, faint * opacity * distinct);
      this.endLayer();
    });
    return discs;
  }

  // Draw tiles over the place that a view gives them. Where they are larger than pixels, counts of a few points would be
  // grains: there the grid is taken whose tiles hold enough points, and its tiles run into each other. While the map moves
  // that is done on as few pixels as points are counted on.
  drawTiles(grid, faint) {
    const gl = this.gl, [sx, sy, tx, ty] = grid.view, { grids, mean } = this.points.tiles, [finest] = grids;
    const [wide, tall] = grid.moving ? this.part(grid.step) : [1, 1], step = grid.moving ? grid.step : 1;
    const pixels = Math.min(sx * gl.canvas.width, sy * gl.canvas.height) / (2 * finest.side * step);
    const doublings = Math.log2(pixels), smooth = Math.max(0, Math.log2(this.shading.enough / mean) / 2);
    const level = Math.max(-doublings, Math.min(smooth, doublings + MOST_DOUBLINGS));
    this.beginImage(this.tile, "tiles", [sx * wide, sy * tall, (tx + 1) * wide - 1, (ty + 1) * tall - 1]);
    gl.uniform1f(gl.getUniformLocation(this.tile, "faint"), faint);
    gl.uniform1f(gl.getUniformLocation(this.tile, "level"), Math.min(grids.length - 1, Math.max(0, level)));
    gl.uniform1f(gl.getUniformLocation(this.tile, "near"), Math.min(1, Math.max(0, doublings + MOST_DOUBLINGS)));
    const draw = () => gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    if (grid.moving) this.throughImage(grid, null, draw); else draw();
  }

  // Make a program ready that draws the texture of a unit over the place that a view gives it.
  beginImage(program, unit, view) {
    const gl = this.gl;
    gl.useProgram(program);
    gl.bindVertexArray(this.empty);
    gl.uniform4fv(gl.getUniformLocation(program, "view"), view);
    gl.uniform1i(gl.getUniformLocation(program, "image"), UNITS[unit]);
  }

  // Call for the first `count` points that are shown and in view, with each its layer and its pixel of the grid.
  visit({ view: [sx, sy, tx, ty], step, below }, count, call) {
    const { places, codes, chosen, shown, anyChosen } = this, two = anyChosen || below !== null;
    const [width, height] = this.extent(step), wide = this.gl.canvas.width / step / 2, tall = this.gl.canvas.height / step / 2;
    const ax = (sx * wide) / 65535, ay = (sy * tall) / 65535, bx = (tx + 1) * wide, by = (ty + 1) * tall;
    for (let k = 0; k < count; k++) {
      const code = codes[k];
      if (!shown[code]) continue;
      const column = Math.floor(ax * places[2 * k] + bx), row = Math.floor(ay * places[2 * k + 1] + by);
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      call(k, two ? (anyChosen ? chosen[k] : Number(code !== below)) : 0, column, row);
    }
  }

  extent(step) {
    return [Math.ceil(this.gl.canvas.width / step), Math.ceil(this.gl.canvas.height / step)];
  }

  countPoints(grid, count) {
    const [width, height] = this.extent(grid.step), number = this.anyChosen || grid.below !== null ? 2 : 1;
    if (this.layers.length !== number || !this.layers[0].holds(width, height)) {
      this.layers = Array.from({ length: number }, () => new Density(width, height));
    }
    const { layers, codes, inks } = this;
    for (const layer of layers) layer.clear(this.averaged);
    this.visit(grid, count, (k, layer, column, row) => layers[layer].add(column, row, inks, 4 * codes[k]));
    for (const layer of layers) layer.halve(CELL_LEVEL);
  }

  uploadSums(layer, deepest) {
    const gl = this.gl;
    this.useTexture("sums", this.sums.sums);
    for (let level = 0; level <= deepest; level++) {
      const { width, height, sums } = layer.levels[level];
      gl.texSubImage2D(gl.TEXTURE_2D, level, 0, 0, width, height, gl.RGBA, gl.FLOAT, sums);
    }
  }

  // Make textures for sums, for regions that are drawn from them, and for a layer on the canvas, unless they are there.
  makeRoom({ width, height }) {
    const gl = this.gl, { width: wide, height: tall } = gl.canvas;
    if (this.room?.every((side, number) => side === [width, height, wide, tall][number])) return;
    for (const name of ["sums", "regions", "layer"]) if (this.sums) gl.deleteTexture(this.sums[name]);
    this.room = [width, height, wide, tall];
    this.sums = { width, height };
    for (const [unit, across, up, levels, format, filter] of [
      ["sums", width, height, CELL_LEVEL + 1, gl.RGBA16F, gl.LINEAR_MIPMAP_NEAREST],
      ["regions", width, height, 1, gl.RGBA8, gl.LINEAR],
      ["layer", wide, tall, 1, gl.RGBA8, gl.NEAREST],
    ]) {
      this.useTexture(unit, this.sums[unit] = gl.createTexture());
      gl.texStorage2D(gl.TEXTURE_2D, levels, format, across, up);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
      if (!this.targets[unit]) continue;
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.targets[unit]);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.sums[unit], 0);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  // Draw into a texture, cleared, of so many pixels; null is the canvas, which stays as it is.
  drawInto(target, width, height) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.viewport(0, 0, width, height);
    if (!target) return;
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  beginLayer() {
    this.drawInto(this.targets.layer, this.gl.canvas.width, this.gl.canvas.height);
    this.blend(false);
  }

  endLayer() {
    const gl = this.gl;
    this.drawInto(null, gl.canvas.width, gl.canvas.height);
    this.blend(true);
    this.drawImage("layer", [2, 2, -1, -1], true);
  }

  drawImage(unit, view, straight) {
    const gl = this.gl;
    this.beginImage(this.image, unit, view);
    gl.uniform1i(gl.getUniformLocation(this.image, "straight"), Number(straight));
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  // Uniforms that regions and discs have in common; returns where others of the program are.
  begin(program, { widest, crowd }) {
    const gl = this.gl, { enough, few } = this.shading, place = (name) => gl.getUniformLocation(program, name);
    gl.useProgram(program);
    gl.uniform1i(place("sums"), UNITS.sums);
    gl.uniform1f(place("enough"), enough);
    gl.uniform1f(place("few"), few * crowd);
    gl.uniform1f(place("regional"), (enough / 2) * crowd);
    gl.uniform1f(place("splined"), SPLINE_AREA);
    gl.uniform1i(place("widest"), widest);
    return place;
  }

  // Draw regions in the cells that hold points or lie next to one that does.
  drawRegions(layer, grid, highest, strength) {
    const gl = this.gl, place = this.begin(this.regions, grid), cells = layer.filledCells();
    gl.uniform2f(place("cells"), layer.width >> CELL_LEVEL, layer.height >> CELL_LEVEL);
    gl.uniform1i(place("averaged"), Number(this.averaged));
    gl.uniform1i(place("finest"), grid.finest);
    gl.uniform1f(place("blended"), BLENDED_AREA);
    gl.uniform1f(place("thinnest"), this.shading.thinnest);
    gl.uniform1f(place("contrast"), this.shading.contrast);
    gl.uniform1f(place("highest"), highest);
    gl.uniform1f(place("strength"), strength);
    this.fill("regions", "cell", cells, 2, 1);
    this.throughImage(grid, this.targets.layer, () => gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, cells.length / 2));
  }

  // Have something drawn at the resolution of the sums, and that on the canvas (null) or, colours as they are, on a layer.
  throughImage(grid, target, drawn) {
    const gl = this.gl, [wide, tall] = this.part(grid.step);
    this.drawInto(this.targets.regions, this.sums.width, this.sums.height);
    drawn();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    this.useTexture("regions", this.sums.regions);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, target ? gl.NEAREST : gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, target ? gl.NEAREST : gl.LINEAR);
    this.drawImage("regions", [2 / wide, 2 / tall, -1, -1], false);
  }

  // The part of the sums that is in view, across and up.
  part(step) {
    return [this.gl.canvas.width / step / this.sums.width, this.gl.canvas.height / step / this.sums.height];
  }

  // Draw the points of a layer that are not within smooth regions, and return how many these may be.
  drawDiscs(number, grid, count, size, opacity) {
    const gl = this.gl, layer = this.layers[number], most = Math.min(layer.count, count);
    const places = new Uint16Array(2 * most), codes = new Uint16Array(most), regional = (this.shading.enough / 2) * grid.crowd;
    let drawn = 0;
    this.visit(grid, count, (k, of, column, row) => {
      if (of !== number || layer.least(column, row, grid.widest) >= regional) return;
      places[2 * drawn] = this.places[2 * k];
      places[2 * drawn + 1] = this.places[2 * k + 1];
      codes[drawn++] = this.codes[k];
    });
    const place = this.begin(this.discs, grid);
    this.fill("discs", "place", places.subarray(0, 2 * drawn), 2, 0, true);
    this.fill("discs", "code", codes.subarray(0, drawn), 1, 0);
    gl.uniform4fv(place("view"), grid.view);
    gl.uniform2fv(place("part"), this.part(grid.step));
    gl.uniform1f(place("size"), size);
    gl.uniform1f(place("opacity"), opacity);
    gl.uniform1i(place("palette"), UNITS.palette);
    gl.drawArrays(gl.POINTS, 0, drawn);
    return drawn;
  }

  // Give 16-bit integers to an input of a program, each to one vertex or (`divisor` 1) to one instance.
  fill(program, name, values, size, divisor, normalized = false) {
    const gl = this.gl, place = gl.getAttribLocation(this[program], name);
    gl.bindVertexArray(this.vertices[program]);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STREAM_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribDivisor(place, divisor);
    if (normalized) gl.vertexAttribPointer(place, size, gl.UNSIGNED_SHORT, true, 0, 0);
    else gl.vertexAttribIPointer(place, size, gl.UNSIGNED_SHORT, 0, 0);
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
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
    throw new Error([program && gl.getProgramInfoLog(program), ...gl.getAttachedShaders(program).map((one) => gl.getShaderInfoLog(one))].join(" "));
  }
  return program;
}
