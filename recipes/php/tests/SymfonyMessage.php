<?php

declare(strict_types=1);

namespace App\Tests;

/**
 * A message that requests an order.
 */
final class SymfonyMessage
{
}
