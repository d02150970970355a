// Adapts npm's @sapphire/snowflake to the duplicate probes (npm install @sapphire/snowflake, where Node can find it).

import { createRequire } from "node:module";
import { join } from "node:path";
import { run, unsupported, workerNumber } from "./situations.mjs";

const { Snowflake } = createRequire(join(process.cwd(), "package.json"))("@sapphire/snowflake");

await run(({ situation, tickMs }) => {
  if (tickMs !== 1) unsupported("its tick is 1 ms");
  const ids = new Snowflake(1288834974657);
  const workerId = BigInt(situation === "prefork" ? workerNumber() : 7);
  return () => ids.generate({ workerId });
});
