"use strict";
// Tiles on a canvas by WebGL 2: counts as textures, points as discs. Places are pixels of the canvas, from its lower left.
const FAINTEST = 0.25; // of a pixel with one point
const PICTURE = [`#version 300 es
uniform vec4 place; uniform vec4 part; out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = part.xy + corner * part.zw;
  gl_Position = vec4(place.xy + corner * place.zw, 0, 1);
}`, `#version 300 es
precision mediump float;
uniform sampler2D colours; in vec2 at; out vec4 colour;
void main() { colour = texture(colours, at); }`];
const DISCS = [`#version 300 es
precision highp float;
uniform vec4 place; uniform vec2 look; uniform highp sampler2D palette;
in vec2 point; in float code; flat out vec4 disc;
void main() {
  disc = texelFetch(palette, ivec2(int(code), 0), 0);
  gl_Position = disc.a > 0.0 ? vec4(place.xy + (point + 0.5) / 65536.0 * place.zw, 0, 1) : vec4(2, 2, 2, 1);
  gl_PointSize = look.x;
}`, `#version 300 es
precision highp float;
uniform vec2 look; flat in vec4 disc; out vec4 colour;
void main() {
  float inside = clamp(0.5 + look.x * (0.5 - length(gl_PointCoord - 0.5)), 0.0, 1.0);
  if (inside <= 0.0) discard;
  colour = vec4(disc.rgb, 1) * inside * look.y;
}`];

class Painter {
  static make(canvas, description) {
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, premultipliedAlpha: true });
    return gl && new Painter(gl, description);
  }

  constructor(gl, description) {
    Object.assign(this, { gl, description, column: -1, version: 0 });
    this.pictures = this.program(PICTURE, ["place", "part"]);
    this.discs = this.program(DISCS, ["place", "look"]);
    this.palette = this.texture(gl.NEAREST);
    this.empty = gl.createVertexArray();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(sources, uniforms) {
    const { gl } = this, program = gl.createProgram();
    [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].forEach((kind, place) => {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, sources[place]);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    });
    ["point", "code"].forEach((name, place) => gl.bindAttribLocation(program, place, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    return { program, ...Object.fromEntries(uniforms.map((name) => [name, gl.getUniformLocation(program, name)])) };
  }

  texture(filter) {
    const { gl } = this, texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, filter);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  // Colours (0 to 255) by code of a column, -1 for none; hidden ones have an opacity of 0.
  colourBy(column, colours) {
    const { gl } = this;
    Object.assign(this, { column, colours, version: this.version + 1 });
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, colours.length, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, Uint8Array.from(colours.flat()));
  }

  // The texture of a tile of counts, with the colours of now.
  pictureOf(tile) {
    if (tile.version === this.version) return tile.texture;
    const { gl } = this, { counts, codes } = tile.data, code = codes[this.column];
    const pixels = new Uint8Array(4 * counts.length), full = Math.log1p(this.description.shades[tile.level]);
    for (let i = 0; i < counts.length; i++) {
      if (!counts[i]) continue;
      const [red, green, blue, shown] = this.colours[code ? code[i] : 0];
      if (!shown) continue;
      const opacity = Math.min(1, FAINTEST + ((1 - FAINTEST) * Math.log1p(counts[i])) / full);
      pixels[4 * i] = red * opacity;
      pixels[4 * i + 1] = green * opacity;
      pixels[4 * i + 2] = blue * opacity;
      pixels[4 * i + 3] = 255 * opacity;
    }
    if (tile.texture) gl.bindTexture(gl.TEXTURE_2D, tile.texture);
    else tile.texture = this.texture(gl.LINEAR);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, SIDE, SIDE, 0, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    tile.version = this.version;
    return tile.texture;
  }

  // The points of a tile on the processor of graphics, each `step`-th: places, and codes by the column of now.
  pointsOf(tile, step) {
    const { gl } = this, { x, y, codes } = tile.data, code = codes[this.column];
    if (!tile.array) {
      tile.array = gl.createVertexArray();
      tile.buffers = [gl.createBuffer(), gl.createBuffer()];
      const places = new Uint16Array(2 * x.length);
      for (let i = 0; i < x.length; i++) { places[2 * i] = x[i]; places[2 * i + 1] = y[i]; }
      gl.bindVertexArray(tile.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, tile.buffers[0]);
      gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(0);
      gl.enableVertexAttribArray(1);
    }
    gl.bindVertexArray(tile.array);
    if (tile.column !== this.column) {
      tile.column = this.column;
      gl.bindBuffer(gl.ARRAY_BUFFER, tile.buffers[1]);
      gl.bufferData(gl.ARRAY_BUFFER, Uint16Array.from(code ?? { length: x.length }, (value) => value ?? 0), gl.STATIC_DRAW);
    }
    if (tile.step !== step) {
      tile.step = step;
      [2, 1].forEach((size, place) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, tile.buffers[place]);
        gl.vertexAttribPointer(place, size, gl.UNSIGNED_SHORT, false, 2 * size * step, 0);
      });
    }
    return Math.ceil(x.length / step);
  }

  release(tile) {
    const { gl } = this;
    if (tile.texture) gl.deleteTexture(tile.texture);
    if (tile.array) gl.deleteVertexArray(tile.array);
    (tile.buffers ?? []).forEach((buffer) => gl.deleteBuffer(buffer));
    Object.assign(tile, { texture: null, version: null, array: null, buffers: null, column: null, step: null });
  }

  // `pictures` are [tile of counts, tile in it whose part is drawn]; `boxOf` says where a tile is, [left, low, wide, tall],
  // `lookOf` how large and opaque its points are, each `step`-th of which is drawn.
  draw(pictures, leaves, boxOf, lookOf, step) {
    const { gl } = this, { width, height } = gl.canvas;
    const clip = ([left, low, wide, tall]) => [(2 * left) / width - 1, (2 * low) / height - 1, (2 * wide) / width, (2 * tall) / height];
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.pictures.program);
    gl.bindVertexArray(this.empty);
    for (const [tile, inner] of pictures) {
      const share = 2 ** (tile.level - inner.level);
      gl.bindTexture(gl.TEXTURE_2D, this.pictureOf(tile));
      gl.uniform4f(this.pictures.place, ...clip(boxOf(inner)));
      gl.uniform4f(this.pictures.part, inner.x * share - tile.x, inner.y * share - tile.y, share, share);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    gl.useProgram(this.discs.program);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    for (const tile of leaves) {
      const count = this.pointsOf(tile, step);
      gl.uniform4f(this.discs.place, ...clip(boxOf(tile)));
      gl.uniform2f(this.discs.look, ...lookOf(tile));
      gl.drawArrays(gl.POINTS, 0, count);
    }
  }
}
