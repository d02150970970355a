// The view that generates IDs with the chosen layout and node: a batch at once, or one after another.
import { attempt, greatest, isNode, presetOf } from "./core.js";
import { byId, copyButton, draw, el, say, selectById, Typing } from "./dom.js";
import { FORMATS } from "./fits.js";
import { choosePreset, chosenLayout } from "./layout.js";
import { formatId, PolyflakeError, Snowflake } from "./polyflake.js";
import { write } from "./url.js";
import { count, utc } from "./words.js";

/** @import { Outcome } from "./core.js" */
/** @import { Decoded, Format, Layout } from "./polyflake.js" */
/** @import { Go } from "./main.js" */
/** @import { State } from "./url.js" */

/** The initial value of every node field, so that IDs are one click away. */
const FIRST_NODE = "1";
const KEPT = 10_000;
const SHOWN = 100;
const LIVE_MS = 250;
const COUNTS = ["1", "10", "100", "1000"];

/** @type {State} */
let state;
/** The newest first, all with the same layout. @type {Decoded[]} */
let made = [];
let total = 0;
/** @type {AbortController | undefined} */
let running;
/** The layout that the node's inputs are for. @type {string | undefined} */
let nodeInputsOf;

/** @param {Go} go */
export function setUp(go) {
  selectById("format").append(...FORMATS.map((format) => el("option", { value: format }, format)));
  selectById("count").append(...COUNTS.map((n) => el("option", { value: n }, count(Number(n)))));
  for (const key of /** @type {const} */ (["format", "count"])) {
    selectById(key).addEventListener("change", () => go({ [key]: selectById(key).value }));
  }
  const nodes = byId("node");
  const typing = new Typing(nodes);
  nodes.addEventListener("input", () => {
    const texts = [...nodes.querySelectorAll("input")].map(({ name, value }) => `${name}:${value}`);
    go({ node: texts.join(",") }, typing.next());
  });
  byId("generate-form").addEventListener("submit", (event) => {
    event.preventDefault();
    run(Number(selectById("count").value), 0);
  });
  byId("live").addEventListener("click", () =>
    running === undefined ? run(Number.POSITIVE_INFINITY, LIVE_MS) : stop(),
  );
  byId("clear").addEventListener("click", () => {
    stop();
    forget();
    drawMade();
    say("Cleared");
    byId("live").focus();
  });
  byId("copy-all").append(
    copyButton(
      "all IDs",
      () =>
        made
          .map(({ id }) => formatId(id, format()))
          .reverse()
          .join("\n"),
      "Copy all",
    ),
    copyButton(
      "JSON of all IDs",
      () => JSON.stringify(made.map(({ id }) => formatId(id, format())).reverse(), null, 2),
      "Copy JSON",
    ),
  );
}

const format = () => /** @type {Format} */ (selectById("format").value);

/** @param {State} next */
export function show(next) {
  const before = state;
  state = next;
  const { value: layout, error } = chosenLayout(next);
  choosePreset(
    selectById("generate-preset"),
    layout === undefined ? undefined : presetOf(layout),
    layout === undefined ? "a layout that cannot work" : "your own layout",
  );
  choose(selectById("format"), next.format, "decimal");
  choose(selectById("count"), next.count, "10");
  if (before !== undefined && (before.layout !== next.layout || before.node !== next.node)) {
    stop();
    forget();
  }
  const text = layout === undefined ? "" : String(layout);
  if (nodeInputsOf !== text) {
    draw(byId("node"), ...(layout === undefined ? [] : nodeInputs(layout)));
    nodeInputsOf = text;
  }
  const wanted = nodeTexts(next.node);
  for (const input of byId("node").querySelectorAll("input")) {
    const value = wanted.get(input.name) ?? FIRST_NODE;
    if (input.value !== value) input.value = value;
  }
  for (const id of ["go", "live"]) {
    const button = byId(id);
    if (button instanceof HTMLButtonElement) button.disabled = layout === undefined;
  }
  showError(error ?? snowflake(layout).error);
  drawMade();
}

/**
 * @param {HTMLSelectElement} select
 * @param {string} value
 * @param {string} otherwise
 */
function choose(select, value, otherwise) {
  select.value = value;
  if (select.selectedIndex === -1) select.value = otherwise;
}

/**
 * @param {string} node
 * @returns {Map<string, string>}
 */
function nodeTexts(node) {
  return new Map(
    node.split(",").map((text) => {
      const [name = "", value = ""] = text.split(/:(.*)/s);
      return [name, value];
    }),
  );
}

/** @param {Layout} layout */
function nodeInputs(layout) {
  const fields = layout.fields.filter(isNode);
  if (fields.length === 0) return [el("p", { class: "aside" }, "This layout has no node field.")];
  return fields.map((field) => {
    const id = `node-${field.name}`;
    return el(
      "div",
      { class: "control" },
      el(
        "label",
        { for: id },
        field.name,
        " ",
        el("span", { class: "aside" }, `0–${count(greatest(field))}`),
      ),
      el("input", {
        id,
        name: field.name,
        class: "mono",
        inputmode: "numeric",
        autocomplete: "off",
        "data-key": id,
      }),
    );
  });
}

/**
 * A Snowflake with the layout and node in the form.
 *
 * @param {Layout | undefined} layout
 * @returns {Outcome<Snowflake | undefined>}
 */
function snowflake(layout) {
  if (layout === undefined) return { value: undefined };
  const inputs = [...byId("node").querySelectorAll("input")];
  const node = Object.fromEntries(inputs.map(({ name, value }) => [name, value.trim()]));
  return attempt(() => new Snowflake(inputs.length === 0 ? { layout } : { layout, node }));
}

/** @param {PolyflakeError | undefined} error */
function showError(error) {
  const form = byId("generate-form");
  for (const old of form.querySelectorAll(".error")) old.remove();
  const inputs = [...byId("node").querySelectorAll("input")];
  for (const input of inputs) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  if (error === undefined) return;
  const paragraph = el("p", { class: "error", id: "generate-error" }, error.message);
  const layout = chosenLayout(state).value;
  const none = Object.fromEntries(inputs.map(({ name }) => [name, "0"]));
  const input = inputs.find(({ name, value }) => {
    const node = { ...none, [name]: value.trim() };
    return attempt(() => layout?.compose(layout.epochMs, node, 0)).error !== undefined;
  });
  input?.setAttribute("aria-invalid", "true");
  input?.setAttribute("aria-describedby", "generate-error");
  (input === undefined ? form : byId("node")).append(paragraph);
  say(error.message);
}

/**
 * @param {number} n
 * @param {number} pauseMs The pause between two IDs.
 */
async function run(n, pauseMs) {
  stop();
  const { value: ids, error } = snowflake(chosenLayout(state).value);
  showError(error);
  if (ids === undefined) return;
  const mine = new AbortController();
  running = mine;
  drawLive();
  let done = 0;
  try {
    while (done < n && !mine.signal.aborted) {
      const { value: id, error: none } = attempt(() => ids.tryNextId());
      if (id !== undefined) {
        made.unshift(ids.decode(id));
        made.length = Math.min(made.length, KEPT);
        done += 1;
        total += 1;
      } else if (none?.retryAfterMs === undefined) {
        showError(none);
        break;
      }
      const pause = id === undefined ? Math.max(1, none?.retryAfterMs ?? 0) : pauseMs;
      if (pause > 0) {
        drawMade();
        // In a long tick, the core's message says what the page is waiting for.
        showError(pause > 1000 ? none : undefined);
        await new Promise((resume) => setTimeout(resume, pause));
      }
    }
  } finally {
    if (running === mine) running = undefined;
    drawMade();
    drawLive();
  }
  if (done > 0) say(`Generated ${count(done)} ${done === 1 ? "ID" : "IDs"}`);
}

function stop() {
  running?.abort();
  running = undefined;
  drawLive();
}

/** Stops generating IDs when another view is shown. */
export const leave = stop;

function forget() {
  made = [];
  total = 0;
}

function drawLive() {
  const live = running !== undefined;
  byId("live").textContent = live ? "Stop" : "Generate live";
}

function drawMade() {
  byId("made").hidden = made.length === 0;
  byId("none-made").hidden = made.length > 0;
  const more = total > SHOWN ? `, the newest ${SHOWN} shown` : "";
  const kept = total > KEPT ? `, the newest ${count(KEPT)} kept` : "";
  byId("made-count").textContent = `${count(total)} ${total === 1 ? "ID" : "IDs"}${more}${kept}`;
  draw(byId("made-list"), ...made.slice(0, SHOWN).map(madeRow));
}

/** @param {Decoded} decoded */
function madeRow(decoded) {
  const { id, time, timestampMs, fields, sequence, layout } = decoded;
  const text = formatId(id, format());
  const values = [...Object.entries(fields), ["sequence", sequence]].map(
    ([name, value]) => `${name} ${value}`,
  );
  return el(
    "li",
    {},
    el(
      "a",
      {
        href: write({
          ...state,
          view: "inspect",
          id: text,
          as: format() === "decimal" ? "" : format(),
          layout: presetOf(layout) ?? String(layout),
        }),
        class: "mono",
        "data-key": `inspect ${id}`,
      },
      text,
    ),
    copyButton(text, text),
    el("small", {}, `${utc(time, timestampMs)} · ${values.join(" · ")}`),
  );
}
