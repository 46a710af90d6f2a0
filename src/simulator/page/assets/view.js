"use strict";
// What is looked at: the stretch of time, the lanes and kinds shown, the chosen event, the matches of a search.

const STRIPS = [16, 12, 10, 8];  // heights of a group's strip in a lane: the first with which all lanes are in sight
const BAND = 13;            // height of a state's band
const THIN = 12;            // height of other bands
const HIDDEN = 18;          // height of a lane that is hidden
const OPERATIONS = 5;       // rows of operations in a client's lane

class View {
  constructor(run, words) {
    this.run = run;
    this.words = words;
    this.end = Math.max(1, run.rows > 0 ? run.at[run.rows - 1] : 1);
    [this.from, this.to] = [0, this.end];
    this.chosen = -1;
    this.chain = [];
    this.found = new Uint32Array(0);
    this.groups = run.summary.groups.map(([name, shown]) => ({ name, shown }));
    this.groupOf = new Uint8Array(256);
    for (const kind of run.summary.kinds) {
      this.groupOf[kind.number] = this.groups.findIndex((group) => group.name === kind.group);
    }
    this.lanes = run.summary.lanes.map((lane, number) => ({ ...lane, number, shown: true, tracks: [] }));
    this.nodeLanes = run.summary.nodes.length + 1;
    this.spansOf = groupRows(run.span.lane, this.lanes.length);
    this.effects = groupRows(run.cause, run.rows);
    this.moreEffects = groupRows(run.moreCause, run.rows);
    const answers = ["committed", "rejected", "unknown", "acknowledged", "answered"];
    this.isOperation = run.summary.classes.map((name) => answers.includes(name));
    for (const lane of this.lanes) lane.tracks = this.tracksOf(lane);
    // The lanes of nodes say what is wrong with their links; where there are many, those of links can wait.
    this.links = this.lanes.length - this.nodeLanes;
    this.linksShown = this.links <= 6;
    this.layOut();
  }

  // Which bands a lane has, by what ever happened on it.
  tracksOf(lane) {
    const names = new Set();
    for (const span of this.spansOf.of(lane.number)) names.add(this.run.summary.classes[this.run.span.kind[span]]);
    const tracks = [];
    const add = (name, height, classes) => {
      if (classes.some((one) => names.has(one))) tracks.push({ name, height, classes: new Set(classes) });
    };
    add("phase", BAND, ["phase"]);
    add("state", BAND, ["starting", "serving", "paused", "down", "gave-up"]);
    add("leads", THIN, ["leads"]);
    add("owns", THIN, ["owns"]);
    add("disk", THIN, ["disk"]);
    add("clock", THIN, ["clock"]);
    if (lane.kind === "link") {
      add("cut", THIN, ["cut"]);
      add("slow", THIN, ["slow"]);
    } else {
      add("links", THIN, ["cut", "slow"]);
    }
    return tracks;
  }

  // Gives every lane its place; as high as there is room for.
  layOut(room = 0) {
    for (this.strip of STRIPS) {
      this.layOutWith(this.strip);
      if (this.height <= room) return;
    }
  }

  layOutWith(height) {
    let top = 0;
    const strips = this.groups.filter((group) => group.shown);
    for (const lane of this.lanes) {
      lane.top = top;
      lane.strips = [];
      let at = 3;
      if (lane.kind === "link" && !this.linksShown) { lane.height = 0; continue; }
      if (!lane.shown) { lane.height = HIDDEN; top += HIDDEN; continue; }
      for (const track of lane.tracks) { track.top = at; at += track.height + 1; }
      if (lane.kind !== "link") {
        at += 2;
        for (const [number, group] of this.groups.entries()) {
          if (!strips.includes(group)) continue;
          if (!this.belongs(lane, group.name)) continue;
          lane.strips[number] = at;
          at += height + 1;
        }
        if (lane.kind === "client") { lane.operations = at + 1; at += OPERATIONS * 4 + 2; }
      }
      lane.height = Math.max(HIDDEN, at + 3);
      top += lane.height;
    }
    this.height = top;
  }

  // The run's own lane has no clients, and so on: strips that stay empty take no room.
  belongs(lane, group) {
    if (lane.kind === "run") return group === "run" || group === "fault";
    if (group === "run") return false;
    return lane.kind === "client" || group !== "client";
  }

  isShown(row) {
    const lane = this.lanes[this.run.node[row]];
    return lane !== undefined && lane.shown && this.groups[this.groupOf[this.run.kind[row]]]?.shown === true;
  }

  // The next row that is shown, from a row on in a direction; -1 if there is none.
  neighbour(row, direction) {
    for (let at = row + direction; at >= 0 && at < this.run.rows; at += direction) if (this.isShown(at)) return at;
    return -1;
  }

  // Keeps a stretch of time inside the run and not shorter than 20 microseconds.
  look(from, to) {
    const length = Math.min(this.end, Math.max(20, to - from));
    this.from = Math.min(Math.max(0, from), this.end - length);
    this.to = this.from + length;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    this.look(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  // Brings an event into sight, without a change of scale if it is in sight already.
  show(row) {
    const at = this.run.at[row];
    const length = this.to - this.from;
    if (at < this.from + length * 0.02 || at > this.to - length * 0.02) this.look(at - length / 2, at + length / 2);
  }

  choose(row) {
    this.chosen = row;
    this.chain = row < 0 ? [] : this.chainOf(row, 200);
  }

  // What led to an event, nearest first, itself included.
  chainOf(row, limit) {
    const chain = [];
    for (let at = row; at >= 0 && chain.length < limit; at = this.run.cause[at]) chain.push(at);
    return chain;
  }

  // More that led to an event.
  moreCauses(row) {
    const { moreOf, moreCause } = this.run;
    const begin = lowerBound(moreOf, row);
    return moreCause.subarray(begin, lowerBound(moreOf, row + 1, begin));
  }

  spanText(span) {
    return this.run.spanTexts[this.run.span.text[span]] ?? "";
  }

  // What an event led to.
  effectsOf(row) {
    const more = Array.from(this.moreEffects.of(row), (edge) => this.run.moreOf[edge]);
    return [...this.effects.of(row), ...more].sort((one, other) => one - other);
  }
}
