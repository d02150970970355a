<?php

declare(strict_types=1);

namespace Polyflake\Internal;

use FFI;
use Polyflake\LibraryException;

/**
 * Finds libpolyflake and loads it.
 *
 * @internal
 */
final class Library
{
    /** The POLYFLAKE_ABI_VERSION of resources/polyflake.h. */
    public const ABI_VERSION = 0;

    private const HEADER = __DIR__ . '/../../resources/polyflake.h';
    private const SCOPE = 'Polyflake';
    private const VARIABLE = 'POLYFLAKE_LIBRARY';

    private static ?FFI $ffi = null;

    public static function ffi(): FFI
    {
        return self::$ffi ??= self::loaded();
    }

    private static function loaded(): FFI
    {
        $ffi = self::preloaded() ?? self::find()[1];
        $warning = $ffi->polyflake_copies_warning();
        if ($warning !== null) {
            trigger_error($warning, E_USER_WARNING);
        }
        return $ffi;
    }

    /**
     * Loads the library once for all requests. Meant for a preload script.
     */
    public static function preload(): void
    {
        [$path] = self::find();
        if (self::preloaded() !== null || ini_get('opcache.preload_user') !== '') {
            // The library is already loaded by ffi.preload, or it cannot be preloaded, because with preload_user, PHP
            // preloads in a process that exits. Then every request loads it, which is allowed because the classes are
            // preloaded.
            return;
        }
        $header = (string) tempnam(sys_get_temp_dir(), 'polyflake');
        $scope = '#define FFI_SCOPE "' . self::SCOPE . "\"\n#define FFI_LIB \"$path\"\n";
        try {
            file_put_contents($header, $scope . self::header());
            FFI::load($header);
        } finally {
            unlink($header);
        }
    }

    /**
     * Rejects a 32-bit PHP, whose int is too small for an ID.
     */
    public static function requireSixtyFourBits(int $intSize = PHP_INT_SIZE): void
    {
        if ($intSize < 8) {
            $bits = 8 * $intSize;
            throw new LibraryException("Polyflake needs a 64-bit PHP; this one has ints of $bits bits");
        }
    }

    private static function preloaded(): ?FFI
    {
        if (!class_exists(FFI::class)) {
            return null;
        }
        try {
            $ffi = FFI::scope(self::SCOPE);
            return $ffi->polyflake_abi_version() === self::ABI_VERSION ? $ffi : null;
        } catch (FFI\Exception) {
            return null;
        }
    }

    /**
     * Finds the first library that can be loaded and has the right ABI. Returns its path and the library.
     *
     * @return array{string, FFI}
     */
    private static function find(): array
    {
        self::requireSixtyFourBits();
        if (!class_exists(FFI::class)) {
            throw new LibraryException('Polyflake needs the PHP extension FFI, which is not loaded (extension=ffi)');
        }
        $looked = '';
        foreach (self::candidates() as $path => $where) {
            try {
                return [$path, self::load($path)];
            } catch (FFI\Exception | LibraryException $exception) {
                // PHP before 8.3 does not say why a library cannot be loaded.
                $isMissing = str_contains($path, '/') && !file_exists($path);
                $looked .= "\n- $path ($where): " . ($isMissing ? 'no such file' : $exception->getMessage());
            }
        }
        throw new LibraryException('Polyflake cannot load libpolyflake; it looked at' . $looked . self::hint());
    }

    /**
     * Returns the paths to try, in order, each with its reason. If the user sets a path, no other is tried, because
     * loading a library other than the requested one would be a surprise.
     *
     * @return array<string, string>
     */
    private static function candidates(): array
    {
        $named = getenv(self::VARIABLE);
        if (is_string($named) && $named !== '') {
            return [$named => 'named by the environment variable ' . self::VARIABLE . ', which rules out all others'];
        }
        $file = match (PHP_OS_FAMILY) {
            'Darwin' => 'libpolyflake.0.dylib',
            'Windows' => 'polyflake.dll',
            default => 'libpolyflake.so.0',
        };
        $lib = dirname(__DIR__, 2) . '/lib';
        $candidates = [
            "$lib/$file" => 'beside the package; the environment variable ' . self::VARIABLE . ' is not set',
        ];
        foreach (self::platforms() as $platform) {
            if (is_dir("$lib/$platform")) {
                $candidates["$lib/$platform/$file"] = 'comes with the package';
            }
        }
        return $candidates + [
            $file => "the system's libraries",
        ];
    }

    /**
     * Returns the folders in which a released package has libraries for this system. On Linux, the folder for the
     * system's C library comes first; the other folder's library cannot be loaded.
     *
     * @return list<string>
     */
    private static function platforms(): array
    {
        $machine = match (strtolower(php_uname('m'))) {
            'x86_64', 'amd64' => 'x64',
            'aarch64', 'arm64' => 'arm64',
            default => php_uname('m'),
        };
        return match (PHP_OS_FAMILY) {
            'Darwin' => ["darwin-$machine"],
            'Windows' => ["win32-$machine-gnu"],
            'Linux' => (glob('/lib/ld-musl-*') ?: []) === []
                ? ["linux-$machine-gnu", "linux-$machine-musl"]
                : ["linux-$machine-musl", "linux-$machine-gnu"],
            default => [],
        };
    }

    private static function load(string $path): FFI
    {
        $abi = FFI::cdef('unsigned int polyflake_abi_version(void);', $path)->polyflake_abi_version();
        if ($abi !== self::ABI_VERSION) {
            throw new LibraryException("its ABI version is $abi, this package needs " . self::ABI_VERSION);
        }
        return FFI::cdef(self::header(), $path);
    }

    /**
     * Returns the header without the lines that only ffi.preload needs.
     */
    private static function header(): string
    {
        $header = file_get_contents(self::HEADER);
        if ($header === false) {
            throw new LibraryException('Polyflake cannot read its header ' . self::HEADER);
        }
        return (string) preg_replace('/^#.*$/m', '', $header);
    }

    private static function hint(): string
    {
        if (PHP_SAPI === 'cli' || ini_get('ffi.enable') !== 'preload') {
            return '';
        }
        return "\nffi.enable=preload allows FFI only in preloaded code: set opcache.preload to "
            . dirname(__DIR__, 2) . '/preload.php, or ffi.enable to true';
    }
}
