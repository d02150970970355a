<?php

declare(strict_types=1);

namespace Polyflake\Tests;

use RuntimeException;

/**
 * A value of the vectors that PHP has none for: the case is passed over.
 */
final class Inexpressible extends RuntimeException
{
}
