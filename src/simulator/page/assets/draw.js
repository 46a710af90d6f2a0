"use strict";
// The picture, on canvases. What is closer together than a pixel is counted, not drawn one by one.

const ARROWS_MAX = 600;
const LABEL = 150;

class Painter {
  constructor(view) {
    this.view = view;
    this.canvas = Object.fromEntries(["overview", "axis", "lanes"].map((name) => [name, document.getElementById(name)]));
    this.groupColour = view.groups.map((group) => `--g-${group.name}`);
    this.kindColour = {};
    for (const kind of view.run.summary.kinds) {
      const own = { committed: "--committed", rejected: "--rejected", delivered: "--acknowledged" }[kind.name];
      if (own) this.kindColour[kind.number] = own;
    }
    this.readColours();
    this.density = null;
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["--paper", "--card", "--ink", "--quiet", "--line", "--stripe", "--accent", "--chosen", "--found", "--bad",
      ...this.groupColour, ...this.view.run.summary.classes.map((name) => `--${name}`)];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
  }

  // A canvas fitted to its place, cleared.
  prepare(name, width, height) {
    const canvas = this.canvas[name];
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return pen;
  }

  x(at) {
    return (at - this.view.from) / (this.view.to - this.view.from) * this.width;
  }

  draw() {
    const { view } = this;
    this.width = Math.max(50, document.getElementById("scroll").clientWidth - LABEL);
    this.drawOverview();
    this.drawAxis();
    const pen = this.prepare("lanes", this.width, view.height);
    for (const lane of view.lanes) this.drawLane(pen, lane);
    this.drawEvents(pen);
    this.drawArrows(pen);
    this.drawChosen(pen);
  }

  drawLane(pen, lane) {
    const { view, colours } = this;
    if (lane.height === 0) return;
    pen.fillStyle = lane.number % 2 ? colours["--stripe"] : colours["--card"];
    pen.fillRect(0, lane.top, this.width, lane.height);
    pen.fillStyle = colours["--line"];
    pen.fillRect(0, lane.top + lane.height - 1, this.width, 1);
    if (!lane.shown) return;
    const { span, at } = view.run;
    let operations = 0;
    const last = {};
    for (const one of view.spansOf.of(lane.number)) {
      const name = view.run.summary.classes[span.kind[one]];
      const begin = at[span.from[one]];
      if (begin > view.to) break;
      const isOperation = view.isOperation[span.kind[one]];
      if (isOperation) operations++;
      const ends = span.to[one] >= 0;
      const end = ends ? at[span.to[one]] : isOperation ? begin : view.end;
      if (end < view.from) continue;
      const [left, right] = [Math.max(-2, this.x(begin)), Math.min(this.width + 2, this.x(end))];
      if (isOperation) { this.drawOperation(pen, lane, name, left, right, operations, ends, last); continue; }
      const track = lane.tracks.find((known) => known.classes.has(name));
      if (track === undefined) continue;
      pen.fillStyle = colours[`--${name}`];
      pen.fillRect(left, lane.top + track.top, Math.max(1.5, right - left), track.height);
      if (right - left > 30) this.label(pen, lane, name, view.spanText(one), left, right, lane.top + track.top, track.height);
    }
  }

  label(pen, lane, name, text, left, right, top, height) {
    pen.save();
    pen.beginPath();
    pen.rect(left, top, right - left, height);
    pen.clip();
    pen.fillStyle = this.colours["--ink"];
    const words = { phase: text, "gave-up": `gave up: ${text}`, down: text, leads: text, owns: `serves ${shortTopics(text)}`,
      disk: `disk: ${text}`, serving: lane.kind === "client" ? "running" : "serving", clock: text, slow: text, cut: text }[name] ?? name;
    pen.font = height < BAND ? "10px system-ui, sans-serif" : "11px system-ui, sans-serif";
    pen.fillText(words, Math.max(left, 0) + 4, top + height / 2 + 0.5);
    pen.restore();
  }

  // Operations overlap: one below the other, in turn. Those that end in the same pixel are drawn once.
  drawOperation(pen, lane, name, left, right, number, ends, last) {
    const row = number % OPERATIONS;
    const key = `${row} ${name}`;
    const [from, to] = [Math.round(left), Math.round(right)];
    if (last[key] === `${from} ${to}`) return;
    last[key] = `${from} ${to}`;
    pen.fillStyle = this.colours[`--${name}`];
    const top = lane.top + lane.operations + row * 4;
    pen.fillRect(left, top, Math.max(1, right - left), 3);
    if (!ends) pen.fillRect(left, top + 1, 9, 1);
  }

  // Each group of each lane is a strip; a pixel of it is as strong as there are events in it.
  drawEvents(pen) {
    const { view } = this;
    const { run } = view;
    const [first, past] = [lowerBound(run.at, view.from), lowerBound(run.at, view.to + 1)];
    const pixels = Math.ceil(this.width) + 1;
    const groups = view.groups.length;
    const slots = view.nodeLanes * groups;
    const counts = new Uint32Array(slots * pixels);
    const top = new Int32Array(slots * pixels).fill(-1);
    const perPixel = this.width / (view.to - view.from);
    for (let row = first; row < past; row++) {
      const kind = run.kind[row];
      const slot = run.node[row] * groups + view.groupOf[kind];
      const place = slot * pixels + ((run.at[row] - view.from) * perPixel | 0);
      counts[place]++;
      if (top[place] < 0 || this.weight(row) > this.weight(top[place])) top[place] = row;
    }
    const few = past - first < 4000;
    for (const lane of view.lanes.slice(0, view.nodeLanes)) {
      if (!lane.shown) continue;
      for (let group = 0; group < groups; group++) {
        const strip = lane.strips[group];
        if (strip === undefined) continue;
        const begin = (lane.number * groups + group) * pixels;
        for (let pixel = 0; pixel < pixels; pixel++) {
          const count = counts[begin + pixel];
          if (count === 0) continue;
          pen.fillStyle = this.colourOf(top[begin + pixel]);
          pen.globalAlpha = few ? 1 : Math.min(1, 0.4 + Math.log2(count) / 9);
          pen.fillRect(few ? pixel - 1 : pixel, lane.top + strip, few ? 2.5 : 1, view.strip);
        }
      }
    }
    pen.globalAlpha = 1;
    const found = this.foundInView(first, past);
    for (const row of found) {
      const lane = view.lanes[run.node[row]];
      if (!lane.shown) continue;
      if (found.length > 150) {
        pen.fillStyle = this.colours["--found"];
        pen.fillRect(this.x(run.at[row]) - 0.75, lane.top + this.stripOf(lane, row) - 2, 1.5, 4);
        continue;
      }
      pen.strokeStyle = this.colours["--found"];
      pen.lineWidth = 1.5;
      pen.strokeRect(this.x(run.at[row]) - 3, lane.top + this.stripOf(lane, row) - 1, 6, view.strip + 2);
    }
  }

  foundInView(first, past) {
    const { found } = this.view;
    const rows = found.subarray(lowerBound(found, first), lowerBound(found, past));
    return rows.length > 3000 ? [] : rows;
  }

  // What a pixel takes its colour from, if several events are in it.
  weight(row) {
    const { run } = this.view;
    const kind = this.view.words.kinds[run.kind[row]];
    if (kind.group === "log") return 5 - run.facts[0][row];
    return kind.name === "rejected" ? 3 : kind.name === "committed" ? 1 : 0;
  }

  colourOf(row) {
    const { run } = this.view;
    const kind = run.kind[row];
    const group = this.view.groupOf[kind];
    if (this.view.groups[group].name === "log") {
      const severity = run.facts[0][row];
      if (severity === 1) return this.colours["--g-fault"];
      if (severity === 2) return this.colours["--disk"];
    }
    return this.colours[this.kindColour[kind] ?? this.groupColour[group]];
  }

  stripOf(lane, row) {
    const strip = lane.strips[this.view.groupOf[this.view.run.kind[row]]];
    return strip ?? Math.max(0, lane.height / 2 - this.view.strip / 2);
  }

  middle(row) {
    const lane = this.view.lanes[this.view.run.node[row]];
    return lane.top + (lane.shown ? this.stripOf(lane, row) + this.view.strip / 2 : lane.height / 2);
  }

  // From sending to arrival, where there are few enough to tell them apart.
  drawArrows(pen) {
    const { view } = this;
    const { run } = view;
    const messages = view.groups.find((group) => group.name === "message");
    if (!messages?.shown) return;
    const arrived = run.summary.kinds.find((kind) => kind.name === "arrived").number;
    const [first, past] = [lowerBound(run.at, view.from), lowerBound(run.at, view.to + 1)];
    const rows = [];
    for (let row = first; row < past; row++) {
      if (run.kind[row] !== arrived || run.cause[row] < 0) continue;
      rows.push(row);
      if (rows.length > ARROWS_MAX) return;
    }
    pen.strokeStyle = this.colours["--g-message"];
    pen.globalAlpha = rows.length > 150 ? 0.35 : 0.7;
    pen.lineWidth = 1;
    for (const row of rows) if (run.node[row] !== run.node[run.cause[row]]) this.arrow(pen, run.cause[row], row, 3);
    pen.globalAlpha = 1;
  }

  arrow(pen, from, to, head) {
    const { run } = this.view;
    const [x1, y1, x2, y2] = [this.x(run.at[from]), this.middle(from), this.x(run.at[to]), this.middle(to)];
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    const angle = Math.atan2(y2 - y1, x2 - x1);
    for (const side of [-0.45, 0.45]) {
      pen.moveTo(x2, y2);
      pen.lineTo(x2 - Math.cos(angle + side) * head * 2, y2 - Math.sin(angle + side) * head * 2);
    }
    pen.stroke();
  }

  drawChosen(pen) {
    const { view, colours } = this;
    for (const violation of view.run.summary.violations) {
      if (violation.moment === null) continue;
      const x = this.x(view.run.at[violation.moment]);
      pen.fillStyle = colours["--bad"];
      pen.globalAlpha = 0.75;
      pen.fillRect(x - 0.75, 0, 1.5, view.height);
      pen.globalAlpha = 1;
    }
    if (view.chosen < 0) return;
    pen.strokeStyle = colours["--chosen"];
    pen.lineWidth = 1.6;
    for (let place = view.chain.length - 1; place > 0; place--) {
      if (this.x(view.run.at[view.chain[place - 1]]) < -50) continue;
      this.arrow(pen, view.chain[place], view.chain[place - 1], 4);
    }
    const [x, y] = [this.x(view.run.at[view.chosen]), this.middle(view.chosen)];
    pen.globalAlpha = 0.5;
    pen.fillStyle = colours["--chosen"];
    pen.fillRect(x - 0.5, 0, 1, view.height);
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    pen.lineWidth = 2;
    pen.stroke();
  }

  drawAxis() {
    const { view, colours } = this;
    const pen = this.prepare("axis", this.width + LABEL, 22);
    const step = niceStep((view.to - view.from) / Math.max(2, this.width / 110));
    pen.fillStyle = colours["--quiet"];
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const x = LABEL + this.x(at);
      pen.fillRect(x, 15, 1, 7);
      pen.fillText(step >= 1e5 ? `${(at / 1e6).toFixed(step >= 1e6 ? 0 : 1)} s` : `${(at / 1000).toFixed(step >= 1000 ? 0 : 2)} ms`, x + 3, 9);
    }
    pen.fillText(`in sight: ${secondsText(view.to - view.from)}`, 8, 9);
  }

  drawOverview() {
    const { view, colours } = this;
    const width = this.width + LABEL;
    const pen = this.prepare("overview", width, 46);
    const { span, at } = view.run;
    const place = (micros) => LABEL + micros / view.end * this.width;
    pen.fillStyle = colours["--quiet"];
    pen.fillText("whole run", 8, 14);
    pen.fillText(secondsText(view.end), 8, 30);
    for (let one = 0; one < span.count; one++) {
      const name = view.run.summary.classes[span.kind[one]];
      const [begin, end] = [place(at[span.from[one]]), place(span.to[one] < 0 ? view.end : at[span.to[one]])];
      const row = { phase: [0, 14], down: [16, 6], "gave-up": [16, 6], paused: [16, 6], cut: [23, 4], slow: [28, 4], disk: [33, 4], clock: [38, 4] }[name];
      if (row === undefined) continue;
      pen.fillStyle = colours[`--${name}`];
      pen.fillRect(begin, row[0], Math.max(1, end - begin - (name === "phase" ? 1 : 0)), row[1]);
      if (name === "phase" && end - begin > 30) this.label(pen, view.lanes[0], name, view.spanText(one), begin, end, 0, 14);
    }
    pen.fillStyle = colours["--found"];
    const step = Math.max(1, Math.floor(view.found.length / 4000));
    for (let one = 0; one < view.found.length; one += step) pen.fillRect(place(at[view.found[one]]), 42, 1.5, 4);
    pen.fillStyle = colours["--bad"];
    for (const violation of view.run.summary.violations) {
      if (violation.moment !== null) pen.fillRect(place(at[violation.moment]) - 1, 0, 2.5, 46);
    }
    pen.strokeStyle = colours["--accent"];
    pen.lineWidth = 2;
    pen.strokeRect(place(view.from), 1, Math.max(3, place(view.to) - place(view.from)), 44);
    if (view.chosen >= 0) { pen.fillStyle = colours["--chosen"]; pen.fillRect(place(at[view.chosen]) - 1, 0, 2, 46); }
  }

  // The event nearest to a point of the lanes' canvas; -1 if none is near.
  eventAt(x, y) {
    const { view } = this;
    const { run } = view;
    const lane = view.lanes.find((known) => y >= known.top && y < known.top + known.height);
    if (lane === undefined || !lane.shown) return -1;
    const micros = (pixels) => view.from + pixels / this.width * (view.to - view.from);
    const inside = y - lane.top;
    const strip = lane.strips.findIndex((top) => top !== undefined && inside >= top - 1 && inside <= top + view.strip);
    if (strip >= 0) return this.nearest(micros(x), micros(x + 6) - micros(x), (row) => run.node[row] === lane.number && view.groupOf[run.kind[row]] === strip);
    const at = micros(x);
    const slack = micros(x + 3) - micros(x);
    const track = lane.tracks.find((known) => inside >= known.top && inside <= known.top + known.height);
    const isHere = (one) => {
      const name = run.summary.classes[run.span.kind[one]];
      return track ? track.classes.has(name) : lane.operations !== undefined && inside >= lane.operations && view.isOperation[run.span.kind[one]];
    };
    let best = -1;
    for (const one of view.spansOf.of(lane.number)) {
      if (!isHere(one) || run.at[run.span.from[one]] > at + slack) continue;
      const open = view.isOperation[run.span.kind[one]] ? run.at[run.span.from[one]] : view.end;
      const end = run.span.to[one] < 0 ? open : run.at[run.span.to[one]];
      if (end >= at - slack) best = run.span.from[one];
    }
    if (best >= 0) return best;
    return this.nearest(at, micros(x + 8) - micros(x), (row) => run.node[row] === lane.number && view.isShown(row));
  }

  nearest(at, reach, takes) {
    const { run } = this.view;
    let [best, distance] = [-1, reach];
    for (let row = lowerBound(run.at, at - reach); row < run.rows && run.at[row] <= at + reach; row++) {
      const away = Math.abs(run.at[row] - at);
      if (away <= distance && takes(row) && (best < 0 || away < distance)) [best, distance] = [row, away];
    }
    return best;
  }
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}
