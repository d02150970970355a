// The view of an ID: its possible readings, what its bits mean, and which layouts it fits.
import { bitBar, fieldTable, pointOut } from "./bits.js";
import { attempt, presetOf } from "./core.js";
import { byId, copyButton, draw, el, fact, inputById, say, Typing } from "./dom.js";
import { bare, FORMATS, fitsOf, LIKELIHOODS, layoutsWith, readings } from "./fits.js";
import { formatId, Layout } from "./polyflake.js";
import { write } from "./url.js";
import { fromNow, local, utc, zone } from "./words.js";

/** @import { Fit, Misfit, Reading } from "./fits.js" */
/** @import { Decoded, PolyflakeError } from "./polyflake.js" */
/** @import { State } from "./url.js" */
/** @import { Go } from "./main.js" */

const GROUPS = {
  plausible: {
    heading: "Plausible time",
    because: "At least a week after the epoch, and not in the future.",
  },
  early: {
    heading: "Just after the epoch",
    because: "Any small number decodes to such a time, in every layout.",
  },
  unlikely: { heading: "Unlikely time", because: "In the future, or before there were Snowflakes." },
};

/** @param {Go} go */
export function setUp(go) {
  const input = inputById("id");
  const typing = new Typing(input);
  input.addEventListener("input", () => go({ id: input.value, as: "" }, typing.next()));
  byId("id-form").addEventListener("submit", (event) => event.preventDefault());
  pointOut(byId("answer"));
}

/** @param {State} state */
export function show(state) {
  const input = inputById("id");
  if (input.value !== state.id) input.value = state.id;
  const text = bare(state.id);
  byId("examples").hidden = text !== "";
  byId("found").hidden = text === "";
  input.removeAttribute("aria-invalid");
  if (text === "") return;

  const now = Date.now();
  const chosen = attempt(() => (state.layout === "" ? undefined : new Layout(state.layout)));
  const own = chosen.value;
  const layouts = layoutsWith(own);
  const { found, errors } = readings(text, layouts, now);
  const reading = found.find(({ format }) => format === state.as) ?? found[0];
  if (reading === undefined) {
    input.setAttribute("aria-invalid", "true");
    showNoReading(errors);
    return;
  }

  const { fits, misfits } = fitsOf(reading.id, layouts, now, reading.format);
  const wanted = own === undefined ? undefined : fits.find(({ layout }) => layout.equals(own));
  const fit = wanted ?? fits[0];
  const error = chosen.error ?? attempt(() => own?.decode(reading.id)).error;

  draw(byId("readings"), ...readingList(state, reading, found));
  draw(byId("answer"), ...answer(state, reading, fit, error, now));
  draw(byId("fits"), ...fitList(state, fits, misfits, fit));
  const plausible = fits.filter(({ likelihood }) => likelihood === "plausible").length;
  say(
    fit === undefined
      ? "The ID fits no layout."
      : `Read as ${reading.format}. ${fit.name}: ${utc(fit.decoded.time, fit.decoded.timestampMs)}. Fits ${fits.length} layouts, ${plausible} with a plausible time.`,
  );
}

/** @param {{ format: string, error: PolyflakeError }[]} errors */
function showNoReading(errors) {
  const reasons = errors.map(({ format, error }) =>
    el("li", {}, el("b", {}, format), el("span", {}, error.message)),
  );
  draw(byId("readings"));
  draw(
    byId("answer"),
    el("h2", {}, "No format reads this as an ID"),
    el("ul", { class: "reasons" }, ...reasons),
  );
  draw(byId("fits"));
  say("No format reads this as an ID.");
}

/**
 * @param {State} state
 * @param {Reading} current
 * @param {Reading[]} found
 */
function readingList(state, current, found) {
  if (found.length < 2) return [];
  const choices = found.map((reading) => {
    const { format, id, fits } = reading;
    const best = fits[0];
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: write({ ...state, as: format }),
          class: "choice",
          "aria-current": reading === current ? "true" : undefined,
          "data-key": `read as ${format}`,
        },
        el("b", {}, format),
        el("span", { class: "mono" }, String(id)),
        el(
          "small",
          {},
          best === undefined
            ? "fits no layout"
            : `${best.name}, ${fromNow(best.decoded.timestampMs, Date.now())}`,
        ),
      ),
    );
  });
  return [
    el("h2", {}, `This text can be read in ${found.length} ways`),
    el("ul", { class: "choices wide" }, ...choices),
  ];
}

/**
 * @param {State} state
 * @param {Reading} reading
 * @param {Fit | undefined} fit
 * @param {PolyflakeError | undefined} error
 * @param {number} now
 */
function answer(state, reading, fit, error, now) {
  const parts = [];
  if (error !== undefined) {
    parts.push(
      el("p", { class: "error" }, el("b", {}, "The chosen layout: "), error.message),
      el(
        "p",
        {},
        el(
          "a",
          { href: write({ ...state, layout: "" }), "data-key": "automatic" },
          "Choose the likeliest layout",
        ),
      ),
    );
  }
  if (fit === undefined) {
    parts.push(el("h2", {}, "The ID fits no layout"));
  } else {
    parts.push(...decodedParts(state, fit, now));
  }
  parts.push(el("h3", {}, "As text"), texts(reading.id));
  return parts;
}

/**
 * @param {State} state
 * @param {Fit} fit
 * @param {number} now
 */
function decodedParts(state, { name, layout, decoded }, now) {
  const { time, timestampMs } = decoded;
  const heading = el("h2", {}, "As ", el("span", { class: "layout-name" }, name));
  const edit = el(
    "a",
    {
      href: write({ ...state, view: "layout", layout: presetOf(layout) ?? String(layout) }),
      "data-key": "edit",
    },
    "Edit this layout",
  );
  const times = el("dl", { class: "times" });
  if (time === null) {
    times.append(fact("Time", `Unix ms ${timestampMs}, past the year 275760, where Date ends`));
  } else {
    const iso = time.toISOString();
    times.append(
      fact(
        "UTC",
        el("time", { datetime: iso, class: "mono" }, utc(time, timestampMs)),
        copyButton("UTC time", iso),
        el("span", { class: "aside" }, fromNow(timestampMs, now)),
      ),
      fact("Local", el("span", { class: "mono" }, local(time)), el("span", { class: "aside" }, zone())),
    );
  }
  times.append(
    fact(
      "Unix ms",
      el("span", { class: "mono" }, String(timestampMs)),
      copyButton("Unix ms", String(timestampMs)),
    ),
  );
  const nodeNames = Object.keys(decoded.fields);
  if (nodeNames.length > 1) {
    times.append(
      fact(
        "Node",
        el("span", { class: "mono" }, String(decoded.node)),
        el("span", { class: "aside" }, `${nodeNames.join(" and ")} joined`),
      ),
    );
  }
  return [
    el("div", { class: "heading" }, heading, edit),
    times,
    bitBar(layout, decoded),
    fieldTable(layout, decoded),
    tickRange(layout, decoded),
  ];
}

/**
 * @param {Layout} layout
 * @param {Decoded} decoded
 */
function tickRange(layout, { timestampMs }) {
  const range = attempt(() => [layout.minId(timestampMs), layout.maxId(timestampMs)]);
  const content =
    range.value === undefined
      ? [el("p", { class: "error" }, range.error.message)]
      : [
          el(
            "dl",
            { class: "texts" },
            ...range.value.map((id, end) => {
              const what = end === 0 ? "lowest" : "highest";
              return fact(
                what,
                el("code", {}, String(id)),
                copyButton(`${what} ID of this tick`, String(id)),
              );
            }),
          ),
        ];
  return el(
    "details",
    { class: "more", "data-key": "tick" },
    el("summary", { "data-key": "tick summary" }, "IDs of the same tick, for queries by time"),
    ...content,
  );
}

/** @param {bigint} id */
function texts(id) {
  const rows = FORMATS.map((format) => {
    const text = formatId(id, format);
    return fact(format, el("code", {}, text), copyButton(format, text));
  });
  return el("dl", { class: "texts" }, ...rows);
}

/**
 * @param {State} state
 * @param {Fit[]} fits
 * @param {Misfit[]} misfits
 * @param {Fit | undefined} current
 */
function fitList(state, fits, misfits, current) {
  /** @type {HTMLElement[]} */
  const parts = [el("h2", {}, `Fits ${fits.length} of ${fits.length + misfits.length} layouts`)];
  if (fits.length > 1) {
    parts.push(
      el(
        "p",
        { class: "aside" },
        "The bits of an ID do not say which layout it uses, but the time they would mean often does.",
      ),
    );
  }
  for (const likelihood of LIKELIHOODS) {
    const group = fits.filter((fit) => fit.likelihood === likelihood);
    if (group.length === 0) continue;
    parts.push(
      el("h3", {}, GROUPS[likelihood].heading, " ", el("span", { class: "badge" }, String(group.length))),
      el("p", { class: "aside" }, GROUPS[likelihood].because),
      el(
        "ul",
        { class: likelihood === "plausible" ? "choices" : "choices brief" },
        ...group.map((fit) => fitChoice(state, fit, fit === current)),
      ),
    );
  }
  if (misfits.length > 0) {
    const reasons = misfits.map(({ name, error }) =>
      el("li", {}, el("b", {}, name), el("span", {}, error.message)),
    );
    parts.push(
      el(
        "details",
        { class: "more", "data-key": "misfits" },
        el(
          "summary",
          { "data-key": "misfits summary" },
          "Does not fit ",
          el("span", { class: "badge" }, String(misfits.length)),
        ),
        el("ul", { class: "reasons" }, ...reasons),
      ),
    );
  }
  return parts;
}

/**
 * @param {State} state
 * @param {Fit} fit
 * @param {boolean} current
 */
function fitChoice(state, { name, layout, decoded, likelihood, why }, current) {
  const values = [...Object.entries(decoded.fields), ["sequence", decoded.sequence]];
  const brief = likelihood !== "plausible";
  const fields = el("small", {}, values.map(([field, value]) => `${field} ${value}`).join(" · "));
  return el(
    "li",
    {},
    el(
      "a",
      {
        class: "choice",
        href: write({ ...state, layout: presetOf(layout) ?? String(layout) }),
        "aria-current": current ? "true" : undefined,
        "data-key": `fit ${name}`,
      },
      el("b", {}, name),
      ...(brief ? [] : [el("span", { class: "mono" }, utc(decoded.time, decoded.timestampMs))]),
      el("small", {}, why),
      ...(brief ? [] : [fields]),
    ),
  );
}
