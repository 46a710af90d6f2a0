"use strict";
// Puts the page together and listens.

const KEYS = [
  ["←  →", "the event before, the next one, of those shown"],
  ["[  ]", "what led to the chosen event; the first thing it led to"],
  ["v", "the next broken promise's moment"],
  ["/", "search; Enter and Shift+Enter go from match to match"],
  ["+  -  0", "zoom in, zoom out, the whole run"],
  ["a  d", "move left, right"],
  ["Ctrl+wheel, Shift+wheel", "zoom, move"],
  ["drag", "move; on the strip at the top: choose what is shown"],
  ["click on a lane's name", "hide or show it; with Shift: only this one"],
  ["Esc", "choose nothing"],
];

class Page {
  constructor(run) {
    const words = new Words(run);
    this.view = new View(run, words);
    this.search = new Search(run, words);
    this.painter = new Painter(this.view);
    this.panel = new Panel(this.view, (row) => this.choose(row));
    this.violation = -1;
    this.isDue = false;
    this.panel.tellRun();
    this.tellGroups();
    this.tellLegend();
    this.tellKeys();
    this.layOut();
    this.listen();
    const first = run.summary.violations.find((violation) => violation.moment !== null);
    const asked = Number.parseInt(location.hash.slice(1), 10) - 1;
    if (asked >= 0 && asked < run.rows) this.choose(asked);
    else if (first) this.goTo(first.moment);
    else this.panel.tellEvent();
    this.draw();
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => { this.isDue = false; this.painter.draw(); });
  }

  choose(row) {
    this.view.choose(row);
    if (row >= 0) {
      this.view.show(row);
      const lane = this.view.lanes[this.view.run.node[row]];
      const scroll = document.getElementById("scroll");
      if (lane.top < scroll.scrollTop || lane.top + lane.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = lane.top - 20;
    }
    history.replaceState(null, "", row < 0 ? "#" : `#${row + 1}`);
    this.panel.tellEvent();
    this.panel.markChosen();
    this.draw();
  }

  // Chooses an event and looks at what is around it.
  goTo(row) {
    const at = this.view.run.at[row];
    this.view.look(at - 400e3, at + 400e3);
    this.choose(row);
  }

  step(direction) {
    const { view } = this;
    const from = view.chosen >= 0 ? view.chosen : lowerBound(view.run.at, direction > 0 ? view.from : view.to) - (direction > 0 ? 1 : 0);
    const row = view.neighbour(from, direction);
    if (row >= 0) this.choose(row);
  }

  lookFor(question) {
    this.view.found = this.search.find(question);
    this.tellFound();
    this.draw();
  }

  goToFound(direction) {
    const { found, chosen } = this.view;
    if (found.length === 0) return;
    const next = lowerBound(found, direction > 0 ? chosen + 1 : chosen);
    const place = direction > 0 ? (next === found.length ? 0 : next) : (next === 0 ? found.length - 1 : next - 1);
    this.choose(found[place]);
    this.tellFound();
  }

  tellFound() {
    const { found, chosen } = this.view;
    const asked = document.getElementById("search").value.trim() !== "";
    const place = lowerBound(found, chosen);
    const here = found[place] === chosen ? `${grouped.format(place + 1)} of ` : "";
    document.getElementById("found").textContent = asked ? `${here}${grouped.format(found.length)} found` : "";
  }

  tellGroups() {
    const place = document.getElementById("groups");
    for (const group of this.view.groups) {
      const button = element("button", { type: "button", "aria-pressed": String(group.shown), style: `--mark: var(--g-${group.name})` }, group.name);
      button.addEventListener("click", () => {
        group.shown = !group.shown;
        button.setAttribute("aria-pressed", String(group.shown));
        this.layOut();
      });
      place.append(button);
    }
    if (this.view.links === 0) return;
    const links = element("button", { type: "button", id: "links", "aria-pressed": String(this.view.linksShown), style: "--mark: var(--cut)", title: "A lane for each directed link that had faults" }, `${this.view.links} links`);
    links.addEventListener("click", () => {
      this.view.linksShown = !this.view.linksShown;
      links.setAttribute("aria-pressed", String(this.view.linksShown));
      this.layOut();
    });
    place.append(links);
  }

  tellLegend() {
    const { summary, span } = this.view.run;
    const seen = new Set(span.kind);
    summary.classes.forEach((name, number) => {
      if (!seen.has(number)) return;
      document.getElementById("legend").append(element("span", {}, element("i", { style: `background: var(--${name})` }), name));
    });
  }

  tellKeys() {
    const place = document.getElementById("help");
    for (const [keys, what] of KEYS) place.append(element("span", {}, element("kbd", {}, keys), ` ${what}`));
  }

  layOut() {
    this.view.layOut(document.getElementById("scroll").clientHeight);
    const place = document.getElementById("labels");
    place.replaceChildren();
    for (const lane of this.view.lanes) {
      if (lane.height === 0) continue;
      const button = element("button", {
        type: "button", class: lane.kind, "aria-pressed": String(lane.shown), "data-lane": lane.number, title: lane.name,
        style: `top: ${lane.top}px; height: ${lane.height}px`,
      }, element("b", {}, lane.name));
      button.addEventListener("click", (event) => this.toggle(lane, event.shiftKey));
      place.append(button);
    }
    place.style.height = `${this.view.height}px`;
    this.draw();
  }

  toggle(lane, only) {
    if (only) {
      const isAlone = this.view.lanes.every((other) => other.shown === (other === lane));
      for (const other of this.view.lanes) other.shown = isAlone || other === lane;
    } else {
      lane.shown = !lane.shown;
    }
    const number = lane.number;
    this.layOut();
    document.querySelector(`#labels [data-lane="${number}"]`)?.focus();
  }

  toggleHelp() {
    const help = document.getElementById("help");
    help.hidden = !help.hidden;
    document.getElementById("help-button").setAttribute("aria-expanded", String(!help.hidden));
    this.draw();
  }

  nextViolation() {
    const moments = this.view.run.summary.violations.map((violation) => violation.moment).filter((moment) => moment !== null);
    if (moments.length === 0) return;
    this.violation = (this.violation + 1) % moments.length;
    this.goTo(moments[this.violation]);
  }

  async copy() {
    const code = document.getElementById("command");
    const button = document.getElementById("copy");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Some browsers forbid it to pages of files: then it is at least marked.
      getSelection().selectAllChildren(code);
      button.textContent = "Marked";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  pan(share) {
    const by = (this.view.to - this.view.from) * share;
    this.view.look(this.view.from + by, this.view.to + by);
    this.draw();
  }

  zoom(factor, around) {
    this.view.zoom(factor, around);
    this.draw();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const search = document.getElementById("search");
    if (event.target === search) {
      if (event.key === "Enter") { this.goToFound(event.shiftKey ? -1 : 1); event.preventDefault(); }
      if (event.key === "Escape") search.blur();
      return;
    }
    const { view } = this;
    const actions = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      "[": () => { if (view.chosen >= 0 && view.run.cause[view.chosen] >= 0) this.choose(view.run.cause[view.chosen]); },
      "]": () => { const effects = view.chosen < 0 ? [] : view.effectsOf(view.chosen); if (effects.length > 0) this.choose(effects[0]); },
      v: () => this.nextViolation(),
      "/": () => search.focus(),
      "+": () => this.zoom(0.5, this.centre()),
      "=": () => this.zoom(0.5, this.centre()),
      "-": () => this.zoom(2, this.centre()),
      0: () => { view.look(0, view.end); this.draw(); },
      a: () => this.pan(-0.25),
      d: () => this.pan(0.25),
      "?": () => this.toggleHelp(),
      Escape: () => this.choose(-1),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }

  // Where to zoom: at the chosen event, if it is in sight.
  centre() {
    const { view } = this;
    const at = view.chosen < 0 ? -1 : view.run.at[view.chosen];
    return at >= view.from && at <= view.to ? at : (view.from + view.to) / 2;
  }

  listen() {
    const on = (name, what) => document.getElementById(name).addEventListener("click", what);
    on("copy", () => this.copy());
    on("step-back", () => this.step(-1));
    on("step-forward", () => this.step(1));
    on("found-previous", () => this.goToFound(-1));
    on("found-next", () => this.goToFound(1));
    on("zoom-in", () => this.zoom(0.5, this.centre()));
    on("zoom-out", () => this.zoom(2, this.centre()));
    on("zoom-all", () => { this.view.look(0, this.view.end); this.draw(); });
    on("help-button", () => this.toggleHelp());
    let waiting = 0;
    document.getElementById("search").addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.lookFor(event.target.value), 120);
    });
    document.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.layOut()).observe(document.getElementById("scroll"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.painter.readColours(); this.draw(); });
    this.listenToLanes();
    this.listenToOverview();
  }

  listenToLanes() {
    const { view, painter } = this;
    const canvas = painter.canvas.lanes;
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      grip = { x: event.offsetX, from: view.from, to: view.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grip === null) return;
      if (Math.abs(event.offsetX - grip.x) > 4) grip.moved = true;
      if (!grip.moved) return;
      const by = (grip.x - event.offsetX) / painter.width * (grip.to - grip.from);
      view.look(grip.from + by, grip.to + by);
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const wasClick = grip !== null && !grip.moved;
      grip = null;
      if (!wasClick) return;
      const row = painter.eventAt(event.offsetX, event.offsetY);
      if (row >= 0) this.choose(row);
    });
    canvas.addEventListener("pointercancel", () => { grip = null; });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, view.from + event.offsetX / painter.width * (view.to - view.from)));
    document.getElementById("scroll").addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        const x = event.clientX - canvas.getBoundingClientRect().left;
        this.zoom(Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 250), view.from + x / painter.width * (view.to - view.from));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan((event.deltaX || event.deltaY) / painter.width);
      } else {
        return;
      }
      event.preventDefault();
    }, { passive: false });
  }

  listenToOverview() {
    const { view, painter } = this;
    const canvas = painter.canvas.overview;
    let grip = null;
    const micros = (event) => Math.min(view.end, Math.max(0, (event.offsetX - LABEL) / painter.width * view.end));
    canvas.addEventListener("pointerdown", (event) => {
      const at = micros(event);
      const inside = at >= view.from && at <= view.to && view.to - view.from < view.end * 0.95;
      grip = { at, from: view.from, to: view.to, inside, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grip === null) return;
      const at = micros(event);
      grip.moved ||= Math.abs(at - grip.at) > view.end / 300;
      if (!grip.moved) return;
      if (grip.inside) view.look(grip.from + at - grip.at, grip.to + at - grip.at);
      else view.look(Math.min(grip.at, at), Math.max(grip.at, at));
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip !== null && !grip.moved) {
        const length = view.to - view.from >= view.end * 0.95 ? view.end / 10 : view.to - view.from;
        view.look(micros(event) - length / 2, micros(event) + length / 2);
        this.draw();
      }
      grip = null;
    });
  }
}

readRun().then((run) => {
  window.page = new Page(run);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}).catch((error) => {
  document.getElementById("panel").textContent = `The page cannot be shown: ${error}. It needs a browser of 2023 or later.`;
});
