<?php

declare(strict_types=1);

namespace Polyflake;

use RuntimeException;

/**
 * libpolyflake cannot be used: it was not found (the message lists where it was looked for), has another ABI, or PHP's
 * settings forbid it. It is a matter of the installation, not of a call, and so no PolyflakeException.
 */
final class LibraryException extends RuntimeException
{
}
