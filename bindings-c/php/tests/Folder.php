<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use FilesystemIterator;
use RecursiveDirectoryIterator;
use RecursiveIteratorIterator;
use SplFileInfo;

/**
 * A temporary folder.
 */
final class Folder
{
    public readonly string $path;

    public function __construct()
    {
        $this->path = sys_get_temp_dir() . '/polyflake-' . bin2hex(random_bytes(6));
        mkdir($this->path, 0700);
    }

    /**
     * Copies the package's classes and header into a folder within this one.
     */
    public function package(string $name): string
    {
        $package = dirname(__DIR__);
        foreach (self::files("$package/src") as $file) {
            if ($file->isFile()) {
                $this->copy($file->getPathname(), $name . substr($file->getPathname(), strlen($package)));
            }
        }
        $this->copy("$package/resources/polyflake.h", "$name/resources/polyflake.h");
        $this->copy("$package/autoload.php", "$name/autoload.php");
        return "$this->path/$name";
    }

    public function copy(string $from, string $to): string
    {
        @mkdir(dirname("$this->path/$to"), 0700, true);
        copy($from, "$this->path/$to");
        return "$this->path/$to";
    }

    public function remove(): void
    {
        foreach (self::files($this->path) as $file) {
            $file->isDir() ? rmdir($file->getPathname()) : unlink($file->getPathname());
        }
        rmdir($this->path);
    }

    /**
     * @return iterable<SplFileInfo>
     */
    private static function files(string $path): iterable
    {
        $folder = new RecursiveDirectoryIterator($path, FilesystemIterator::SKIP_DOTS);
        foreach (new RecursiveIteratorIterator($folder, RecursiveIteratorIterator::CHILD_FIRST) as $file) {
            yield $file;
        }
    }
}
