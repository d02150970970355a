<?php

declare(strict_types=1);

// Debian's packages of the frameworks, and Polyflake's package.
require 'Doctrine/ORM/autoload.php';
require 'Illuminate/autoload.php';
require 'Symfony/Bundle/FrameworkBundle/autoload.php';
require 'Symfony/Component/Messenger/autoload.php';
require __DIR__ . '/../../../bindings-c/php/autoload.php';
require __DIR__ . '/../SnowflakeGenerator.php';
require __DIR__ . '/../SnowflakeType.php';
require __DIR__ . '/../HasPublicId.php';
require __DIR__ . '/../HasSnowflakeId.php';
require __DIR__ . '/../PolyflakeBundle.php';
require __DIR__ . '/../PolyflakeServiceProvider.php';
require __DIR__ . '/../SnowflakeId.php';
require __DIR__ . '/Generators.php';
require __DIR__ . '/Given.php';
require __DIR__ . '/LaravelJob.php';
require __DIR__ . '/LaravelOrder.php';
require __DIR__ . '/LaravelPublicOrder.php';
require __DIR__ . '/Order.php';
require __DIR__ . '/SymfonyController.php';
require __DIR__ . '/SymfonyKernel.php';
require __DIR__ . '/SymfonyMessage.php';
require __DIR__ . '/SymfonyMessageHandler.php';
require __DIR__ . '/doctrine.php';
require __DIR__ . '/laravel.php';
