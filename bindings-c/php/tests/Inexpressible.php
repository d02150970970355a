<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use RuntimeException;

/**
 * A value in the vectors that PHP cannot express: the case is skipped.
 */
final class Inexpressible extends RuntimeException
{
}
