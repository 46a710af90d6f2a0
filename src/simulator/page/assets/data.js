"use strict";
// Reads what the page carries: a summary as JSON, and the events as packed columns (see docs/internals/simulator.md).

async function readRun() {
  const summary = JSON.parse(document.getElementById("summary").textContent);
  const element = document.getElementById("events");
  const packed = bytesOf(element.textContent);
  element.remove();
  const unpacking = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = new Uint8Array(await new Response(unpacking).arrayBuffer());
  const parts = [];
  const lengths = new DataView(all.buffer);
  for (let at = 0; at < all.length;) {
    const length = lengths.getUint32(at, true);
    parts.push(all.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return { summary, ...columnsOf(parts, summary.rows) };
}

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

// Calls `take(value, place)` for each number of a column.
function eachNumber(bytes, take) {
  let value = 0, scale = 1, place = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    value += (byte & 127) * scale;
    if (byte & 128) { scale *= 128; continue; }
    take(value % 2 ? -(value + 1) / 2 : value / 2, place++);
    value = 0;
    scale = 1;
  }
  return place;
}

function numbersOf(bytes, into) {
  eachNumber(bytes, (value, place) => { into[place] = value; });
  return into;
}

function sumsOf(bytes, into) {
  let sum = 0;
  eachNumber(bytes, (value, place) => { into[place] = sum += value; });
  return into;
}

function countOf(bytes) {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) count += bytes[at] >> 7 ^ 1;
  return count;
}

// Why `cause` may be less than 0.
const NO_CAUSE = -1;
const LEFT_OUT = -2;

function columnsOf(parts, rows) {
  const at = sumsOf(parts[0], new Float64Array(rows));
  const node = numbersOf(parts[1], new Uint16Array(rows));
  const kind = numbersOf(parts[2], new Uint8Array(rows));
  const cause = new Int32Array(rows);
  eachNumber(parts[3], (back, row) => {
    cause[row] = back === 0 ? NO_CAUSE : back > row ? LEFT_OUT : row - back;
  });
  const facts = [4, 5, 6].map((part) => numbersOf(parts[part], new Float64Array(rows)));
  const text = numbersOf(parts[7], new Uint32Array(rows));
  const edges = countOf(parts[8]);
  const moreOf = sumsOf(parts[8], new Uint32Array(edges));
  const moreCause = numbersOf(parts[9], new Int32Array(edges));
  for (let edge = 0; edge < edges; edge++) moreCause[edge] = moreOf[edge] - moreCause[edge];
  const count = countOf(parts[10]);
  const span = {
    count,
    lane: numbersOf(parts[10], new Uint32Array(count)),
    kind: numbersOf(parts[11], new Uint8Array(count)),
    from: sumsOf(parts[12], new Uint32Array(count)),
    to: numbersOf(parts[13], new Int32Array(count)),
    text: numbersOf(parts[14], new Uint32Array(count)),
  };
  for (let one = 0; one < count; one++) span.to[one] = span.to[one] < 0 ? -1 : span.from[one] + span.to[one];
  const decoder = new TextDecoder();
  const texts = JSON.parse(decoder.decode(parts[15]));
  const spanTexts = JSON.parse(decoder.decode(parts[16]));
  return { rows, at, node, kind, cause, facts, text, texts, moreOf, moreCause, span, spanTexts };
}

// The first place of a sorted array that is not below a value.
function lowerBound(sorted, value, from = 0, to = sorted.length) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] < value) from = middle + 1; else to = middle;
  }
  return from;
}

// For each value below `count`, the rows that have it: `rows.subarray(begin[value], begin[value + 1])`.
function groupRows(values, count) {
  const begin = new Uint32Array(count + 1);
  for (let row = 0; row < values.length; row++) if (values[row] >= 0 && values[row] < count) begin[values[row] + 1]++;
  for (let value = 0; value < count; value++) begin[value + 1] += begin[value];
  const next = begin.slice(0, count);
  const rows = new Uint32Array(begin[count]);
  for (let row = 0; row < values.length; row++) {
    if (values[row] >= 0 && values[row] < count) rows[next[values[row]]++] = row;
  }
  return { begin, rows, of: (value) => rows.subarray(begin[value], begin[value + 1]) };
}
