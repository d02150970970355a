<?php

declare(strict_types=1);

namespace App\Tests;

use App\Doctrine\SnowflakeType;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Types\Type;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Tools\SchemaTool;

/**
 * Doctrine on the MariaDB that ../test.sh has started, with an empty table of orders. Its proxies go into the given
 * folder.
 */
function entityManager(string $folder): EntityManager
{
    if (!Type::hasType(SnowflakeType::NAME)) {
        Type::addType(SnowflakeType::NAME, SnowflakeType::class);
    }
    $configuration = new Configuration();
    $configuration->setMetadataDriverImpl(new AttributeDriver([__DIR__]));
    $configuration->setProxyDir($folder);
    $configuration->setProxyNamespace('App\Proxies');
    $configuration->setAutoGenerateProxyClasses(true);
    $url = parse_url((string) getenv('RECIPES_MARIADB'));
    $connection = DriverManager::getConnection([
        'driver' => 'pdo_mysql',
        'host' => $url['host'],
        'port' => $url['port'],
        'user' => $url['user'],
        'password' => $url['pass'],
        'dbname' => ltrim($url['path'], '/'),
    ]);
    $em = new EntityManager($connection, $configuration);
    $tool = new SchemaTool($em);
    $classes = [$em->getClassMetadata(Order::class)];
    $tool->dropSchema($classes);
    $tool->createSchema($classes);

    return $em;
}
