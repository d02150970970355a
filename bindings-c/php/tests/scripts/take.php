<?php

/*
 * Prints an ID from the package in the given folder, and the library files that this process has loaded.
 */

declare(strict_types=1);

require $argv[1] . '/autoload.php';

echo (new Polyflake\Snowflake(node: 7))->nextIdString(), "\n";
preg_match_all('~\S*/[^/\s]*polyflake[^/\s]*$~m', (string) file_get_contents('/proc/self/maps'), $files);
foreach (array_unique($files[0]) as $file) {
    echo "loaded $file\n";
}
