// The program that nestjs.test.ts runs. It leases one of two nodes until it receives a signal.
import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Snowflake } from "polyflake";
import { IDS, IdsModule } from "./nestjs.js";

const layout = "timestamp:41|node:1|sequence:21@1767225600000/1ms";

@Module({ imports: [IdsModule.open({ lease: process.env.LEASE, layout })] })
class Application {}

const app = await NestFactory.create(Application, { logger: false });
app.enableShutdownHooks();
await app.listen(0, "127.0.0.1");
process.send?.(app.get<Snowflake>(IDS).nextIdString());
