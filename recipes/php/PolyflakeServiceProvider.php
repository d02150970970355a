<?php

declare(strict_types=1);

namespace App\Providers;

use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Queue\Events\WorkerStopping;
use Illuminate\Support\ServiceProvider;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;

/**
 * Laravel: one generator for the program, made when the first ID is asked for. Name this class among the providers, and
 * have its options in config/polyflake.php:
 *
 *     return ['lease' => env('POLYFLAKE_LEASE')]; // redis://redis.internal/0
 *
 * The requests of a php-fpm worker go on with the worker's node. A worker of the queue gives its node back when it
 * stops.
 */
final class PolyflakeServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->singleton(IdGenerator::class, static fn ($app) => new Snowflake(...$app['config']['polyflake']));
    }

    public function boot(Dispatcher $events): void
    {
        $events->listen(WorkerStopping::class, function (): void {
            if ($this->app->resolved(IdGenerator::class)) {
                $this->app->make(IdGenerator::class)->close();
            }
        });
    }
}
