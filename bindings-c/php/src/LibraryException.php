<?php

declare(strict_types=1);

namespace Polyflake;

use RuntimeException;

/**
 * libpolyflake cannot be used: it was not found (the message lists where PHP looked for it), it has a different ABI, or
 * PHP's settings do not allow it. This is not a PolyflakeException, because the cause is the installation rather than a
 * call.
 */
final class LibraryException extends RuntimeException
{
}
