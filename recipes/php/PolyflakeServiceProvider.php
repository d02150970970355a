<?php

declare(strict_types=1);

namespace App\Providers;

use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Queue\Events\WorkerStopping;
use Illuminate\Support\ServiceProvider;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;

/**
 * Laravel: one generator for the program, created when something first asks for it. Add this class to the providers,
 * and put its options into config/polyflake.php:
 *
 *     return ['lease' => env('POLYFLAKE_LEASE')]; // redis://redis.internal/0
 *
 * A php-fpm worker keeps its node across requests. A queue worker gives its node back when it stops.
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
