<?php

declare(strict_types=1);

namespace App\Tests;

use App\PolyflakeBundle;
use Doctrine\ORM\EntityManager;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

/**
 * A Symfony application whose files are in the given folder.
 */
final class SymfonyKernel extends Kernel
{
    use MicroKernelTrait;

    public function __construct(private string $folder)
    {
        parent::__construct('test', false);
    }

    public function registerBundles(): array
    {
        return [new FrameworkBundle(), new PolyflakeBundle()];
    }

    public function getProjectDir(): string
    {
        return $this->folder;
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'secret',
            'messenger' => [
                'transports' => ['queue' => 'in-memory://'],
                'routing' => [SymfonyMessage::class => 'queue'],
            ],
        ]);
        $services = $container->services();
        $services->set(EntityManager::class)->synthetic()->public();
        $services->alias('bus', MessageBusInterface::class)->public();
        $services->set(SymfonyMessageHandler::class)->autowire()->tag('messenger.message_handler');
        $services->set(SymfonyController::class)->autowire()->public()->tag('controller.service_arguments');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('orders', '/orders')->controller([SymfonyController::class, 'add']);
    }
}
