// The views, and the URL that determines which view to show and what it contains.

import { byId, el } from "./dom.js";
import * as generate from "./generate.js";
import * as id from "./id.js";
import * as layout from "./layout.js";
import { read, VIEWS, write } from "./url.js";

/** @import { State } from "./url.js" */

/**
 * Changes the state of the view, and the URL with it.
 *
 * @typedef {(changes: Partial<State>, history?: { replace: boolean }) => void} Go
 */

const PARTS = { inspect: id, layout, generate };
const TITLES = { inspect: "Inspect an ID", layout: "Edit a layout", generate: "Generate IDs" };

let state = read(location.hash);

/** @type {Go} */
const go = (changes, { replace } = { replace: false }) => {
  const next = { ...state, ...changes };
  const hash = write(next);
  if (hash !== write(state)) history[replace ? "replaceState" : "pushState"](null, "", hash);
  state = next;
  show();
};

function show() {
  for (const view of VIEWS) {
    byId(`view-${view}`).hidden = view !== state.view;
    const link = byId(`to-${view}`);
    link.setAttribute("href", write({ ...state, view }));
    if (view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${TITLES[state.view]} · Polyflake inspector`;
  if (state.view !== "generate") generate.leave();
  PARTS[state.view].show(state);
}

for (const part of Object.values(PARTS)) part.setUp(go);

addEventListener("hashchange", () => {
  const before = state.view;
  state = read(location.hash);
  show();
  if (state.view === before) return;
  scrollTo(0, 0);
  byId(`title-${state.view}`).focus();
});

byId("skip").addEventListener("click", (event) => {
  // The hash determines which view to show.
  event.preventDefault();
  byId(`title-${state.view}`).focus();
});

/** @type {[label: string, id: string, layout: string][]} */
const EXAMPLES = [
  ["Twitter", "1541815603606036480", "twitter"],
  ["Discord", "175928847299117063", "discord"],
  ["ShardingSphere", "725026630224842752", "shardingsphere"],
  ["TSID", "01226N0640J7Q", "tsid"],
];
byId("example-list").append(
  ...EXAMPLES.map(([label, text, name]) =>
    el(
      "li",
      {},
      el(
        "a",
        { class: "choice", href: write({ ...read(""), id: text, layout: name }) },
        el("b", {}, label),
        el("span", { class: "mono" }, text),
      ),
    ),
  ),
);

show();

// Without it the page still works, but not offline.
navigator.serviceWorker?.register("./offline.js").catch(() => {});
