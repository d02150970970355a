// The recipe for NestJS, on Express.
import "reflect-metadata";
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Controller, Get, Inject, Module, Param, Post, Query } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import type { Snowflake, SnowflakeOptions } from "polyflake";
import { idsAsText } from "./express.js";
import { IDS, IdsModule, ParseIdPipe } from "./nestjs.js";
import { EXACT, WRONG } from "./support.js";

const folder = mkdtempSync(join(tmpdir(), "polyflake-recipes-"));
after(() => rmSync(folder, { recursive: true }));
const lease = `sqlite://${folder}/store.db`;

const seen: unknown[] = [];

@Controller("orders")
class Orders {
  readonly #ids: Snowflake;

  constructor(@Inject(IDS) ids: Snowflake) {
    this.#ids = ids;
  }

  @Post()
  async add() {
    return { id: await this.#ids.nextIdAsync() };
  }

  @Get(":id")
  get(@Param("id", ParseIdPipe) id: bigint, @Query("parent", ParseIdPipe) parent: bigint) {
    seen.push(id, parent);
    return { id, parent };
  }
}

async function application(options: SnowflakeOptions) {
  @Module({ imports: [IdsModule.open(options)], controllers: [Orders] })
  class Application {}

  const app = await NestFactory.create<NestExpressApplication>(Application, { logger: false });
  app.set("json replacer", idsAsText);
  await app.listen(0, "127.0.0.1");
  return { app, ids: app.get<Snowflake>(IDS), address: `${await app.getUrl()}/orders` };
}

for (const [kind, options] of Object.entries({ node: { node: 7 }, lease: { lease } })) {
  test(`IDs are strings in a reply: ${kind}`, async () => {
    const { app, ids, address } = await application(options);
    const before = ids.nextId();
    const { id } = (await (await fetch(address, { method: "POST" })).json()) as { id: unknown };
    assert.ok(typeof id === "string" && BigInt(id) > before);
    assert.ok(BigInt(id) < ids.nextId());
    await app.close();
    assert.throws(() => ids.nextId(), { code: "CLOSED" });
  });
}

test("SIGTERM gives the node back", { timeout: 120_000 }, async () => {
  const seen = new Set();
  // There are two nodes, which stay leased unless they are given back.
  for (let n = 0; n < 3; n++) {
    const env = { ...process.env, LEASE: `sqlite://${folder}/two.db?ttl=1h` };
    const program = fork(join(import.meta.dirname, "nestjs_program.js"), { env });
    seen.add((await once(program, "message"))[0]);
    program.kill();
    assert.deepEqual(await once(program, "exit"), [null, "SIGTERM"]);
  }
  assert.equal(seen.size, 3);
});

test("paths and queries are read exactly, and all else is refused", async () => {
  const { app, address } = await application({ node: 7 });
  for (const id of EXACT) {
    const response = await fetch(`${address}/${id}?parent=${id}`);
    assert.deepEqual(await response.json(), { id: String(id), parent: String(id) });
    assert.deepEqual(seen.splice(0), [id, id]);
  }
  for (const id of WRONG) {
    if (typeof id !== "string") continue;
    const text = encodeURIComponent(id);
    assert.equal((await fetch(`${address}/1?parent=${text}`)).status, 400, id);
    if (text !== "") assert.equal((await fetch(`${address}/${text}?parent=1`)).status, 400, id);
  }
  assert.equal((await fetch(`${address}/1`)).status, 400);
  assert.deepEqual(seen, []);
  await app.close();
});
