<?php

declare(strict_types=1);

namespace App\Tests;

use App\Providers\PolyflakeServiceProvider;
use Illuminate\Bus\BusServiceProvider;
use Illuminate\Config\Repository;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Database\DatabaseServiceProvider;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Exceptions\Handler;
use Illuminate\Queue\QueueServiceProvider;
use Illuminate\Support\Facades\Facade;

/**
 * An application on the MariaDB that ../test.sh has started. The options are those of a Snowflake.
 *
 * @param array<string, mixed> $options
 */
function laravel(array $options, string $folder): Application
{
    $url = parse_url((string) getenv('RECIPES_MARIADB'));
    $app = new Application($folder);
    $app->instance('config', new Repository([
        'app' => ['timezone' => 'UTC'],
        'database' => ['default' => 'mariadb', 'connections' => ['mariadb' => [
            'driver' => 'mysql',
            'host' => $url['host'],
            'port' => $url['port'],
            'username' => $url['user'],
            'password' => $url['pass'],
            'database' => ltrim($url['path'], '/'),
            'charset' => 'utf8mb4',
        ]]],
        'queue' => ['default' => 'database', 'failed' => ['driver' => 'null'], 'connections' => ['database' => [
            'driver' => 'database',
            'table' => 'laravel_jobs',
            'queue' => 'default',
            'retry_after' => 600,
        ]]],
        'polyflake' => $options,
    ]));
    $app->singleton(ExceptionHandler::class, Handler::class);
    Facade::clearResolvedInstances();
    Facade::setFacadeApplication($app);
    foreach (
        [
            DatabaseServiceProvider::class,
            BusServiceProvider::class,
            QueueServiceProvider::class,
            PolyflakeServiceProvider::class,
        ] as $provider
    ) {
        $app->register($provider);
    }
    $app->boot();

    return $app;
}
