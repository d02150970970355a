<?php

/*
 * For opcache.preload: keeps the classes and the library loaded for all requests, which may then use FFI under PHP's
 * default setting, ffi.enable=preload. If you have your own preload script, require this file there.
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
