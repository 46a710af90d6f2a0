"use strict";
// Events in words. Whatever comes from the run goes into the page as text, never as markup.

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") made.className = value;
    else if (key === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const grouped = new Intl.NumberFormat("en");
const milliseconds = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

function timeText(micros, digits = 3) {
  return `${milliseconds[digits].format(micros / 1000)} ms`;
}

function secondsText(micros) {
  return `${(micros / 1e6).toFixed(2)} s`;
}

// Topics without what all of them begin with.
function shortTopics(text) {
  return text.replaceAll("persistent://public/default/", "");
}

// Between a message and where it went.
const JOINTS = { publishes: " to", committed: " at" };
const PAYLOADS = ["connects", "sends", "arrived"];

class Words {
  constructor(run) {
    this.run = run;
    this.kinds = [];
    for (const kind of run.summary.kinds) this.kinds[kind.number] = kind;
  }

  nodeName(node) {
    return node === 0 ? "run" : this.run.summary.nodes[node - 1] ?? `node ${node}`;
  }

  kind(row) {
    return this.kinds[this.run.kind[row]] ?? { name: "?", group: "run", facts: [] };
  }

  text(row) {
    return this.run.texts[this.run.text[row]] ?? "";
  }

  // [name, value] of each fact, in words.
  facts(row) {
    return this.kind(row).facts.map((name, place) => {
      const value = this.run.facts[place][row];
      if (name === "to" || name === "from" || name === "other") return value > 0 ? [name, this.nodeName(value)] : null;
      if (name === "severity") return [name, ["", "error", "warning", "information", "debug"][value] ?? value];
      return [name, grouped.format(value)];
    }).filter((fact) => fact !== null);
  }

  // One line: what happened, without where and when.
  line(row) {
    const kind = this.kind(row);
    const text = this.text(row);
    const facts = this.facts(row);
    if (PAYLOADS.includes(kind.name)) {
      const [direction, peer] = facts[0] ?? ["", "?"];
      const size = facts[2] && facts[2][1] !== "0" ? `, ${facts[2][1]} bytes` : "";
      return [kind.name, `${direction} ${peer}: ${text}${size}`];
    }
    if (kind.group === "log") {
      const severity = facts[0]?.[1] ?? "";
      return [severity === "information" ? "log" : severity, text];
    }
    if (kind.group === "storage") {
      const size = facts[0] && facts[0][1] !== "0" ? `, ${facts[0][1]} ${facts[0][0]}` : "";
      return [kind.name, text.replaceAll("/data/", "") + size];
    }
    if (kind.group === "client" && text !== "") {
      const message = facts[0]?.[0] === "message" ? `message ${facts[0][1]}${JOINTS[kind.name] ?? ","} ` : "";
      return [kind.name, message + shortTopics(text)];
    }
    const told = facts.map(([name, value]) => `${name} ${value}`).join(", ");
    return [kind.name, [told, text].filter((part) => part !== "").join("; ")];
  }

  // A button that chooses an event.
  button(row, choose, mark = "") {
    const [what, more] = this.line(row);
    const group = this.kind(row).group;
    const bold = element("b", { style: `--mark: var(--g-${group})` }, what);
    return element("button", {
      type: "button", class: `event ${mark}`, "data-row": row, title: `${timeText(this.run.at[row])}  ${what} ${more}`,
      on: { click: () => choose(row, true) },
    }, element("span", { class: "at" }, timeText(this.run.at[row], 1)),
    element("span", { class: "who" }, this.nodeName(this.run.node[row])),
    element("span", { class: "what" }, bold, ` ${more}`));
  }
}

// Which rows have all words of a question; `name=value` asks for a node, a kind, a group or a fact.
class Search {
  constructor(run, words) {
    this.run = run;
    this.words = words;
  }

  find(question) {
    const { run } = this;
    const asked = question.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (asked.length === 0) return new Uint32Array(0);
    const tests = asked.map((word) => this.test(word));
    const found = [];
    for (let row = 0; row < run.rows; row++) if (tests.every((test) => test(row))) found.push(row);
    return Uint32Array.from(found);
  }

  test(word) {
    const { run, words } = this;
    const [name, value] = word.split("=", 2);
    const nodes = (part) => [words.nodeName(0), ...run.summary.nodes].map((node) => node.toLowerCase().includes(part));
    const kinds = (has) => { const out = []; run.summary.kinds.forEach((kind) => { out[kind.number] = has(kind); }); return out; };
    if (value !== undefined && name === "node") { const of = nodes(value); return (row) => of[run.node[row]]; }
    if (value !== undefined && (name === "kind" || name === "group")) {
      const of = kinds((kind) => (name === "kind" ? kind.name : kind.group).includes(value));
      return (row) => of[run.kind[row]];
    }
    if (value !== undefined && run.summary.kinds.some((kind) => kind.facts.includes(name))) {
      const place = kinds((kind) => kind.facts.indexOf(name));
      const isNode = name === "to" || name === "from" || name === "other";
      const of = isNode ? nodes(value) : null;
      return (row) => {
        const at = place[run.kind[row]] ?? -1;
        if (at < 0) return false;
        const fact = run.facts[at][row];
        return isNode ? fact > 0 && of[fact] : String(fact) === value;
      };
    }
    const inText = Uint8Array.from(run.texts, (text) => text.toLowerCase().includes(word) ? 1 : 0);
    const inKind = kinds((kind) => kind.name.includes(word));
    const inNode = nodes(word);
    return (row) => inText[run.text[row]] === 1 || inKind[run.kind[row]] || inNode[run.node[row]];
  }
}
