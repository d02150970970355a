<?php

declare(strict_types=1);

namespace Polyflake;

use RuntimeException;

/**
 * libpolyflake cannot be used: it was not found (the message lists where it was looked for), has another ABI, or is not
 * allowed by PHP's settings. Not a PolyflakeException, because the cause is the installation and not a call.
 */
final class LibraryException extends RuntimeException
{
}
