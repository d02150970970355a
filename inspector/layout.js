// The view of a layout: its fields, which can be edited, how long it lasts, and how many IDs it allows.
import { bitBar, fieldTable, pointOut } from "./bits.js";
import { attempt, isNode, PRESETS, presetOf } from "./core.js";
import { byId, copyButton, draw, el, fact, inputById, say, selectById, Typing } from "./dom.js";
import { Layout } from "./polyflake.js";
import { amount, count, day, duration, fromNow, utc } from "./words.js";

/** @import { Outcome } from "./core.js" */
/** @import { Go } from "./main.js" */
/** @import { PolyflakeError } from "./polyflake.js" */
/** @import { State } from "./url.js" */

/**
 * The form's contents: strings that may not make a valid layout.
 *
 * @typedef {object} Draft
 * @property {{ name: string, bits: string }[]} fields
 * @property {string} epochMs
 * @property {string} tickMs
 */

const DEFAULT = "twitter";

/**
 * The chosen layout, or why it is invalid.
 *
 * @param {State} state
 * @returns {Outcome<Layout>}
 */
export function chosenLayout(state) {
  const text = state.layout || DEFAULT;
  const { value, error } = attempt(() => new Layout(text));
  if (value !== undefined) return { value };
  // Given a layout's parts, the core says which one is wrong; given a layout string, only where it stopped parsing.
  return text.includes(":") ? build(draftOf(text)) : { error };
}

/**
 * @param {Draft} parts
 * @returns {Outcome<Layout>}
 */
function build({ fields, epochMs, tickMs }) {
  /** @type {[name: string, bits: string][]} */
  const pairs = fields.map(({ name, bits }) => [name, bits]);
  return attempt(() => new Layout({ fields: pairs, epochMs, tickMs }));
}

/**
 * Splits a layout string into the form's parts, even if the layout is invalid.
 *
 * @param {string} text
 * @returns {Draft}
 */
function draftOf(text) {
  const layout = attempt(() => new Layout(text)).value;
  if (layout !== undefined) {
    return {
      fields: layout.fields.map(({ name, bits }) => ({ name, bits: String(bits) })),
      epochMs: String(layout.epochMs),
      tickMs: String(layout.tickMs),
    };
  }
  const [, fields = text, epochMs = "", tickMs = ""] = /^(.*)@([^@/]*)\/(.*?)(?:ms)?$/s.exec(text) ?? [];
  return {
    fields: fields.split("|").map((field) => {
      const [, name = field, bits = ""] = /^(.*):(.*?)$/s.exec(field) ?? [];
      return { name, bits };
    }),
    epochMs,
    tickMs: tickMs.replace(/^(\d+)s$/, (_, seconds) => `${seconds}000`),
  };
}

/** @param {Draft} parts */
function textOf(parts) {
  const layout = build(parts).value;
  if (layout !== undefined) return presetOf(layout) ?? String(layout);
  return `${parts.fields.map(({ name, bits }) => `${name}:${bits}`).join("|")}@${parts.epochMs}/${parts.tickMs}ms`;
}

/** @param {Go} go */
export function setUp(go) {
  for (const select of [selectById("preset"), selectById("generate-preset")]) {
    select.append(...PRESETS.map(({ name }) => el("option", { value: name }, name)));
    select.addEventListener("change", () => go({ layout: select.value }));
  }

  /** @param {Draft} next @param {{ replace: boolean }} [history] */
  const edit = (next, history) => go({ layout: textOf(next) }, history);
  const form = byId("layout-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  const typing = new Typing(form);
  form.addEventListener("input", ({ target }) => {
    if (target === selectById("preset")) return;
    const date = inputById("epoch-date");
    if (target === date) {
      // An incomplete date has no value.
      if (date.value === "") return;
      inputById("epoch").value = String(Date.parse(`${date.value}Z`));
    }
    edit(fromForm(), typing.next());
  });
  byId("rows").addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    const index = Number(button?.closest("li")?.dataset.index);
    const action = button?.dataset.action;
    if (action === undefined) return;
    const { fields, ...others } = fromForm();
    const [moved] = fields.splice(index, 1);
    if (moved === undefined) return;
    const to = index + (action === "up" ? -1 : 1);
    if (action !== "remove") fields.splice(to, 0, moved);
    edit({ fields, ...others });
    if (action === "remove") {
      inputById(`name-${Math.min(index, fields.length - 1)}`)?.focus();
      say(`Removed ${moved.name}`);
    } else {
      focusMove(to, action);
      say(`${moved.name} is now ${to + 1} of ${fields.length}`);
    }
  });
  byId("add").addEventListener("click", () => {
    const { fields, ...others } = fromForm();
    const names = ["worker", "datacenter", "node", "shard", "region", "process", "machine", "rack"];
    const name = names.find((free) => !fields.some((field) => field.name === free)) ?? "";
    const sequence = fields.findIndex((field) => field.name === "sequence");
    const at = sequence === -1 ? fields.length : sequence;
    fields.splice(at, 0, { name, bits: "1" });
    edit({ fields, ...others });
    const added = inputById(`name-${at}`);
    added.focus();
    added.select();
  });
  pointOut(byId("layout-answer"));
}

/**
 * @param {number} index
 * @param {string} action
 */
function focusMove(index, action) {
  const buttons = [...byId("rows").querySelectorAll(`[data-index="${index}"] button`)];
  const usable = buttons.filter((button) => button instanceof HTMLButtonElement && !button.disabled);
  const again =
    usable.find((button) => button instanceof HTMLElement && button.dataset.action === action) ?? usable[0];
  if (again instanceof HTMLElement) again.focus();
}

/** @returns {Draft} */
function fromForm() {
  const rows = [...byId("rows").querySelectorAll("li")];
  return {
    fields: rows.map((_, index) => ({
      name: inputById(`name-${index}`).value,
      bits: inputById(`bits-${index}`).value,
    })),
    epochMs: inputById("epoch").value,
    tickMs: inputById("tick").value,
  };
}

/** @param {State} state */
export function show(state) {
  const outcome = chosenLayout(state);
  const text = state.layout || DEFAULT;
  const unknown = outcome.error?.code === "UNKNOWN_LAYOUT";
  const next = unknown ? { fields: [], epochMs: "", tickMs: "" } : draftOf(text);
  toForm(next);

  const preset = outcome.value === undefined ? undefined : presetOf(outcome.value);
  choosePreset(selectById("preset"), preset, "your own layout");
  showError(outcome, next);
  draw(
    byId("layout-answer"),
    ...(outcome.value === undefined ? [noAnswer(outcome.error.message)] : answer(outcome.value)),
  );
  say(
    outcome.value === undefined
      ? outcome.error.message
      : `Lasts ${lasts(outcome.value)}, ${count(outcome.value.nodes)} nodes, ${amount(perSecond(outcome.value))} IDs a second and node`,
  );
}

/**
 * @param {HTMLSelectElement} select
 * @param {string | undefined} preset
 * @param {string} other What to show if the layout is not a preset.
 */
export function choosePreset(select, preset, other) {
  select.querySelector("option[data-own]")?.remove();
  if (preset === undefined)
    select.prepend(el("option", { value: "", "data-own": true, disabled: true }, other));
  select.value = preset ?? "";
}

/** @param {Draft} next */
function toForm({ fields, epochMs, tickMs }) {
  const rows = byId("rows");
  const shown = fromForm().fields;
  if (shown.length !== fields.length) draw(rows, ...fields.map((_, index) => row(index, fields.length)));
  fields.forEach(({ name, bits }, index) => {
    setValue(`name-${index}`, name);
    setValue(`bits-${index}`, bits);
  });
  setValue("epoch", epochMs);
  setValue("tick", tickMs);
  const epoch = new Date(Number(epochMs));
  const dated = /^\d+$/.test(epochMs) && !Number.isNaN(epoch.getTime()) && epoch.getUTCFullYear() < 10_000;
  const date = inputById("epoch-date");
  // The input formats a date in its own way, so only a different date is set.
  if (!dated) date.value = "";
  else if (Date.parse(`${date.value}Z`) !== epoch.getTime())
    date.value = epoch.toISOString().replace("Z", "");
}

/**
 * @param {string} id
 * @param {string} value
 */
function setValue(id, value) {
  const input = inputById(id);
  // Setting the value would move the caret while the user types.
  if (input.value !== value) input.value = value;
}

/**
 * @param {number} index
 * @param {number} rows
 */
function row(index, rows) {
  const place = `of field ${index + 1}`;
  /** @param {string} action @param {string} label @param {string} sign @param {boolean} disabled */
  const button = (action, label, sign, disabled) =>
    el(
      "button",
      { type: "button", class: "icon", "data-action": action, "aria-label": label, title: label, disabled },
      sign,
    );
  return el(
    "li",
    { "data-index": index },
    el("input", {
      id: `name-${index}`,
      class: "mono",
      "aria-label": `Name ${place}`,
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      "data-key": `name-${index}`,
    }),
    el("input", {
      id: `bits-${index}`,
      class: "mono bits-input",
      "aria-label": `Bits ${place}`,
      type: "number",
      min: 1,
      max: 64,
      "data-key": `bits-${index}`,
    }),
    button("up", `Move field ${index + 1} up`, "↑", index === 0),
    button("down", `Move field ${index + 1} down`, "↓", index === rows - 1),
    button("remove", `Remove field ${index + 1}`, "×", rows === 1),
  );
}

/**
 * Finds the inputs that caused an error: those where a different value leads to a different result.
 *
 * @param {PolyflakeError} error
 * @param {Draft} parts
 */
function wrongInputs(error, parts) {
  const { fields } = parts;
  /** @param {Partial<Draft>} change */
  const matters = (change) => build({ ...parts, ...change }).error?.message !== error.message;
  /** @param {number} at */
  const withOneBit = (at) => fields.map((field, index) => (index === at ? { ...field, bits: "1" } : field));
  const found = fields.flatMap((_, at) => (matters({ fields: withOneBit(at) }) ? [`bits-${at}`] : []));
  if (matters({ epochMs: "0" })) found.push("epoch");
  if (matters({ tickMs: "1" })) found.push("tick");
  if (found.length > 0) return found;
  const names = fields.map(({ name }) => name);
  const wrong = names.findLastIndex((name, at) => names.indexOf(name) < at || !isUsable(name));
  return wrong === -1 ? [] : [`name-${wrong}`];
}

/** @param {string} name */
function isUsable(name) {
  if (!isNode({ name })) return true;
  const fields = { timestamp: 1, [name]: 1, sequence: 1 };
  return attempt(() => new Layout({ fields, epochMs: 0 })).error === undefined;
}

/**
 * @param {Outcome<Layout>} outcome
 * @param {Draft} parts
 */
function showError({ error }, parts) {
  const form = byId("layout-form");
  for (const old of form.querySelectorAll(".error")) old.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  if (error === undefined) return;
  const paragraph = el("p", { class: "error", id: "layout-error" }, error.message);
  if (error.code === "UNKNOWN_LAYOUT") {
    selectById("preset").after(paragraph);
    return;
  }
  const inputs = wrongInputs(error, parts).map(byId);
  for (const input of inputs) {
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "layout-error");
  }
  const only = inputs.length === 1 ? inputs[0] : undefined;
  (only?.closest("li, .control") ?? byId("rows-end")).append(paragraph);
}

/** @param {string} message */
const noAnswer = (message) =>
  el("div", { class: "empty" }, el("h2", {}, "This layout cannot work"), el("p", {}, message));

/** @param {Layout} layout */
export const perSecond = ({ idsPerTick, tickMs }) => (idsPerTick * 1000) / Number(tickMs);

/** @param {Layout} layout */
const lasts = ({ epochMs, endsAtMs }) => duration(Number(endsAtMs - epochMs));

/** @param {Layout} layout */
function answer(layout) {
  const now = Date.now();
  const { endsAtMs, endsAt, epochMs, epoch, nodes, idsPerTick, totalBits, tickMs } = layout;
  const rate = perSecond(layout);
  const over = Number(endsAtMs) < now;
  const tick =
    tickMs === 1n ? "ms" : tickMs % 1000n === 0n ? `tick of ${tickMs / 1000n} s` : `tick of ${tickMs} ms`;
  const text = String(layout);
  const code = `new Layout(${JSON.stringify(presetOf(layout) ?? text)})`;
  return [
    el("h2", {}, over ? "Lasted " : "Lasts ", el("strong", {}, lasts(layout))),
    lifetime(layout, now),
    el(
      "dl",
      { class: "figures" },
      fact(
        "Ends",
        el("span", { class: "mono" }, endsAt === null ? `Unix ms ${endsAtMs}` : utc(endsAt, endsAtMs)),
        el("small", {}, over ? `ran out ${fromNow(endsAtMs, now)}` : fromNow(endsAtMs, now)),
      ),
      fact(
        "Epoch",
        el("span", { class: "mono" }, epoch === null ? `Unix ms ${epochMs}` : utc(epoch, epochMs)),
        el("small", {}, fromNow(epochMs, now)),
      ),
      fact(
        "Nodes",
        count(nodes),
        el(
          "small",
          {},
          nodes === 1
            ? "no node field"
            : layout.fields
                .filter(isNode)
                .map(({ name, bits }) => `${name} ${count(2 ** bits)}`)
                .join(" × "),
        ),
      ),
      fact("IDs a second and node", amount(rate), el("small", {}, `${count(idsPerTick)} in each ${tick}`)),
      fact(
        "IDs a second in all",
        amount(rate * nodes),
        el("small", {}, nodes === 1 ? "one node" : `from ${count(nodes)} nodes`),
      ),
      fact(
        "Bits",
        `${totalBits} of 64`,
        el(
          "small",
          {},
          totalBits <= 53
            ? "exact as a JavaScript Number"
            : totalBits === 64
              ? "exceeds a signed 64-bit integer"
              : "fits a signed 64-bit integer",
        ),
      ),
    ),
    bitBar(layout),
    fieldTable(layout),
    el("h3", {}, "As text"),
    el(
      "dl",
      { class: "texts long" },
      fact("layout", breakable(text), copyButton("layout", text)),
      fact("code", breakable(code), copyButton("code", code)),
    ),
  ];
}

/**
 * Shows a layout string as code that may wrap after each bar.
 *
 * @param {string} text
 */
function breakable(text) {
  const pieces = text.split(/(?<=\|)/);
  return el("code", {}, ...pieces.flatMap((piece) => [piece, el("wbr")]));
}

/**
 * @param {Layout} layout
 * @param {number} now
 */
function lifetime({ epochMs, endsAtMs, epoch, endsAt }, now) {
  const part = Math.min(1, Math.max(0, (now - Number(epochMs)) / Number(endsAtMs - epochMs)));
  const percent = `${(100 * part).toFixed(2)}%`;
  return el(
    "div",
    { class: "lifetime", role: "img", "aria-label": `${part === 1 ? "All" : percent} of its time is used` },
    el(
      "div",
      { class: "line", "--part": percent },
      el("span", { class: "used" }),
      el("span", { class: "now" }),
    ),
    el(
      "div",
      { class: "ends" },
      el("span", {}, epoch === null ? "epoch" : day(epoch)),
      el("span", {}, `${part === 1 ? "100%" : `${(100 * part).toFixed(part < 0.01 ? 2 : 0)}%`} used`),
      el("span", {}, endsAt === null ? "end" : day(endsAt)),
    ),
  );
}
