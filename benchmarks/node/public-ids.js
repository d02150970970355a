// Public IDs, beside Sqids, Hashids, and UUIDs: the rows of two tables.
import { randomUUID } from "node:crypto";
import { timed } from "./measure.js";
import { cause } from "./peers.js";

const COUNT = 1000;

/** `encode` and `decode` are the code of calls with `it.ids[i]` and `it.texts[i]`. */
const codecs = [
  {
    name: "sqids",
    make: ({ default: Sqids }) => new Sqids(),
    text: (it, id) => it.encode([Number(BigInt.asUintN(53, id))]),
    id: (id) => [Number(BigInt.asUintN(53, id))],
    encode: "it.it.encode(it.ids[i])",
    decode: "it.it.decode(it.texts[i])",
  },
  {
    name: "hashids",
    make: ({ default: Hashids }) => new Hashids("salt"),
    text: (it, id) => it.encode(id),
    encode: "it.it.encode(it.ids[i])",
    decode: "it.it.decode(it.texts[i])",
  },
  {
    name: "uuid",
    make: (uuid) => uuid,
    text: (it, id) => it.stringify(bytes(id)),
    id: bytes,
    encode: "it.it.stringify(it.ids[i])",
    decode: "it.it.parse(it.texts[i])",
  },
];

function bytes(id) {
  const block = new DataView(new ArrayBuffer(16));
  block.setBigUint64(0, id);
  block.setBigUint64(8, id | (1n << 63n));
  block.setUint8(6, 0x40);
  return new Uint8Array(block.buffer);
}

export async function publicIds({ PublicIds }, missing) {
  const ids = Array.from({ length: COUNT }, (_, n) => 1541815603606036480n + BigInt(n) * 0x1234567891n);
  const ours = new PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order");
  const texts = ours.encodeAll(ids);
  const rows = [];
  const row = (table, name, it, code) =>
    rows.push({ table: `public ID, ${table}`, subject: timed(name, it, code) });
  row("encode", "polyflake native, encode(id)", { ours, ids }, "it.ours.encode(it.ids[i])");
  row("decode", "polyflake native, decode(text)", { ours, texts }, "it.ours.decode(it.texts[i])");
  for (const { name, make, text, id = (id) => id, encode, decode } of codecs) {
    try {
      const it = make(await import(name));
      const given = { it, ids: ids.map(id), texts: ids.map((id) => text(it, id)) };
      row("encode", `${name}, encode`, given, encode);
      row("decode", `${name}, decode`, given, decode);
    } catch (error) {
      missing("Node", { name, why: cause(error) });
    }
  }
  const random = { randomUUID };
  row("encode", "crypto.randomUUID()", random, "it.randomUUID()");
  row("encode", "String(id)", { ids }, "String(it.ids[i])");
  row("decode", "BigInt(text)", { texts: ids.map(String) }, "BigInt(it.texts[i])");
  return rows;
}
