// The ID of the landing page, taken apart by the inspector's own modules.
import { bitBar, fieldTable, pointOut } from "../inspector/bits.js";
import { attempt } from "../inspector/core.js";
import { el } from "../inspector/dom.js";
import { Layout, parseId, Snowflake } from "../inspector/polyflake.js";
import { fromNow, utc } from "../inspector/words.js";

const LAYOUT = "twitter";

/** In place of the picture that is shown without scripts, with the same ID. */
export function show(container) {
  const layout = new Layout(LAYOUT);
  const ids = new Snowflake({ layout, node: container.dataset.node });
  const input = el("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    value: container.dataset.id,
  });
  const answer = el("div");

  function draw() {
    const text = input.value.trim();
    const { value: decoded, error } = attempt(() => layout.decode(parseId(text, "decimal")));
    input.toggleAttribute("aria-invalid", error !== undefined);
    if (error !== undefined) {
      answer.replaceChildren(el("p", { class: "error" }, error.message));
      return;
    }
    const inspector = new URL("../inspector/index.html", import.meta.url);
    inspector.hash = `inspect?id=${decoded.id}&layout=${LAYOUT}`;
    const bits = el("div", {}, bitBar(layout, decoded), fieldTable(layout, decoded));
    pointOut(bits);
    answer.replaceChildren(
      el(
        "p",
        { class: "said" },
        el(
          "span",
          {},
          `${utc(decoded.time, decoded.timestampMs)}, ${fromNow(decoded.timestampMs, Date.now())}`,
        ),
        el("a", { href: inspector.href }, "Open in the inspector"),
      ),
      bits,
    );
  }

  input.addEventListener("input", draw);
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        input.value = String(ids.nextId());
        draw();
      },
    },
    el("label", {}, "Snowflake ID", input),
    el("button", { type: "submit" }, "New ID"),
  );
  draw();
  container.replaceChildren(form, answer);
  container.classList.add("live");
}
