/**
 * NestJS: one generator for the whole application, closed when the application shuts down, and a pipe that reads IDs.
 *
 *     @Module({ imports: [IdsModule.open({ lease: process.env.LEASE })], controllers: [Orders] })
 *     class Application {}
 *
 *     @Controller("orders")
 *     class Orders {
 *       constructor(@Inject(IDS) private readonly ids: Snowflake) {}
 *
 *       @Post()
 *       async add() {
 *         return { id: await this.ids.nextIdAsync() };
 *       }
 *
 *       @Get(":id")
 *       get(@Param("id", ParseIdPipe) id: bigint) { ... }
 *     }
 *
 *     const app = await NestFactory.create<NestExpressApplication>(Application);
 *     app.set("json replacer", idsAsText); // from express.ts: IDs are strings in JSON
 *     app.enableShutdownHooks(); // SIGTERM gives the node back
 */
import type { DynamicModule, OnApplicationShutdown, PipeTransform } from "@nestjs/common";
import { BadRequestException, Global, Inject, Injectable, Module } from "@nestjs/common";
import { parseId, Snowflake, type SnowflakeOptions } from "polyflake";

/** The token that injects the application's generator. */
export const IDS = Symbol("IDS");

@Global()
@Module({})
export class IdsModule implements OnApplicationShutdown {
  readonly #ids: Snowflake;

  constructor(@Inject(IDS) ids: Snowflake) {
    this.#ids = ids;
  }

  /** Takes a Snowflake's options. The application starts once it has leased a node. */
  static open(options: SnowflakeOptions): DynamicModule {
    const provider = { provide: IDS, useFactory: () => Snowflake.open(options) };
    return { module: IdsModule, providers: [provider], exports: [IDS] };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#ids[Symbol.asyncDispose]();
  }
}

/** Reads an ID from a path or a query. Anything but decimal text is answered with 400. */
@Injectable()
export class ParseIdPipe implements PipeTransform<string, bigint> {
  transform(text: string): bigint {
    try {
      return parseId(text);
    } catch (cause) {
      throw new BadRequestException("an ID must be decimal text", { cause });
    }
  }
}
