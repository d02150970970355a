// Runs every case of tests/vectors.json through the public API, in Node and in browsers. The file describes its format
// under "about".

/** The sections that the entry point `polyflake/decode` can run. */
const READING = ["decode", "decode_refused", "bounds", "texts", "texts_read", "texts_refused"];

/**
 * Runs all cases, or those of the sections `only`. `check(section, name, run)` is called for each case and calls `run`,
 * which throws if the case fails. Returns the number of cases in each section.
 */
export function runVectors(polyflake, vectors, check, only = Object.keys(vectors)) {
  const run = sections(polyflake, vectors);
  const counts = {};
  check("sections", "every section is known and has cases", () => {
    same(Object.keys(vectors), ["about", ...Object.keys(run)], "the file's sections");
    for (const [name, cases] of Object.entries(vectors)) same(cases.length > 0, true, `${name} has cases`);
  });
  for (const [section, runCase] of Object.entries(run)) {
    if (!only.includes(section)) continue;
    counts[section] = 0;
    for (const [number, given] of vectors[section].entries()) {
      check(section, `${number} ${given.name ?? label(given)}`, () => runCase(given));
      counts[section] += 1;
    }
  }
  return counts;
}

/** Runs the cases for the functions of the entry point `polyflake/decode`. */
export function runReadingVectors(entry, vectors, check) {
  class Layout {
    constructor(given) {
      Object.assign(this, entry.presets[given] ?? layoutFields(given));
    }
    decode(id) {
      return entry.decode(id, this);
    }
    minId(time) {
      return entry.minId(time, this);
    }
    maxId(time) {
      return entry.maxId(time, this);
    }
    equals(other) {
      return other === this;
    }
  }
  return runVectors({ ...entry, Layout }, vectors, check, READING);
}

/** Converts a layout string to an object. */
export function layoutFields(text) {
  const [fields, epochMs, tick] = text.split(/[@/]/);
  const [, count, unit] = /^(\d+)(ms|s)$/.exec(tick);
  return {
    fields: fields.split("|").map((field) => field.split(":")),
    epochMs,
    tickMs: BigInt(count) * (unit === "s" ? 1000n : 1n),
  };
}

const label = (given) => JSON.stringify(given).slice(0, 80);

const CAMEL_CASE = {
  max_backward_ms: "maxBackwardMs",
  max_ahead_ms: "maxAheadMs",
  max_wait_ms: "maxWaitMs",
  sequence_start: "sequenceStart",
  // The vectors use this as a name that belongs to another language. In JavaScript, that is the snake_case name.
  maxWaitMs: "max_wait_ms",
  node_text: "node",
};

const FORMATS = [
  "decimal",
  "hex",
  "base32",
  "base36",
  "base58",
  "base62",
  "uuid",
  "bwmarrin-base32",
  "bwmarrin-base58",
];
const HELD_MS = 1656432460105n;

function sections({ Decoded, Layout, PolyflakeError, Snowflake, formatId, parseId }, vectors) {
  const numbers = new Map(vectors.errors.map(({ number, name }) => [name, number]));

  function fails(name, call, carried = {}) {
    let error;
    try {
      call();
    } catch (caught) {
      error = caught;
    }
    if (error === undefined) throw new Error(`nothing was thrown; expected ${name}`);
    if (!(error instanceof PolyflakeError)) throw error;
    same(error.code, name.toUpperCase(), "the error's code");
    same(error.number, numbers.get(name), "the error's number");
    same(error.message.startsWith(`${name}: `), true, `"${error.message}" starts with the error's name`);
    same(error.behindMs, carried.behind_ms === undefined ? undefined : Number(carried.behind_ms), "behindMs");
    const retryAfterMs = carried.retry_after_ms;
    same(error.retryAfterMs, retryAfterMs === undefined ? undefined : Number(retryAfterMs), "retryAfterMs");
    return error;
  }

  /** The expected value, or the expected error's name and number. */
  const outcome = (expected, call) => {
    if (typeof expected === "string") same(call(), BigInt(expected), "the ID");
    else fails(expected.error, call);
  };

  return {
    errors({ number, name }) {
      same(
        [...numbers.values()].filter((other) => other === number).length,
        1,
        `how often ${number} is given`,
      );
      same(/^[a-z_]+$/.test(name), true, "a name in snake_case");
    },

    layouts(given) {
      const layout = new Layout(given.given);
      same(String(layout), given.text, "its text");
      for (const other of [
        new Layout(given.text),
        new Layout(layout),
        new Layout({
          fields: given.fields.map(({ name, bits }) => [name, bits]),
          epochMs: BigInt(given.epoch_ms),
          tickMs: BigInt(given.tick_ms),
        }),
        new Layout({
          fields: Object.fromEntries(given.fields.map(({ name, bits }) => [name, String(bits)])),
          epochMs: given.epoch_ms,
          tickMs: given.tick_ms,
        }),
      ]) {
        same(String(other), given.text, "the text of the layout made another way");
        same(layout.equals(other) && other.equals(layout), true, "equal layouts are equal");
      }
      same(layout.epochMs, BigInt(given.epoch_ms), "epochMs");
      same(layout.tickMs, BigInt(given.tick_ms), "tickMs");
      same(layout.endsAtMs, BigInt(given.ends_at_ms), "endsAtMs");
      same(layout.epoch?.getTime(), date(given.epoch_ms)?.getTime(), "epoch");
      same(layout.endsAt?.getTime(), date(given.ends_at_ms)?.getTime(), "endsAt");
      same(layout.idsPerTick, Number(given.ids_per_tick), "idsPerTick");
      same(layout.nodes, Number(given.nodes), "nodes");
      same(layout.totalBits, given.total_bits, "totalBits");
      same(layout.nodeBits, given.node_bits, "nodeBits");
      same(layout.timestampBits, given.timestamp_bits, "timestampBits");
      same(layout.timestampShift, given.timestamp_shift, "timestampShift");
      same(layout.sequenceBits, given.sequence_bits, "sequenceBits");
      same(layout.sequenceShift, given.sequence_shift, "sequenceShift");
      same(
        layout.fields,
        given.fields.map(({ name, bits, shift, mask }) => ({ name, bits, shift, mask: BigInt(mask) })),
        "fields",
      );
      const isPreset = !/[:|@/]/.test(given.given);
      same(Layout.presets.includes(given.given), isPreset, "whether it is among the presets");
    },

    layouts_refused(given) {
      fails(given.error, () => new Layout(given.given));
      fails(given.error, () => new Snowflake({ layout: given.given, node: 0, clock: () => 0 }));
    },

    decode(given) {
      const layout = new Layout(given.layout);
      for (const id of integers(given.id)) {
        const decoded = layout.decode(id);
        same(decoded instanceof Decoded, true, "a Decoded");
        same(decoded.id, BigInt(given.id), "id");
        same(decoded.timestampMs, BigInt(given.timestamp_ms), "timestampMs");
        same(decoded.time?.getTime(), date(given.timestamp_ms)?.getTime(), "time");
        same(decoded.ticks, BigInt(given.ticks), "ticks");
        same(decoded.node, Number(given.node), "node");
        same(
          Object.entries(decoded.fields),
          Object.entries(given.fields).map(([k, v]) => [k, Number(v)]),
          "fields",
        );
        same(decoded.sequence, Number(given.sequence), "sequence");
        same(decoded.layout.equals(layout), true, "its layout");
      }
    },

    decode_refused(given) {
      const layout = new Layout(given.layout);
      for (const id of integers(given.id)) fails(given.error, () => layout.decode(id));
    },

    compose(given) {
      const layout = new Layout(given.layout);
      for (const time of instants(given.time_ms)) {
        for (const as of [BigInt, Number, String]) {
          const id = layout.compose(time, nodeOf(given.node, as), as(given.sequence));
          same(id, BigInt(given.id), "the ID");
        }
      }
    },

    compose_refused(given) {
      const layout = new Layout(given.layout);
      for (const time of instants(given.time_ms)) {
        for (const as of [BigInt, String]) {
          fails(given.error, () => layout.compose(time, nodeOf(given.node, as), as(given.sequence)));
        }
      }
    },

    bounds(given) {
      const layout = new Layout(given.layout);
      for (const time of instants(given.time_ms)) {
        outcome(given.min_id, () => layout.minId(time));
        outcome(given.max_id, () => layout.maxId(time));
      }
    },

    texts(given) {
      const { id, ...texts } = given;
      same(Object.keys(texts), FORMATS, "the formats");
      for (const [format, text] of Object.entries(texts)) {
        for (const value of integers(id)) same(formatId(value, format), text, format);
        same(parseId(text, format), BigInt(id), `reading ${format}`);
      }
    },

    texts_read(given) {
      same(parseId(given.text, given.format), BigInt(given.id), "the ID");
    },

    texts_refused(given) {
      const { message } = fails(given.error, () => parseId(given.text, given.format));
      const positions = [...message.matchAll(/\bposition (\d+)\b/g)].map(([, position]) => Number(position));
      same(positions, given.position === null ? [] : [given.position], `the positions in "${message}"`);
    },

    options(given) {
      for (const as of [BigInt, Number, String]) {
        const snowflake = new Snowflake({ clock: () => HELD_MS, ...optionsOf(given.options, as) });
        same(snowflake.node, Number(given.node), "node");
        same(String(snowflake.layout), given.layout, "layout");
      }
    },

    options_refused(given) {
      for (const as of [BigInt, String]) {
        fails(given.error, () => new Snowflake({ clock: () => HELD_MS, ...optionsOf(given.options, as) }));
      }
    },

    scripts(given) {
      for (const call of [plainly, otherwise]) {
        const clock = new HeldClock();
        const options = { ...optionsOf(given.options, BigInt), clock: () => clock.read() };
        const snowflake = new Snowflake(options);
        for (const [number, step] of given.steps.entries()) {
          clock.set(step);
          try {
            runStep(step, () => call(snowflake, step));
          } catch (error) {
            error.message = `step ${number} ${label(step)}: ${error.message}`;
            throw error;
          }
        }
      }
    },
  };

  function runStep(step, call) {
    if ("error" in step) {
      fails(step.error, call, step);
      return;
    }
    const ids = call();
    if ("id" in step) same(ids, [BigInt(step.id)], "the ID");
    else if ("ids" in step) same(ids, step.ids.map(BigInt), "the IDs");
    else {
      const { count, first, last } = step.run;
      same(
        [BigInt(ids.length), ids[0], ids.at(-1)],
        [count, first, last].map(BigInt),
        "count, first and last",
      );
      for (let at = 1; at < ids.length; at += 1) {
        if (ids[at] <= ids[at - 1]) throw new Error(`${ids[at]} follows ${ids[at - 1]}`);
      }
    }
  }
}

/** Makes the call that a step describes. */
function plainly(snowflake, step) {
  if (step.call === "next_ids") return [...snowflake.nextIds(BigInt(step.n))];
  return [step.call === "next_id" ? snowflake.nextId() : snowflake.tryNextId()];
}

/** Makes the same call through equivalent methods. */
function otherwise(snowflake, step) {
  if (step.call === "try_next_id") return [snowflake.tryNextId()];
  if (step.call === "next_id") return [snowflake.next().value];
  const n = Number(step.n);
  if (n < 1 || n > 2 ** 20) return [...snowflake.nextIds(step.n)];
  const ids = new BigUint64Array(n);
  snowflake.fill(ids);
  return [...ids];
}

/** Returns `value`. Each reading of a step after its first advances it, up to `until`. */
class HeldClock {
  #value = 0n;
  #advance = 0n;
  #until = 0n;
  #wasRead = false;

  set({ clock, advance = 0, until }) {
    if (clock !== undefined) this.#value = BigInt(clock);
    this.#advance = BigInt(advance);
    this.#until = until === undefined ? this.#value : BigInt(until);
    this.#wasRead = false;
  }

  read() {
    if (this.#wasRead && this.#value < this.#until) {
      this.#value += this.#advance;
      if (this.#value > this.#until) this.#value = this.#until;
    }
    this.#wasRead = true;
    const number = Number(this.#value);
    return Number.isSafeInteger(number) ? number : this.#value;
  }
}

/** An integer in every form that can hold it. */
function integers(text) {
  const number = Number(text);
  return [text, BigInt(text), ...(Number.isSafeInteger(number) ? [number] : [])];
}

/** An instant in every form that can hold it. */
function instants(text) {
  const [, ...forms] = integers(text);
  const time = date(text);
  return time === null ? forms : [...forms, time];
}

/** A Date, or `null` past the end of Date's range. */
function date(unixMs) {
  const time = new Date(Number(unixMs));
  return Number.isNaN(time.getTime()) ? null : time;
}

function nodeOf(node, as) {
  if (node === null) return null;
  if (typeof node === "string") return as(node);
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, as(value)]));
}

/** A case's options in JavaScript's form, with whole numbers converted by `as`. */
function optionsOf(texts, as) {
  const options = Object.entries(texts).map(([name, value]) => {
    if (name === "node") return [name, nodeOf(value, as)];
    const isNumber = /_ms$/.test(name) && /^-?[0-9]+$/.test(value);
    return [CAMEL_CASE[name] ?? name, isNumber ? as(value) : value];
  });
  return Object.fromEntries(options);
}

function same(actual, expected, what) {
  if (shown(actual) !== shown(expected)) {
    throw new Error(`${what}: ${shown(actual)}, expected ${shown(expected)}`);
  }
}

/** Values as text that distinguishes 1, 1n and "1". */
function shown(value) {
  if (value === undefined) return "undefined";
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}n` : part));
}
