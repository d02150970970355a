<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Polyflake\\Tests\\')) {
        require __DIR__ . '/' . substr($class, strlen('Polyflake\\Tests\\')) . '.php';
    }
});
