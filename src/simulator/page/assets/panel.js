"use strict";
// What is told in words: the heading, the broken promises with their stories, the chosen event with its causes.

const CHAIN_STEP = 30;
const EFFECTS_MAX = 30;

class Panel {
  constructor(view, choose) {
    this.view = view;
    this.words = view.words;
    this.choose = choose;
    this.place = document.getElementById("panel");
  }

  tellRun() {
    const { summary } = this.view.run;
    const { report } = summary;
    const planted = report.mutant ? ` · planted bug ${report.mutant}` : "";
    document.getElementById("title").textContent = `Seed ${report.seed} · ${report.topology} · faults ${report.profile}${planted}`;
    const failed = summary.violations.length > 0;
    document.title = `Seed ${report.seed}: ${failed ? "failed" : "passed"}`;
    const verdict = document.getElementById("verdict");
    verdict.textContent = failed ? `${summary.violations.length} broken` : "no promise was broken";
    verdict.className = failed ? "failed" : "passed";
    const [committed, rejected, unknown] = report.publishes;
    document.getElementById("facts").textContent = [
      `${secondsText(this.view.end)} of virtual time`, `${grouped.format(summary.rows)} events`,
      `messages: ${committed} committed, ${rejected} rejected, ${unknown} unknown`,
      `${grouped.format(report.deliveries)} deliveries, ${grouped.format(report.acks)} acknowledgements stored`,
      `event hash ${report.hash}`,
    ].join(" · ");
    document.getElementById("command").textContent = summary.replay;
    if (summary.left_out > 0) {
      const words = `${grouped.format(summary.left_out)} older events are left out: a recording holds so many and no more. What happened to nodes, links, disks and clients is kept longest.`;
      document.querySelector("main").before(element("p", { class: "notice", role: "note" }, words));
    }
    this.tellViolations();
  }

  tellViolations() {
    const place = document.getElementById("broken");
    this.view.run.summary.violations.forEach((violation, number) => {
      const heading = element("summary", {}, `${violation.promise} broken`,
        element("span", {}, ` ${violation.sentence ? `${violation.sentence}. ` : ""}Seen by ${violation.checker}.`));
      const body = element("div", { class: "body" }, element("p", { class: "detail" }, violation.detail));
      if (violation.moment !== null) {
        const at = timeText(this.view.run.at[violation.moment], 1);
        body.append(element("h3", {}, `The shortest story: what clients were told of it, and what happened in between; it ends at ${at}`));
        const list = element("div", { class: "list" });
        for (const row of violation.story) list.append(this.words.button(row, this.choose));
        body.append(list);
      } else {
        body.append(element("p", { class: "quiet" }, "Its text names nothing that was recorded: look at the end of the run."));
      }
      const details = element("details", { class: "violation" }, heading, body);
      details.open = number === 0;
      place.append(details);
    });
  }

  tellEvent() {
    const { view, words } = this;
    const row = view.chosen;
    if (row < 0) {
      this.place.replaceChildren(
        element("h2", {}, "No event is chosen"),
        element("p", { class: "quiet" }, "Press one in the picture or in a story, search, or step with the arrow keys. Drag to move, Ctrl and wheel to zoom."));
      return;
    }
    const [what] = words.line(row);
    const facts = element("dl", {},
      element("dt", {}, "at"), element("dd", {}, timeText(view.run.at[row])),
      element("dt", {}, "on"), element("dd", {}, words.nodeName(view.run.node[row])));
    for (const [name, value] of words.facts(row)) facts.append(element("dt", {}, name), element("dd", {}, String(value)));
    facts.append(element("dt", {}, "event"), element("dd", {}, `${grouped.format(row + 1)} of ${grouped.format(view.run.rows)}, ${words.kind(row).group}`));
    const parts = [element("h2", { id: "chosen" }, what), facts];
    if (words.text(row) !== "") parts.push(element("p", { class: "text" }, words.text(row)));
    if (this.wasWaiting(row)) {
      parts.push(element("p", { class: "quiet" }, "The client looked at this answer when it next did something: it may have come earlier. See what the question led to."));
    }
    parts.push(...this.tellChain(row), ...this.tellEffects(row));
    this.place.replaceChildren(...parts);
    this.place.scrollTop = 0;
  }

  // Whether an answer was looked at later than it came, as far as one can tell: nothing arrived that led to it.
  wasWaiting(row) {
    const { run } = this.view;
    const name = this.words.kind(row).name;
    if (name !== "committed" && name !== "rejected") return false;
    return run.cause[row] < 0 || this.words.kind(run.cause[row]).name !== "arrived";
  }

  // Nearest first. An answer shows its question and what else led to an event, further in.
  tellChain(row) {
    const { view, words } = this;
    const list = element("div", { class: "list", id: "chain" });
    let next = view.run.cause[row];
    for (const also of view.moreCauses(row)) list.append(words.button(also, this.choose, "also"));
    const more = element("button", { type: "button" }, "Earlier…");
    const extend = () => {
      for (let count = 0; count < CHAIN_STEP && next >= 0; count++, next = view.run.cause[next]) {
        list.append(words.button(next, this.choose));
        for (const also of view.moreCauses(next)) list.append(words.button(also, this.choose, "also"));
      }
      more.hidden = next < 0;
      if (next === LEFT_OUT) list.append(element("p", { class: "quiet" }, "What led to this was left out of the recording."));
    };
    more.addEventListener("click", extend);
    extend();
    if (list.childElementCount === 0) return [element("h3", {}, "Led to by"), element("p", { class: "quiet", id: "chain" }, "Nothing that is known: it came by itself.")];
    return [element("h3", {}, "Led to by, nearest first"), list, more];
  }

  tellEffects(row) {
    const effects = this.view.effectsOf(row);
    if (effects.length === 0) return [];
    const list = element("div", { class: "list", id: "effects" });
    for (const effect of effects.slice(0, EFFECTS_MAX)) list.append(this.words.button(effect, this.choose));
    const rest = effects.length - EFFECTS_MAX;
    return [element("h3", {}, "Led to"), list, ...rest > 0 ? [element("p", { class: "quiet" }, `and ${grouped.format(rest)} more`)] : []];
  }

  markChosen() {
    for (const button of document.querySelectorAll(".event")) {
      button.classList.toggle("chosen", Number(button.dataset.row) === this.view.chosen);
    }
  }
}
