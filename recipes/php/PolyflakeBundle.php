<?php

declare(strict_types=1);

namespace App;

use App\Doctrine\SnowflakeGenerator;
use Polyflake\IdGenerator;
use Polyflake\Snowflake;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Bundle\Bundle;
use Symfony\Component\Messenger\Event\WorkerStoppedEvent;

/**
 * Symfony: one generator for the program, created when something first asks for it. Symfony injects it wherever a
 * constructor or an action takes an `IdGenerator`, and Doctrine's SnowflakeGenerator uses it.
 *
 *     return [App\PolyflakeBundle::class => ['all' => true], ...]; // config/bundles.php
 *
 *     POLYFLAKE_LEASE=redis://redis.internal/0 # .env
 *
 * A php-fpm worker keeps its node across requests. A Messenger worker gives its node back when it stops.
 */
final class PolyflakeBundle extends Bundle
{
    public function build(ContainerBuilder $container): void
    {
        $container->register(IdGenerator::class, Snowflake::class)
            ->setArgument('$lease', '%env(POLYFLAKE_LEASE)%')
            ->setPublic(true);
    }

    public function boot(): void
    {
        $container = $this->container;
        SnowflakeGenerator::use(static fn (): IdGenerator => $container->get(IdGenerator::class));
        $close = static function () use ($container): void {
            if ($container->initialized(IdGenerator::class)) {
                $container->get(IdGenerator::class)->close();
            }
        };
        $container->get('event_dispatcher')->addListener(WorkerStoppedEvent::class, $close);
    }
}
