// Drawing functions that every part of the page uses.

/**
 * Creates an element. Attributes whose name starts with `on` are listeners. `--name` sets a style property, which the
 * page's security policy allows in scripts but not in attributes.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name.startsWith("--")) {
      element.style.setProperty(name, String(value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children);
  return element;
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element ${id}`);
  return element;
}

/** @param {string} id */
export const inputById = (id) => /** @type {HTMLInputElement} */ (byId(id));

/** @param {string} id */
export const selectById = (id) => /** @type {HTMLSelectElement} */ (byId(id));

/**
 * Redraws a container. The element with the same `data-key` keeps the focus, and open details stay open.
 *
 * @param {HTMLElement} container
 * @param {...(Node | string)} children
 */
export function draw(container, ...children) {
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && container.contains(focused) ? focused.dataset.key : undefined;
  const open = [...container.querySelectorAll("details[open]")].map((part) => part.getAttribute("data-key"));
  container.replaceChildren(...children);
  for (const details of container.querySelectorAll("details")) {
    if (open.includes(details.dataset.key ?? "")) details.open = true;
  }
  if (key === undefined) return;
  const again = container.querySelector(`[data-key=${CSS.escape(key)}]`);
  if (again instanceof HTMLElement) again.focus();
}

/** @type {number | undefined} */
let saying;

/**
 * Announces a message to screen readers, once the user has stopped typing.
 *
 * @param {string} message
 */
export function say(message) {
  clearTimeout(saying);
  saying = setTimeout(() => {
    byId("said").textContent = message;
  }, 500);
}

/**
 * @param {string} what What is copied. The button's name is `Copy` followed by this.
 * @param {string | (() => string)} text
 * @param {string} [label] What the button shows: the start of its name.
 */
export function copyButton(what, text, label = "Copy") {
  /** @type {number | undefined} */
  let back;
  const button = el(
    "button",
    {
      type: "button",
      class: "copy",
      "data-key": `copy ${what}`,
      "aria-label": `Copy ${what}`,
      onclick: async () => {
        const done = await copy(typeof text === "string" ? text : text());
        button.textContent = done ? "Copied" : "Blocked";
        say(done ? `Copied ${what}` : `The browser did not let ${what} be copied`);
        clearTimeout(back);
        back = setTimeout(() => button.replaceChildren(label), 1500);
      },
    },
    label,
  );
  return button;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page that is not served over https has no clipboard API, but this works there.
    const focused = document.activeElement;
    const area = el("textarea", { class: "unseen", "aria-hidden": true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}

/**
 * @param {string} name
 * @param {...(Node | string)} values
 */
export function fact(name, ...values) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, ...values));
}

/** One history entry for each burst of typing, so that Back returns to the text before it. */
export class Typing {
  #fresh = true;

  /** @param {HTMLElement} element */
  constructor(element) {
    for (const event of ["focusin", "change", "paste"]) {
      element.addEventListener(event, ({ type, target }) => {
        // Number and date inputs fire `change` at every step of their arrows.
        const step = type === "change" && target instanceof HTMLInputElement && target.type !== "text";
        if (!step) this.#fresh = true;
      });
    }
  }

  /** @returns {{ replace: boolean }} */
  next() {
    const replace = !this.#fresh;
    this.#fresh = false;
    return { replace };
  }
}
