// The bits of an ID or a layout as a coloured bar, and as a table for users who cannot see it.
import { greatest, isNode } from "./core.js";
import { el } from "./dom.js";
import { count } from "./words.js";

/** @import { Decoded, Field, Layout } from "./polyflake.js" */

const ID_BITS = 64;

/**
 * Each field's colour. The timestamp and the sequence have their own colours, whatever their positions.
 *
 * @param {Layout} layout
 * @returns {(field: Field) => string}
 */
function colours(layout) {
  const nodes = layout.fields.filter(isNode);
  return (field) => (isNode(field) ? `node${nodes.indexOf(field) + 1}` : field.name);
}

/**
 * @param {Decoded} decoded
 * @param {Field} field
 */
function fieldValue(decoded, field) {
  if (field.name === "timestamp") return decoded.ticks;
  return field.name === "sequence" ? decoded.sequence : (decoded.fields[field.name] ?? 0);
}

/**
 * @param {Layout} layout
 * @param {Decoded} [decoded]
 */
export function bitBar(layout, decoded) {
  const colourOf = colours(layout);
  const unused = ID_BITS - layout.totalBits;
  const words = layout.fields.map((field) => {
    const value = decoded === undefined ? "" : `, ${fieldValue(decoded, field)}`;
    return `${field.name} ${field.bits} bits${value}`;
  });
  if (unused > 0) words.unshift(`${unused} unused`);

  const segments = layout.fields.map((field, index) =>
    el(
      "span",
      {
        class: "segment",
        "data-colour": colourOf(field),
        "data-field": field.name,
        "--bits": field.bits,
        title: `${field.name}: ${field.bits} bits`,
      },
      el("b", {}, String(index + 1)),
      el("span", { class: "name" }, field.name),
      el("span", { class: "width" }, String(field.bits)),
    ),
  );
  if (unused > 0) {
    segments.unshift(
      el("span", { class: "segment unused", "--bits": unused, title: `unused: ${unused} bits` }),
    );
  }
  const bar = el(
    "div",
    { class: "bits", role: "img", "aria-label": `${ID_BITS} bits, from the highest: ${words.join("; ")}` },
    el("div", { class: "bar" }, ...segments),
  );
  if (decoded !== undefined) bar.append(cells(layout, decoded, colourOf));
  return bar;
}

/**
 * @param {Layout} layout
 * @param {Decoded} decoded
 * @param {(field: Field) => string} colourOf
 */
function cells(layout, decoded, colourOf) {
  const digits = decoded.id.toString(2).padStart(ID_BITS, "0");
  const drawn = [...digits].map((digit, index) => {
    const place = ID_BITS - 1 - index;
    const field = layout.fields.find(({ shift, bits }) => place >= shift && place < shift + bits);
    const first = field === undefined ? index === 0 : place === field.shift + field.bits - 1;
    return el(
      "span",
      {
        class: `cell ${digit === "1" ? "one" : "zero"}${first ? " first" : ""}${field === undefined ? " unused" : ""}`,
        "data-colour": field === undefined ? undefined : colourOf(field),
        "data-field": field?.name,
        title: `bit ${place}: ${field?.name ?? "unused"}`,
      },
      digit,
    );
  });
  return el("div", { class: "cells" }, ...drawn);
}

/**
 * @param {Layout} layout
 * @param {Decoded} [decoded]
 */
export function fieldTable(layout, decoded) {
  const colourOf = colours(layout);
  const rows = layout.fields.map((field, index) => {
    const top = field.shift + field.bits - 1;
    const last =
      decoded === undefined
        ? [el("td", { class: "number" }, count(greatest(field)))]
        : [
            el("td", { class: "number value" }, String(fieldValue(decoded, field))),
            el("td", { class: "number hex" }, `0x${fieldValue(decoded, field).toString(16)}`),
          ];
    return el(
      "tr",
      { "data-field": field.name },
      el(
        "th",
        { scope: "row" },
        el(
          "span",
          { class: "keyed" },
          el(
            "span",
            { class: "key", "data-colour": colourOf(field), "aria-hidden": true },
            String(index + 1),
          ),
          field.name,
        ),
      ),
      el("td", { class: "number" }, String(field.bits)),
      el("td", { class: "number place" }, top === field.shift ? String(top) : `${top}–${field.shift}`),
      ...last,
    );
  });
  const heads = ["Bits", "Place", ...(decoded === undefined ? ["Largest value"] : ["Value", "Hex"])];
  const classes = ["number", "number place", "number", "number hex"];
  return el(
    "table",
    { class: "fields" },
    el("caption", { class: "unseen" }, "The fields, from the highest bit down"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Field"),
        ...heads.map((head, index) => el("th", { scope: "col", class: classes[index] }, head)),
      ),
    ),
    el("tbody", {}, ...rows),
  );
}

/**
 * Pointing at a field, in the bar or in the table, dims the bits of the other fields.
 *
 * @param {HTMLElement} container
 */
export function pointOut(container) {
  /** @param {string | undefined} name */
  const lit = (name) => {
    for (const part of container.querySelectorAll(".bits [data-field]")) {
      part.classList.toggle(
        "dim",
        name !== undefined && part instanceof HTMLElement && part.dataset.field !== name,
      );
    }
  };
  container.addEventListener("pointerover", ({ target }) => {
    const part = target instanceof Element ? target.closest("[data-field]") : null;
    lit(part instanceof HTMLElement ? part.dataset.field : undefined);
  });
  container.addEventListener("pointerleave", () => lit(undefined));
}
