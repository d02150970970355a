<?php

declare(strict_types=1);

namespace App\Tests;

use Illuminate\Database\QueryException;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Foundation\Application;
use Illuminate\Http\Request;
use Illuminate\Routing\Middleware\SubstituteBindings;
use PHPUnit\Framework\TestCase;
use Polyflake\Exception\InvalidIdException;
use Polyflake\IdGenerator;
use Polyflake\Layout;
use Polyflake\PublicIds;

/**
 * The recipe for Laravel, on the MariaDB that ../test.sh has started.
 */
final class LaravelTest extends TestCase
{
    use Generators;

    private Application $app;
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/polyflake-recipes-' . bin2hex(random_bytes(8));
        mkdir($this->folder);
        $this->app = laravel(['node' => 7], $this->folder);
        $schema = $this->app['db']->getSchemaBuilder();
        $schema->dropIfExists('laravel_orders');
        $schema->create('laravel_orders', function (Blueprint $table): void {
            $table->bigInteger('id')->primary();
            $table->bigInteger('parent_id')->nullable();
            $table->string('worker')->nullable();
        });
        $schema->dropIfExists('laravel_jobs');
        $schema->create('laravel_jobs', function (Blueprint $table): void {
            $table->bigIncrements('id');
            $table->string('queue')->index();
            $table->longText('payload');
            $table->unsignedTinyInteger('attempts');
            $table->unsignedInteger('reserved_at')->nullable();
            $table->unsignedInteger('available_at');
            $table->unsignedInteger('created_at');
        });
    }

    protected function tearDown(): void
    {
        $this->app['db']->disconnect();
        $this->app->flush();
        array_map('unlink', glob($this->folder . '/*') ?: []);
        rmdir($this->folder);
    }

    /**
     * @dataProvider generators
     */
    public function testNewModelsTakeTheNextIds(callable $make): void
    {
        $ids = $make("sqlite://$this->folder/store.db");
        $this->app->instance(IdGenerator::class, $ids);
        $before = $ids->nextId();
        $first = LaravelOrder::create();
        for ($n = 0; $n < 20; $n++) {
            $first->parts()->create();
        }
        (new LaravelOrder())->saveQuietly();
        $given = new LaravelOrder(['id' => $ids->nextId()]);
        $given->save();
        $after = $ids->nextId();
        $found = LaravelOrder::query()->orderBy('id')->get();
        self::assertCount(23, $found);
        self::assertSame($first->id, $found[0]->id);
        self::assertSame($given->id, $found[22]->id);
        self::assertSame(array_fill(0, 20, $first->id), $found->slice(1, 20)->pluck('parent_id')->all());
        self::assertSame($first->id, $found[1]->parent->id);
        $keys = [$before, ...$found->modelKeys(), $after];
        self::assertSame(array_unique($keys), $keys);
        self::assertGreaterThan($before, $first->id);
        self::assertLessThan($after, $given->id);
        $ids->close();
    }

    public function testAnIdComesBackAsItWentAndIsAStringInJson(): void
    {
        foreach ([1, 2 ** 53 + 1, 1541815603606036481, PHP_INT_MAX] as $id) {
            LaravelOrder::create(['id' => $id, 'parent_id' => (string) $id]);
            $found = LaravelOrder::findOrFail($id);
            self::assertSame([$id, $id], [$found->id, $found->parent_id]);
            self::assertSame("{\"id\":\"$id\",\"parent_id\":\"$id\",\"worker\":null}", $found->toJson());
            $found->update(['worker' => 'a']);
            self::assertSame(1, LaravelOrder::where(['parent_id' => $id, 'worker' => 'a'])->count());
        }
        LaravelOrder::findOrFail(1)->delete();
        self::assertSame(3, LaravelOrder::count());
    }

    public function testWhatIsNoIdIsRefused(): void
    {
        $this->expectException(InvalidIdException::class);
        new LaravelOrder(['parent_id' => '12x']);
    }

    public function testTheDatabaseRefusesARowWithoutAnId(): void
    {
        $this->expectException(QueryException::class);
        LaravelOrder::query()->insert(['worker' => 'a']);
    }

    public function testRoutes(): void
    {
        LaravelOrder::create(['id' => 12]);
        $this->app['router']->get('/orders/{order}', static fn (LaravelOrder $order) => $order)
            ->middleware(SubstituteBindings::class);
        self::assertSame([200, '{"id":"12","parent_id":null,"worker":null}'], $this->get('/orders/12'));
        foreach (['12x', '12.0', '-12', '%2012', '13'] as $id) {
            self::assertSame(404, $this->get("/orders/$id")[0], $id);
        }
    }

    public function testRoutesWithPublicIds(): void
    {
        $order = LaravelPublicOrder::create(['id' => 1541815603606036480]);
        $text = 'order_15ShV20Bxc6UJvKSQbDvo0J';
        self::assertSame($text, $order->getRouteKey());
        $this->app['router']->get('/public/{order}', static fn (LaravelPublicOrder $order) => $order->getKey())
            ->middleware(SubstituteBindings::class);
        self::assertSame([200, '1541815603606036480'], $this->get("/public/$text"));
        $user = (new PublicIds('pfk_10kvEGTqNtUTXFUlMnM4wIa', 'user'))->encode(1541815603606036480);
        foreach (['1541815603606036480', substr($text, 0, -1), substr($text, 0, -1) . 'K', $user] as $other) {
            self::assertSame(404, $this->get("/public/$other")[0], $other);
        }
        self::assertNull((new LaravelPublicOrder())->getRouteKey());
    }

    public function testRoutesBelowAnotherModelWithPublicIds(): void
    {
        $order = LaravelPublicOrder::create(['id' => 1541815603606036480]);
        $part = LaravelPublicOrder::create(['id' => 12, 'parent_id' => $order->getKey()]);
        $schema = $this->app['db']->getSchemaBuilder();
        $schema->dropIfExists('laravel_neighbours');
        $schema->create('laravel_neighbours', function (Blueprint $table): void {
            $table->bigInteger('left');
            $table->bigInteger('right');
        });
        $order->neighbours()->attach($part);
        foreach (['part', 'neighbour'] as $child) {
            $this->app['router']->get(
                "/$child/{order}/{{$child}:id}",
                $child === 'part'
                    ? static fn (LaravelPublicOrder $order, LaravelPublicOrder $part) => $part->getKey()
                    : static fn (LaravelPublicOrder $order, LaravelPublicOrder $neighbour) => $neighbour->getKey(),
            )->middleware(SubstituteBindings::class);
            $start = "/$child/{$order->getRouteKey()}";
            self::assertSame([200, '12'], $this->get("$start/{$part->getRouteKey()}"));
            foreach (['12', '12x', $order->getRouteKey()] as $other) {
                self::assertSame(404, $this->get("$start/$other")[0], "$child $other");
            }
        }
    }

    /**
     * @return array{int, string} the status and the content
     */
    private function get(string $path): array
    {
        $request = Request::create($path, server: ['HTTP_ACCEPT' => 'application/json']);
        $response = $this->app['router']->dispatch($request);

        return [$response->getStatusCode(), $response->getContent()];
    }

    public function testWorkersOfTheQueueHaveNodesOfTheirOwnAndGiveThemBack(): void
    {
        $layout = new Layout('timestamp:41|node:1|sequence:21@1767225600000/1ms');
        // Twice, because there are two nodes, which stay leased unless they are given back.
        for ($round = 1; $round <= 2; $round++) {
            $workers = [];
            foreach (['a', 'b'] as $queue) {
                $this->app['queue']->connection()->pushOn($queue, new LaravelJob($queue));
                $workers[] = proc_open(
                    [PHP_BINARY, __DIR__ . '/laravel_worker.php', $queue],
                    [],
                    $pipes,
                    null,
                    ['LEASE' => "sqlite://$this->folder/store.db?ttl=1h"] + getenv(),
                );
            }
            while ($this->app['db']->table('laravel_jobs')->count() > 0) {
                foreach ($workers as $worker) {
                    self::assertTrue(proc_get_status($worker)['running']);
                }
                usleep(20_000);
            }
            foreach ($workers as $worker) {
                proc_terminate($worker);
            }
            self::assertSame([0, 0], array_map('proc_close', $workers));
            $nodes = [];
            foreach (LaravelOrder::all() as $order) {
                $nodes[$order->worker][$layout->decode($order->id)->node] = true;
            }
            self::assertSame(200, LaravelOrder::count());
            self::assertSame([1, 1], [count($nodes['a']), count($nodes['b'])]);
            self::assertNotSame($nodes['a'], $nodes['b']);
            LaravelOrder::query()->delete();
        }
    }
}
