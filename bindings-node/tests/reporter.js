// Prints only failures and counts, because thousands of passing vectors would hide them.
import { inspect } from "node:util";

export default async function* reporter(events) {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type === "test:diagnostic" && data.level === "error") yield `${data.message}\n`;
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details?.type === "suite") continue;
    if (data.skip !== undefined) {
      skipped += 1;
      yield `skipped: ${data.name}${typeof data.skip === "string" ? ` (${data.skip})` : ""}\n`;
    } else if (type === "test:pass") {
      passed += 1;
    } else {
      failed += 1;
      yield `FAILED: ${data.name} (${data.file}:${data.line})\n${inspect(data.details.error?.cause ?? data.details.error)}\n`;
    }
  }
  yield `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`;
}
