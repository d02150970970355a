<?php

/*
 * For opcache.preload: keeps the classes and the loaded library for all requests, and so lets them use FFI under
 * ffi.enable=preload, PHP's default. From a preload script of your own: require this file.
 */

declare(strict_types=1);

require_once __DIR__ . '/autoload.php';

(static function (): void {
    $folder = new RecursiveDirectoryIterator(__DIR__ . '/src', FilesystemIterator::SKIP_DOTS);
    /** @var SplFileInfo $file */
    foreach (new RecursiveIteratorIterator($folder) as $file) {
        require_once $file->getPathname();
    }
})();

Polyflake\Internal\Library::preload();
