<?php

declare(strict_types=1);

// Debian's packages of Doctrine, and Polyflake's package.
require 'Doctrine/ORM/autoload.php';
require __DIR__ . '/../../../bindings-c/php/autoload.php';
require __DIR__ . '/../SnowflakeGenerator.php';
require __DIR__ . '/../SnowflakeType.php';
require __DIR__ . '/Given.php';
require __DIR__ . '/Order.php';
