import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as polyflake from "polyflake";
import { runVectors } from "./vectors.js";

const url = new URL("../../tests/vectors.json", import.meta.url);
const vectors = JSON.parse(readFileSync(url, "utf8"));

runVectors(polyflake, vectors, (section, name, run) => test(`${section} ${name}`, run));
