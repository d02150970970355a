// The view as the hash of a URL: `#inspect?id=1541815603606036480&layout=twitter`.

/**
 * @typedef {object} State
 * @property {View} view
 * @property {string} id The ID as typed or pasted.
 * @property {string} as The format to read it as; empty: the most likely one.
 * @property {string} layout A preset's name, or a layout string, which may be invalid; empty: none chosen.
 * @property {string} node The node to generate with, as `datacenter:1,worker:7`; fields left out keep their initial value.
 * @property {string} format The format of generated IDs; empty: decimal.
 * @property {string} count How many IDs to generate at a time; empty: 10.
 */

/** @typedef {"inspect" | "layout" | "generate"} View */

/** @type {readonly View[]} */
export const VIEWS = ["inspect", "layout", "generate"];

const KEYS = /** @type {const} */ (["id", "as", "layout", "node", "format", "count"]);

/**
 * @param {string} hash
 * @returns {State}
 */
export function read(hash) {
  const [name, query] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const texts = new URLSearchParams(query);
  /** @param {typeof KEYS[number]} key */
  const text = (key) => texts.get(key) ?? "";
  return {
    view: VIEWS.find((view) => view === name) ?? "inspect",
    id: text("id"),
    as: text("as"),
    layout: text("layout"),
    node: text("node"),
    format: text("format"),
    count: text("count"),
  };
}

/**
 * @param {State} state
 * @returns {string}
 */
export function write(state) {
  const query = KEYS.filter((key) => state[key] !== "").map((key) => `${key}=${encode(state[key])}`);
  return `#${[state.view, ...(query.length > 0 ? [query.join("&")] : [])].join("?")}`;
}

/** @param {string} text */
function encode(text) {
  // These are allowed in a hash, and a layout is easier to read with them.
  return encodeURIComponent(text).replace(/%(3A|40|2F|2C)/g, decodeURIComponent);
}
